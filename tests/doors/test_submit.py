"""`troupe submit`: a script, as people have it, on several ranks; what it sees, how it ends, and
what is left.

Method: the command itself, in a folder of its own, on a cluster that runs; where `python` or
torchrun can be asked for the right value, it is.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually
from submits import LIMIT_S, printed, project, started_in, torchrun_in, training, troupe_in, two

import troupe
from troupe import exceptions
from troupe.launch import submit_command

SEEN = """
import json, multiprocessing, os, pickle, sys, threading
class Point:
    pass
def here():
    return {"argv": sys.argv, "file": __file__, "name": __name__, "first": sys.path[0], "cwd": os.getcwd(), "spec": str(__spec__ and __spec__.name),
            "package": str(__package__), "main": sys.modules["__main__"].__dict__ is globals(), "cached": str(__cached__)}
if __name__ == "__main__":
    assert type(pickle.loads(pickle.dumps(Point()))) is Point
    print(json.dumps(here(), sort_keys=True))
"""
SPAWNS = """
import multiprocessing
def double(x):
    return 2 * x
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print("spawned", pool.map(double, [1, 2]))
"""


def test_b7_a_folder_with_its_own_train_py_runs_unchanged_and_computes_what_torchrun_does(
    idle: Home, tmp_path: Path
) -> None:
    folder = training(tmp_path / "repository")
    expected = printed(
        torchrun_in(folder, "--standalone", "--nproc_per_node=2", "train.py", "--lr", "0.01")
    )
    assert len(expected) == 5
    assert printed(troupe_in(folder, *two("train.py", "--lr", "0.01"))) == expected
    assert (
        printed(troupe_in(folder, "torchrun", "--nproc_per_node=2", "train.py", "--lr", "0.01"))
        == expected
    )


@pytest.mark.parametrize(
    "line",
    [
        ["seen.py", "--lr", "1", "--", "-x"],
        ["sub/seen.py"],
        ["-m", "sub.seen", "a"],
        ["-m", "sub"],
        ["link.py"],
    ],
)
@pytest.mark.parametrize("how", [[], ["--fresh"]], ids=["forked", "fresh"])
def test_what_a_script_sees_is_what_python_shows_it(
    idle: Home, tmp_path: Path, line: list[str], how: list[str]
) -> None:
    folder = project(tmp_path / "w", seen=SEEN)
    project(folder / "sub", seen=SEEN, __init__="", __main__=SEEN)
    (folder / "link.py").symlink_to("sub/seen.py")
    python = subprocess.run(
        [sys.executable, *line], cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    expected = json.loads(python.stdout)
    for seen in printed(troupe_in(folder, *two(*how, *line))):
        assert json.loads(seen) == expected


def test_children_by_spawn_find_the_script(idle: Home, tmp_path: Path) -> None:
    folder = project(tmp_path / "w", spawns=SPAWNS)
    assert printed(troupe_in(folder, *two("spawns.py"))) == ["spawned [2, 4]"] * 2


@pytest.mark.parametrize(
    ("code", "ends"),
    [
        (0, "sys.exit()"),
        (0, "sys.exit(0)"),
        (0, "os._exit(0)"),
        (5, "os._exit(5)"),
        (3, "sys.exit(3)"),
        (1, "sys.exit('no room')"),
        (1, "raise KeyError('lr')"),
        (137, "os.kill(os.getpid(), 9)"),
        (139, "os.kill(os.getpid(), 11)"),
    ],
)
def test_the_exit_code_is_that_of_the_rank_that_failed(
    idle: Home, tmp_path: Path, code: int, ends: str
) -> None:
    folder = project(
        tmp_path / "w",
        ends="import os, sys\nif os.environ['RANK'] == '1':\n    print('about to end', "
        f"file=sys.stderr)\n    {ends}\n",
    )
    done = troupe_in(folder, *two("ends.py"))
    assert done.returncode == code, done.stderr
    if code:
        assert "LaunchError" in done.stderr and "rank 1" in done.stderr
        assert ("about to end" in done.stderr) and ("no room" in done.stderr) == ("no room" in ends)


def test_an_exception_is_shown_as_python_shows_it_without_the_frames_that_ran_the_script(
    idle: Home, tmp_path: Path
) -> None:
    folder = project(tmp_path / "w", bad="def f():\n    raise ValueError('too deep')\nf()\n")
    python = subprocess.run(
        [sys.executable, "bad.py"], cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    done = troupe_in(folder, "submit", "--quiet", "bad.py")
    assert done.returncode == 1
    rank_said = [
        line.removeprefix("[rank0]: ") for line in done.stderr.splitlines()
    ]  # torch's own hook puts that in front
    assert rank_said[: len(python.stderr.splitlines())] == python.stderr.splitlines()


def test_a_rank_that_fails_is_started_again_as_often_as_asked(idle: Home, tmp_path: Path) -> None:
    folder = project(
        tmp_path / "w",
        again="""
import os, sys
count, most = os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["TORCHELASTIC_MAX_RESTARTS"]
print("attempt", count, "of", most, flush=True)
open("both", "r" if os.environ["RANK"] == "0" else "w")  # waits for the other rank: whose peer has ended is ended, and may have said nothing
sys.exit(0 if count == "1" else 5)
""",
    )
    os.mkfifo(folder / "both")
    assert (
        printed(troupe_in(folder, *two("--max-restarts", "1", "again.py")))
        == ["attempt 0 of 1"] * 2 + ["attempt 1 of 1"] * 2
    )
    assert troupe_in(folder, *two("again.py")).returncode == 5


WAITS = """
import os, signal, sys, threading
print("running", os.environ["RANK"], flush=True)
try:
    threading.Event().wait()
finally:
    open(f"last-word-{os.environ['RANK']}", "w").write("x")
"""


def _runs(process: subprocess.Popen) -> None:
    assert process.stdout is not None
    assert sorted([process.stdout.readline(), process.stdout.readline()]) == [
        "running 0\n",
        "running 1\n",
    ]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("how", [[], ["--fresh"]], ids=["forked", "fresh"])
def test_ctrl_c_and_sigterm_give_the_ranks_their_last_word_and_leave_nothing(
    idle: Home, tmp_path: Path, number: int, code: int, how: list[str]
) -> None:
    folder = project(tmp_path / "w", waits=WAITS)
    process = started_in(folder, *two(*how, "waits.py"))
    _runs(process)
    process.send_signal(number)
    _, said = process.communicate(timeout=LIMIT_S)
    assert process.returncode == code, said
    assert "cancelled" in said
    if number == signal.SIGINT or not how:  # Python itself ends by SIGTERM at once
        assert sorted(each.name for each in folder.glob("last-word-*")) == [
            "last-word-0",
            "last-word-1",
        ]


@pytest.mark.parametrize("how", [[], ["--fresh"]], ids=["forked", "fresh"])
def test_a_detached_launch_outlives_its_caller_and_is_cancelled_by_its_id(
    idle: Home, tmp_path: Path, how: list[str]
) -> None:
    folder = project(tmp_path / "w", waits=WAITS)
    done = troupe_in(folder, *two("--detach", "--name", "waiting", *how, "waits.py"))
    assert done.returncode == 0, done.stderr
    launch = done.stdout.strip()
    assert done.stdout == f"{launch}\n" and len(launch) == 32
    eventually(lambda: idle.run("logs", launch).stdout.count("running") == 2, what="both ranks")
    assert "waiting" in idle.run("list", "launches").stdout
    assert idle.json("cancel", launch)["outcome"] == "cancelled"


def test_a_variable_that_is_given_reaches_the_ranks_and_no_status(
    idle: Home, tmp_path: Path
) -> None:
    folder = project(
        tmp_path / "w", shows="import os\nprint(len(os.environ['API_KEY']), os.environ['HERE'])\n"
    )
    secret = "f00d-cafe-secret"
    done = troupe_in(
        folder,
        *two("--env", f"API_KEY={secret}", "--env", "HERE", "shows.py"),
        env={"HERE": "as set"},
    )
    assert printed(done) == [f"{len(secret)} as set"] * 2
    shown = [
        done.stdout,
        done.stderr,
        *(idle.run(*words, "--json").stdout for words in (["status"], ["list", "launches"])),
    ]
    handle = submit_command(
        [str(folder / "shows.py")],
        processes=1,
        remote=True,
        runtime_env={"env_vars": {"API_KEY": secret, "HERE": "1"}},
    )
    handle.result(timeout=LIMIT_S)
    shown.append(json.dumps(handle.status(), default=str))
    assert all(secret not in each for each in shown)


def test_from_python_the_handle_is_that_of_other_launches(idle: Home, tmp_path: Path) -> None:
    script = (
        project(tmp_path / "w", prints="import sys\nprint('hello', sys.argv[1:])\n") / "prints.py"
    )
    handle = submit_command([str(script), "a"], processes=2, nodes=1, remote=True)
    assert handle.result(timeout=LIMIT_S) == [None, None]
    assert sorted(handle.logs()) == ["[0] hello ['a']", "[1] hello ['a']"]
    assert handle.status()["name"] == "prints.py"
    script.write_text("import sys\nsys.exit(4)\n")
    with pytest.raises(exceptions.LaunchError) as failed:
        submit_command([str(script)], processes=1, remote=True, fresh=True).result(timeout=LIMIT_S)
    assert failed.value.exit_code == 4 and failed.value.rank == 0


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: submit_command("train.py", processes=1), TypeError, "list of words"),
        (lambda: submit_command([], processes=1), ValueError, "nothing to run"),
        (
            lambda: submit_command(["x.py"]),
            TypeError,
            "submit_command takes exactly one of gpus= and processes=",
        ),
        (
            lambda: submit_command(["x.py"], processes=1, remote=True),
            FileNotFoundError,
            "no script x.py",
        ),
        (
            lambda: submit_command(["x.py"], processes=2, nodes=3, remote=True),
            ValueError,
            "nodes=3 needs as many ranks, and the launch has 2: some nodes would have none",
        ),
        (lambda: submit_command(["x.py"], nproc=1), TypeError, "submit_command has no nproc="),
        (
            lambda: submit_command(["--", "no-such-command"], processes=1, remote=True),
            FileNotFoundError,
            "no command no-such-command",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_before_there_are_ranks(
    idle: Home, call: object, kind: type, words: str
) -> None:
    with pytest.raises(kind, match=words):
        call()  # type: ignore[operator]
    assert troupe.available_resources() == troupe.cluster_resources()
