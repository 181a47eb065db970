"""Ranks that become another program: `--fresh`, `-- command`, `--no-python`; the worker takes how
that ends for the rank's outcome.

Method: real commands, whose pid, exit code and signals say that it was exec and that nothing stands
between the worker and them.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually
from submits import LIMIT_S, printed, project, started_in, training, troupe_in, two

from troupe import exceptions
from troupe.launch import submit_command

SHELL = "bash"


def test_a_command_is_executed_by_each_rank_with_its_variables(idle: Home, tmp_path: Path) -> None:
    folder = project(tmp_path / "w", **{"beside.txt": "found"})
    line = 'echo "$RANK of $WORLD_SIZE at ${MASTER_PORT:+port} $(cat beside.txt) $0 $1"'
    expected = ["0 of 2 at port found me x", "1 of 2 at port found me x"]
    assert printed(troupe_in(folder, *two("--", SHELL, "-c", line, "me", "x"))) == expected
    assert printed(troupe_in(folder, *two("--no-python", SHELL, "-c", line, "me", "x"))) == expected


@pytest.mark.long
def test_a_training_in_interpreters_of_their_own_computes_the_same(
    idle: Home, tmp_path: Path
) -> None:
    folder = training(tmp_path / "w")
    forked = printed(troupe_in(folder, *two("train.py", "--lr", "0.01")))
    assert len(forked) == 5
    assert printed(troupe_in(folder, *two("--fresh", "train.py", "--lr", "0.01"))) == forked
    assert (
        printed(troupe_in(folder, *two("--", sys.executable, "train.py", "--lr", "0.01"))) == forked
    )


# Built beside the test: a thread that asks for Python after its end, in a function that nothing may
# unwind through, and which the program waits for, as torch's Gloo groups do now and then.
LATE_THREAD = """
#include <pthread.h>
#include <unistd.h>
extern "C" int _Py_IsFinalizing();
extern "C" int PyGILState_Ensure();
static pthread_t thread;
static void* Late(void*) noexcept {
  while (!_Py_IsFinalizing()) usleep(100);
  PyGILState_Ensure();
  return nullptr;
}
extern "C" void begin() { pthread_create(&thread, nullptr, Late, nullptr); }
extern "C" void join() { pthread_join(thread, nullptr); }
"""
LATE_PROGRAM = """
import ctypes, sys, torch
late = ctypes.CDLL("./late.so")
class Last:
    def __del__(self):
        late.join()
last = Last()
late.begin()
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python lets such threads stand still")
def test_a_thread_that_outlives_python_does_not_end_a_program_by_sigabrt(
    idle: Home, tmp_path: Path
) -> None:
    folder = project(tmp_path / "w", **{"late.cc": LATE_THREAD, "late.py": LATE_PROGRAM})
    build = ["c++", "-shared", "-fPIC", "late.cc", "-o", "late.so"]
    subprocess.run(build, cwd=folder, check=True, timeout=LIMIT_S)
    for code in (0, 3):
        done = troupe_in(folder, "submit", "--", SHELL, "-c", f"{sys.executable} late.py {code}")
        assert done.returncode == code, done.stderr


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (0, "exit 0"),
        (7, "echo why >&2; exit 7"),
        (137, "echo why >&2; kill -KILL $$"),
        (143, "echo why >&2; kill -TERM $$"),
        (126, "echo why >&2; exec ./no-program.sh"),
    ],
)
def test_the_exit_code_of_a_command_is_the_ranks(
    idle: Home, tmp_path: Path, code: int, line: str
) -> None:
    folder = project(tmp_path / "w", **{"no-program.sh": "x"})
    done = troupe_in(folder, *two("--", SHELL, "-c", f'if [ "$RANK" = 1 ]; then {line}; fi'))
    assert done.returncode == code, done.stderr
    if code:
        summary = done.stderr[done.stderr.index("LaunchError") :]
        assert "rank 1" in summary and "why" in summary, "its last words are in the error"


def test_no_process_stands_between_the_worker_and_the_program(idle: Home, tmp_path: Path) -> None:
    folder = project(tmp_path / "w")
    process = started_in(
        folder,
        "submit",
        "--",
        SHELL,
        "-c",
        'echo "$(cat /proc/$PPID/comm) $(tr "\\0" " " </proc/$$/cmdline | cut -c1-4)"; read x',
    )
    assert printed_by(process) == ["troupe-worker bash"]


def printed_by(process: subprocess.Popen) -> list[str]:
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode in (0, 1), err
    return out.splitlines()


def test_a_command_and_what_it_started_hear_of_ctrl_c(idle: Home, tmp_path: Path) -> None:
    folder = project(
        tmp_path / "w",
        waits="""
import signal, sys, threading
def told(number, frame):
    open("told", "w").write(str(number))
    sys.exit(0)
signal.signal(signal.SIGINT, told)
print("waits", flush=True)
threading.Event().wait()
""",
    )
    process = started_in(
        folder, "submit", "--", SHELL, "-c", f"{sys.executable} waits.py; echo after"
    )
    assert process.stdout is not None and process.stdout.readline() == "waits\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130, said
    assert (folder / "told").read_text() == str(int(signal.SIGINT))


def test_a_command_that_ignores_the_word_to_stop_is_killed_after_its_grace(
    idle: Home, tmp_path: Path
) -> None:
    handle = submit_command(
        ["--", SHELL, "-c", "trap '' TERM INT; echo deaf; while :; do read x < <(sleep 100); done"],
        processes=2,
        remote=True,
        stop_grace=0.2,
    )
    eventually(
        lambda: list(handle.logs()).count("[0] deaf") and list(handle.logs()).count("[1] deaf"),
        what="both ranks",
    )
    handle.cancel()
    with pytest.raises(exceptions.LaunchCancelledError):
        handle.result(timeout=TIMEOUT_S)


def test_one_ranks_failure_stops_the_others_of_a_command(idle: Home, tmp_path: Path) -> None:
    folder = project(tmp_path / "w")
    done = troupe_in(
        folder, *two("--", SHELL, "-c", 'if [ "$RANK" = 0 ]; then exit 9; fi; exec sleep 1000')
    )
    assert done.returncode == 9, done.stderr


def test_a_command_has_the_signals_that_a_shell_would_give_it(idle: Home, tmp_path: Path) -> None:
    """A broken pipe ends it, as everywhere but in Python."""
    folder = project(tmp_path / "w")
    done = troupe_in(
        folder, "submit", "--", SHELL, "-c", 'grep -E "^Sig(Ign|Blk)" /proc/self/status'
    )
    assert {line.split()[1].strip("0") for line in printed(done)} == {""}


def test_what_ends_with_zero_before_it_was_done_is_success_and_a_result_of_none(idle: Home) -> None:
    assert submit_command(["--", "true"], processes=3, remote=True).result(timeout=LIMIT_S) == [
        None,
        None,
        None,
    ]


def test_inside_a_launch_it_is_refused_and_not_waited_for(idle: Home, tmp_path: Path) -> None:
    folder = project(tmp_path / "w", x="")
    done = troupe_in(folder, "submit", "--", sys.executable, "-m", "troupe", "submit", "x.py")
    assert done.returncode == 2 and "inside launch" in done.stderr


def test_a_file_that_cannot_be_executed_is_said_once(idle: Home, tmp_path: Path) -> None:
    script = project(tmp_path / "w", **{"no-first-line.sh": "echo hi\n"}) / "no-first-line.sh"
    script.chmod(0o755)
    done = troupe_in(script.parent, "submit", "--", "./no-first-line.sh")
    assert done.returncode == 126 and "cannot be executed" in done.stderr
