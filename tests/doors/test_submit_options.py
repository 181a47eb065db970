"""The options of `troupe submit` and `troupe torchrun`: torchrun's own, what they show, and what is
refused.

Method: the command itself; torchrun's own parser says which options there are.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from e2e_conftest import Home
from submits import LIMIT_S, SAYS, printed, project, started_in, torchrun_in, troupe_in, two

from troupe.cli import _submit, _torchrun_words

ENVIRONMENT = """
import os, sys
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_NAME", "ROLE_RANK", "ROLE_WORLD_SIZE",
         "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_USE_AGENT_STORE", "OMP_NUM_THREADS")
assert os.environ["MASTER_ADDR"] and int(os.environ["MASTER_PORT"])
# In one go: torchrun's Pythons are unbuffered, and print() would write the end of the line by itself.
sys.stdout.write(" ".join([*(f"{name}={os.environ.get(name)}" for name in names), *sys.argv[1:]]) + "\\n")
"""


def test_every_option_of_torchrun_is_taken(cluster: Home) -> None:
    run = pytest.importorskip("torch.distributed.run")
    asked = {
        each for action in run.get_args_parser()._actions for each in action.option_strings
    } - {"--help", "-h"}
    for command in (_submit.submit, _submit.torchrun):
        taken = {
            each
            for parameter in command.params
            for each in (*parameter.opts, *parameter.secondary_opts)
        }
        assert {each.replace("_", "-") for each in asked} <= taken, (
            f"{command.name} has all of them"
        )


def test_the_variables_are_torchruns(idle: Home, tmp_path: Path) -> None:
    folder = project(tmp_path / "w", shows=ENVIRONMENT)
    torchrun = printed(
        torchrun_in(
            folder,
            "--standalone",
            "--nproc-per-node",
            "2",
            "--role",
            "trainer",
            "--max-restarts",
            "2",
            "shows.py",
            "a",
        )
    )
    assert (
        printed(
            troupe_in(folder, *two("--role", "trainer", "--max-restarts", "2", "shows.py", "a"))
        )
        == torchrun
    )


def test_hyphens_and_underscores_are_the_same_and_pet_variables_are_defaults(
    idle: Home, tmp_path: Path
) -> None:
    folder = project(tmp_path / "w", says=SAYS)
    for words, env in (
        (["--nproc_per_node=2"], {}),
        (["--nproc-per-node", "2"], {}),
        ([], {"PET_NPROC_PER_NODE": "2"}),
        (["--nproc_per_node", "2"], {"PET_NPROC_PER_NODE": "3"}),
    ):
        done = troupe_in(folder, "torchrun", *words, "says.py", env=env)
        assert printed(done) == ["out 0", "out 1"]


def test_what_stands_after_the_script_is_the_scripts(idle: Home, tmp_path: Path) -> None:
    folder = project(tmp_path / "w", words="import sys\nprint(sys.argv[1:])\n")
    line = ["--nproc_per_node", "9", "--json", "-m", "--", "--no_such", "--help"]
    assert printed(troupe_in(folder, "submit", "words.py", *line)) == [str(line)]


def test_tee_redirects_and_filter_choose_what_the_console_shows(idle: Home, tmp_path: Path) -> None:
    folder = project(tmp_path / "w", says=SAYS)

    def shown(*words: str) -> set[str]:
        done = troupe_in(folder, *two("--quiet", *words, "says.py"))
        assert done.returncode == 0, done.stderr
        assert not [line for line in done.stdout.splitlines() if "err" in line]
        return {*done.stdout.splitlines(), *done.stderr.splitlines()}

    assert shown() == {"out 0", "out 1", "err 0", "err 1"}
    assert shown("--tee", "1", "--role", "worker") == {
        "[worker0]:out 0",
        "[worker1]:out 1",
        "err 0",
        "err 1",
    }
    assert shown("-r", "0:3,1:1") == {"err 1"}
    assert shown("--redirects", "3") == set()
    assert shown("--local_ranks_filter", "1") == {"out 1", "err 1"}


SAYS_IN_ONE_GO = """
import os, sys
sys.stdout.write(f"out {os.environ['RANK']}\\n")
sys.stdout.write("loss, 0.5\\n")
sys.stderr.write(f"err {os.environ['RANK']}\\n")
"""


def test_prefixes_and_filtered_files_are_torchruns(idle: Home, tmp_path: Path) -> None:
    """Teed streams have prefixes: by default the role and the local rank, else by the template.

    A filter with two commas has one of its own.
    """
    folder = project(tmp_path / "w", says=SAYS_IN_ONE_GO)
    words = [
        "--nproc-per-node",
        "2",
        "--tee",
        "0:3,1:2",
        "--duplicate_stdout_filters",
        "s,, 0,other",
        "--duplicate-stderr-filters",
        "err",
        "says.py",
    ]
    seen = []
    for template, run in (
        ({}, None),
        (
            {
                "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "<${role_name} ${rank}/${local_rank} "
                "${other}> "
            },
            None,
        ),
        ({}, torchrun_in),
    ):
        logs = tmp_path / f"logs{len(seen)}"
        done = (
            run(folder, "--log-dir", str(logs), *words)
            if run
            else troupe_in(folder, "torchrun", "--log-dir", str(logs), *words, env=template)
        )
        said = [
            *printed(done),
            *(line for line in done.stderr.splitlines() if line.startswith(("[", "<"))),
        ]
        seen.append(
            (
                sorted(said),
                {
                    path.name: sorted(path.read_text().splitlines())
                    for path in logs.rglob("filtered_*")
                },
            )
        )
    mine, templated, torchruns = seen
    assert mine == torchruns
    assert mine[1] == {
        "filtered_stdout.log": ["[default0]:loss, 0.5"],
        "filtered_stderr.log": ["[default0]:err 0", "[default1]:err 1"],
    }
    assert templated == tuple(
        json.loads(
            json.dumps(mine)
            .replace("[default0]:", "<default 0/0 ${other}> ")
            .replace("[default1]:", "<default 1/1 ${other}> ")
        )
    )


def test_filters_without_a_file_or_teed_streams_are_said_to_have_no_effect(
    idle: Home, tmp_path: Path
) -> None:
    done = troupe_in(
        project(tmp_path / "w", says=SAYS),
        "torchrun",
        "--log-dir",
        "logs",
        "--duplicate-stdout-filters",
        "out",
        "says.py",
    )
    assert printed(done) == ["out 0"] and done.stderr.count("they have no effect") == 1


def files_below(folder: Path) -> dict[str, str]:
    """The text of each real file, by its path."""
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


WRITTEN = {
    f"attempt_0/{rank}/{name}": f"{word} {rank}\n"
    for rank in (0, 1)
    for name, word in (("stdout.log", "out"), ("stderr.log", "err"))
}


def test_log_dir_has_files_that_outlive_the_cluster(idle: Home, tmp_path: Path) -> None:
    """On the file system of the cluster's folder and on another one, by links and by copies, and
    with the id that the run was given."""
    folder = project(tmp_path / "w", says=SAYS)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        for logs in (folder / "logs", Path(elsewhere, "logs")):
            done = troupe_in(
                folder,
                "torchrun",
                "--standalone",
                "--nproc-per-node",
                "2",
                "-r",
                "3",
                "--log-dir",
                str(logs),
                "says.py",
            )
            assert done.returncode == 0 and "err" not in done.stdout, done.stderr
            (run,) = logs.iterdir()
            assert files_below(run) == WRITTEN


FAILS = """
import os, sys, threading
from torch.distributed.elastic.multiprocessing.errors import record

def main():
    sys.stdout.write(f"id {os.environ['TORCHELASTIC_RUN_ID']} {sys.argv[1]}\\n")  # in one go, as above
    sys.stdout.flush()
    if os.environ["RANK"] == "1":
        while not os.path.exists(sys.argv[2]):
            os.sched_yield()
        raise KeyError("lr")
    open(sys.argv[2], "w").close()
    threading.Event().wait()

(main if "--run-path" in sys.argv else record(main))()
"""


@pytest.mark.parametrize(
    ("logs", "run_path"),
    [(True, False), (False, True)],
    ids=["log-dir", "no log-dir, and a script that records nothing"],
)
def test_the_error_file_of_the_rank_that_failed_is_passed_on_as_torchrun_does(
    idle: Home, tmp_path: Path, logs: bool, run_path: bool
) -> None:
    folder = project(tmp_path / "w", fails=FAILS)
    (tmp_path / "tmp").mkdir()
    asked = ["--run-path"] if run_path else []
    words = [
        "--nproc-per-node",
        "2",
        "--rdzv-id",
        "job7",
        *(["--log-dir", "logs"] if logs else []),
        *asked,
        "fails.py",
        "cuda:${local_rank}",
    ]
    said = {}
    for who in ("torchrun", "troupe"):
        file = tmp_path / f"{who}.json"
        command = (
            [sys.executable, "-m", "torch.distributed.run"]
            if who == "torchrun"
            else [sys.executable, "-m", "troupe", "torchrun"]
        )
        env = {
            **os.environ,
            "TORCHELASTIC_ERROR_FILE": str(file),
            **({"TMPDIR": str(tmp_path / "tmp")} if who == "troupe" else {}),
        }
        done = subprocess.run(
            [*command, *words, f"{who}.printed", *asked],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env=env,
        )
        message = json.loads(file.read_text())["message"]
        said[who] = (
            done.returncode,
            sorted(done.stdout.splitlines()),
            message["message"],
            message["errorCode"],
        )
        assert "in main" in message["extraInfo"]["py_callstack"]
    assert (
        said["troupe"]
        == said["torchrun"]
        == (1, ["id job7 cuda:0", "id job7 cuda:1"], "KeyError: 'lr'", 1)
    )
    assert not list((tmp_path / "tmp").glob("troupe-errors-*"))
    if logs:
        mine, other = sorted(each for each in (folder / "logs").iterdir())
        assert mine.name.startswith("job7_") and other.name.startswith("job7_")
        assert sum(path.name == "error.json" for path in (folder / "logs").rglob("*")) == 2, (
            "each has that of rank 1"
        )


SAVES = """
import os, signal, sys, threading

def save(number, frame):
    print("saves", flush=True)
    threading.Event().wait(12)
    print("saved", flush=True)
    sys.exit(0)

signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
while len(sys.argv) == 1 or os.environ["RANK"] == "0":
    threading.Event().wait(60)
sys.exit(3)
"""


def test_ranks_have_torchruns_time_to_save_and_the_exit_code_is_torchruns(
    idle: Home, tmp_path: Path
) -> None:
    """More than the 10 s of other launches, after a signal to the command and after another rank's
    failure, side by side."""
    folder = project(tmp_path / "w", saves=SAVES)
    line = ("torchrun", "--nproc-per-node", "2", "saves.py")
    failing, told = started_in(folder, *line, "fail"), started_in(folder, *line)
    assert told.stdout is not None
    assert [told.stdout.readline() for _ in range(2)] == ["ready\n"] * 2
    told.send_signal(signal.SIGTERM)
    outs = [each.communicate(timeout=LIMIT_S)[0] for each in (failing, told)]
    assert (failing.returncode, told.returncode) == (1, 1)
    assert [out.count("saved") for out in outs] == [1, 2], outs


HEEDS = """
import signal, sys, threading

def end(number, frame):
    print("got", signal.Signals(number).name, flush=True)
    sys.exit(0)

for number in (signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, end)
print("ready", flush=True)
while True:
    threading.Event().wait(60)
"""


def test_signals_to_handle_are_passed_on_to_the_ranks_as_torchrun_does(
    idle: Home, tmp_path: Path
) -> None:
    """Under torchrun's name SIGQUIT by default, also one that a shell has it ignore; under Troupe's
    own SIGTERM in its place, or the signal itself where it was asked for."""
    folder = project(tmp_path / "w", heeds=HEEDS)
    for words, told, got, code in (
        (["torchrun"], signal.SIGQUIT, "SIGQUIT", 1),
        (["submit"], signal.SIGQUIT, "SIGTERM", 128 + signal.SIGQUIT),
        (
            ["submit", "--signals-to-handle", "SIGTERM, SIGUSR1"],
            signal.SIGUSR1,
            "SIGUSR1",
            128 + signal.SIGUSR1,
        ),
    ):
        ignored = [] if words == ["submit"] else [told]
        command = started_in(folder, *words, "heeds.py", ignored=ignored)
        assert command.stdout is not None and command.stdout.readline() == "ready\n"
        command.send_signal(told)
        out = command.communicate(timeout=LIMIT_S)[0]
        assert (command.returncode, out) == (code, f"got {got}\n")


FAILS_WHEN_TOLD = """
import signal, threading
from torch.distributed.elastic.multiprocessing.errors import record

def end(number, frame):
    raise KeyError("told")

@record
def main():
    signal.signal(signal.SIGTERM, end)
    print("ready", flush=True)
    while True:
        threading.Event().wait(60)

main()
"""


def test_the_error_file_of_a_launcher_that_was_told_to_end_is_torchruns(
    idle: Home, tmp_path: Path
) -> None:
    """The file names the signal, also where a rank has recorded an exception on it; for a launch
    that never began it names why."""
    folder = project(tmp_path / "w", told=FAILS_WHEN_TOLD)
    commands = {}
    for who, module in (
        ("torchrun", ["torch.distributed.run"]),
        ("troupe", ["troupe", "torchrun"]),
    ):
        env = {**os.environ, "TORCHELASTIC_ERROR_FILE": str(tmp_path / f"{who}.json")}
        commands[who] = subprocess.Popen(
            [sys.executable, "-m", *module, "told.py"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=env,
        )
    said = {}
    for who, command in commands.items():
        assert command.stdout is not None and command.stdout.readline() == "ready\n"
        command.send_signal(signal.SIGTERM)
        command.communicate(timeout=LIMIT_S)
        document = json.loads((tmp_path / f"{who}.json").read_text())
        assert (
            "Traceback" in document["message"]["extraInfo"].pop("py_callstack")
            and int(document["message"]["extraInfo"].pop("timestamp")) > 0
        )
        said[who] = (
            command.returncode,
            json.loads(json.dumps(document).replace(str(command.pid), "PID")),
        )
    assert (
        said["troupe"]
        == said["torchrun"]
        == (
            1,
            {
                "message": {
                    "message": "SignalException: Process PID got signal: 15",
                    "extraInfo": {},
                }
            },
        )
    )
    refused = troupe_in(
        folder,
        "torchrun",
        "--nproc-per-node",
        "9",
        "told.py",
        env={"TORCHELASTIC_ERROR_FILE": str(tmp_path / "refused.json")},
    )
    assert refused.returncode == 1 and json.loads((tmp_path / "refused.json").read_text())[
        "message"
    ]["message"].startswith("PlacementError: ")


def test_python_exec_is_the_ranks_interpreter(idle: Home, tmp_path: Path) -> None:
    """Also for a script that only that one can read: it is not compiled here."""
    folder = project(
        tmp_path / "w",
        **{"odd.py": "no Python at all (\n", "reader.sh": "#!/bin/sh\necho read $1 $2\n"},
    )
    (folder / "reader.sh").chmod(0o700)
    assert printed(
        troupe_in(folder, "torchrun", "odd.py", env={"PYTHON_EXEC": str(folder / "reader.sh")})
    ) == ["read -u odd.py"]


@pytest.mark.parametrize(
    ("words", "env", "said"),
    [
        (["missing.py"], {}, "there is no script missing.py"),
        (["-m", "no_such_module"], {}, "there is no module"),
        (["says.py"], {"PYTHON_EXEC": "/no/such"}, "/no/such, which PYTHON_EXEC names"),
        (["--log-dir", "says.py", "says.py"], {}, "--log-dir says.py is a file, not a folder"),
    ],
)
def test_a_program_or_a_log_folder_that_is_not_there_has_torchruns_exit_code_and_leaves_nothing(
    idle: Home, tmp_path: Path, words: list[str], env: dict, said: str
) -> None:
    folder = project(tmp_path / "w", says=SAYS)
    (tmp_path / "tmp").mkdir()
    done = troupe_in(
        folder,
        "torchrun",
        *words,
        env={
            **env,
            "TMPDIR": str(tmp_path / "tmp"),
            "TORCHELASTIC_ERROR_FILE": str(tmp_path / "error.json"),
        },
    )
    assert done.returncode == 1 and done.stderr.count(said) == 1 and "Traceback" not in done.stderr
    assert not list((tmp_path / "tmp").glob("troupe-errors-*"))


def test_two_submissions_of_one_line_have_the_same_payload(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also with error files that are passed on: where one key stands for both, their payloads are
    compared."""
    lines: list[Any] = []
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error.json"))
    for name, instead in (
        ("_connected", lambda *_: None),
        ("_counts", lambda *_: (2, 0, False)),
        ("_follow", lambda line, *_: lines.append(line) or 0),
    ):
        monkeypatch.setattr(_submit, name, instead)
    monkeypatch.setattr(_submit.workers, "node_infos", lambda _: [])
    script = str(project(tmp_path / "w", says=SAYS) / "says.py")
    for _ in range(2):
        CliRunner().invoke(
            _submit.submit,
            ["--address", "10.0.0.1:6400", "--idempotency-key", "k", script],
            standalone_mode=False,
            catch_exceptions=False,
        )
    assert lines[0] == lines[1] and lines[0].traits["error_base"]


def test_virtual_local_rank_and_the_local_rank_argument(idle: Home, tmp_path: Path) -> None:
    folder = project(
        tmp_path / "w",
        shows="import os, sys\nprint(os.environ['RANK'], os.environ['LOCAL_RANK'], "
        "*sys.argv[1:])\n",
    )
    assert printed(troupe_in(folder, *two("--virtual-local-rank", "shows.py"))) == ["0 0", "1 0"]
    assert printed(troupe_in(folder, *two("--local-rank-argument", "shows.py", "x"))) == [
        "0 0 --local_rank=0 x",
        "1 1 --local_rank=1 x",
    ]


def test_run_path_runs_folders_and_archives_with_a_main(idle: Home, tmp_path: Path) -> None:
    folder = project(tmp_path / "w")
    project(folder / "app", __main__="import beside\nprint(__name__, beside.X)\n", beside="X = 7\n")
    assert printed(troupe_in(folder, *two("--run-path", "app"))) == ["__main__ 7"] * 2


def test_options_about_agents_are_taken_and_said_to_be_unused_once(
    idle: Home, tmp_path: Path
) -> None:
    folder = project(tmp_path / "w", says=SAYS)
    done = troupe_in(
        folder,
        "torchrun",
        "--nnodes=1",
        "--nproc_per_node=2",
        "--rdzv_backend=c10d",
        "--rdzv_endpoint=localhost:0",
        "--rdzv-id",
        "7",
        "--monitor_interval",
        "5",
        "says.py",
    )
    assert printed(done) == ["out 0", "out 1"]
    (line,) = [each for each in done.stderr.splitlines() if "not used" in each]
    assert (
        all(name in line for name in ("--rdzv-backend", "--rdzv-endpoint", "--monitor-interval"))
        and "--rdzv-id" not in line
    )


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--nproc-per-nodes", "2", "says.py"], 2, "'--nproc-per-node'"),
        (["--standalon", "says.py"], 2, "'--standalone'"),
        (["--nnodes", "2:1", "says.py"], 2, "1:2 is meant perhaps"),
        (["--nnodes", "0", "says.py"], 2, "at least one node"),
        (["--nproc-per-node", "many", "says.py"], 2, "one of auto, cpu, gpu"),
        (["--tee", "4", "says.py"], 2, "names no streams"),
        (["--ranks", "2", "--nnodes", "1", "says.py"], 2, "give one or the other"),
        (["--env", "NOT_SET_HERE", "says.py"], 2, "NOT_SET_HERE is not set here"),
        (["--env", "=x", "says.py"], 2, "is no name"),
        (["--signals-to-handle", "SIGFOO", "says.py"], 2, "'SIGFOO' is no signal"),
        (["--signals-to-handle", "SIGKILL", "says.py"], 2, "no program can handle SIGKILL"),
        ([], 2, "nothing to run"),
        (["missing.py"], 2, "there is no script missing.py in"),
        (["folder"], 2, "folder is a folder, not a script"),
        (["-m", "no_such_module"], 2, "there is no module no_such_module"),
        (["-m", "says.more"], 2, "says is a module, no package"),
        (["--", "no-such-command"], 2, "there is no command no-such-command"),
        (["broken.py"], 1, "SyntaxError"),
        (["--nproc-per-node", "9", "says.py"], 1, "--cpus-per-rank 0"),
        (
            ["--nproc-per-node", "gpu", "--no-gpus", "says.py"],
            2,
            "no node of the cluster has a GPU",
        ),
        (["--nnodes", "3", "says.py"], 1, "PlacementError"),
    ],
)
def test_bad_input_is_one_short_error_that_says_what_to_do(
    idle: Home, tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    folder = project(tmp_path / "w", says=SAYS, broken="x = (\n")
    (folder / "folder").mkdir()
    done = troupe_in(folder, "submit", *words)
    assert done.returncode == code, done.stderr
    assert done.stdout == "" and "Traceback" not in done.stderr
    assert done.stderr.count(said) == 1, done.stderr
    assert len(done.stderr.splitlines()) <= 10


@pytest.mark.parametrize(("text", "nodes"), [("4", (4, 4)), ("2:4", (2, 4)), ("1:1", (1, 1))])
def test_numbers_of_nodes(text: str, nodes: tuple[int, int]) -> None:
    assert _torchrun_words.nodes(text) == nodes


def test_streams_by_local_rank() -> None:
    console = _torchrun_words.Console(
        tee=_torchrun_words.streams("0:1,1:3"), redirects=_torchrun_words.streams("3")
    )
    assert (
        console.label(5, 0, is_error=False) == "[default0]:"
        and console.label(5, 0, is_error=True) is None
    )
    assert (
        console.label(6, 1, is_error=True) == "[default1]:"
        and console.label(7, 2, is_error=False) is None
    )
    assert os.environ.get("PET_TEE") is None
