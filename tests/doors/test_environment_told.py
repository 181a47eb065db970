"""A launch's status names all that came along, and no value of a variable is shown anywhere.

Method: real launches; what anybody of the machine could read is read: command lines of all
processes, status, lists, logs.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import pytest
from conftest import TIMEOUT_S, Home
from installs import wheel
from submits import printed, project, started_in, troupe_in

import troupe
from troupe.launch import distributed

HOLDS = """
import os, sys
print("has it" if os.environ["API_KEY"].endswith("s3cr3t") else "has it not", flush=True)
open(sys.argv[1]).read()
"""


def told(home: Home, launch: str) -> str:
    """All that commands and files tell of a launch, and the command lines of every process."""
    logs = "".join(path.read_text(errors="replace") for path in home.path.rglob("*.log"))
    lines = ""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # the process has ended
            lines += path.read_bytes().decode(errors="replace")
    assert "troupe-worker" in lines
    commands = [
        home.run("status").stdout,
        home.run("list", "launches").stdout,
        home.run("logs", launch).stdout,
        home.run("explain", launch, ok=False).stdout,
    ]
    return "".join([logs, lines, *commands, json.dumps(troupe.state.list_launches(), default=str)])


def test_a_secret_is_told_nowhere(
    idle: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "of-the-caller-s3cr3t")
    folder = project(tmp_path / "w", holds=HOLDS)
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    running = started_in(folder, "submit", "--env", "API_KEY", "holds.py", str(gate))
    assert running.stdout is not None and running.stdout.readline() == "has it\n"
    (launch,) = [each for each in troupe.state.list_launches() if each["name"] == "holds.py"]
    everything = told(idle, launch["id"])
    assert "s3cr3t" not in everything
    gate.write_text("")
    _, errors = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 0 and "s3cr3t" not in errors
    assert "s3cr3t" not in told(idle, launch["id"])


def test_status_tells_all_that_came_along(
    idle: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = project(tmp_path / "lib", **{"__init__.py": "X = 1\n"})
    path = wheel(tmp_path)
    monkeypatch.setenv("WORD", "a-value")
    environment = {
        "working_dir": str(project(tmp_path / "w", a="")),
        "py_modules": [str(module)],
        "pip": [path, "--no-index"],
    }
    handle = distributed(processes=1, remote=True, quiet=True, runtime_env=environment)(
        int
    ).submit()
    handle.result(timeout=3 * TIMEOUT_S)
    found = handle.status()["environment"]
    assert found["working_dir"] == f"{tmp_path / 'w'} (where it lies)" and found["py_modules"] == [
        f"{module} (where it lies)"
    ]
    assert (
        found["pip"] == ["--no-index", path]
        and "WORD" in found["variables"]
        and "WORD" in handle.status()["inherited_env"]
    )
    assert "a-value" not in json.dumps(handle.status())
    plain = distributed(processes=1, remote=True, quiet=True)(int).submit()
    plain.result(timeout=TIMEOUT_S)
    assert (
        plain.status()["environment"]["working_dir"].endswith("(on this host alone, where it lies)")
        and plain.status()["environment"]["pip"] == []
    )


def test_a_range_of_nodes_that_is_none(idle: Home, tmp_path: Path) -> None:
    done = troupe_in(
        project(tmp_path / "w", nothing="pass\n"), "submit", "--nnodes", "2:1", "nothing.py"
    )
    assert done.returncode == 2 and "2:1" in done.stderr, done.stderr


@pytest.mark.parametrize("how", [[], ["--fresh"]], ids=["forked", "fresh"])
def test_a_module_beside_the_script_that_shadows_one_of_python_s_is_named(
    idle: Home, tmp_path: Path, how: list[str]
) -> None:
    """The command itself is not troubled by it either."""
    folder = project(
        tmp_path / "s", random="VALUE = 1\n", wave="", opens="import wave\nwave.open\n"
    )
    done = troupe_in(folder, "submit", *how, "opens.py")
    assert (
        done.returncode == 1
        and f"before Python's own of the same name, for libraries too: {folder / 'wave.py'}"
        in done.stderr.replace(f"{folder / 'random.py'}, ", "")
    ), done.stderr
    assert printed(
        troupe_in(project(tmp_path / "t", opens="print('fine')\n"), "submit", *how, "opens.py")
    ) == ["fine"]
