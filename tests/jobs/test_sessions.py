# Method: programs in processes of their own that leave what they have made on a cluster, by an end or
#     by SIGKILL, and others that find it again; a real kernel, restarted; the page, block by block.
from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually
from gate import Gate

import troupe

PAGE = Path(__file__).parents[2] / "docs/guides/day_with_a_cluster.md"
IN_A_TEST = {"troupe start --head\n": "troupe start --head --port 0 --num-cpus 8\n"}
"""What the test says in place of a line of the page: another port, CPUs for all at once."""

LEFT = """
import os, signal, sys, troupe
from troupe.launch import distributed
troupe.init("auto", namespace="day")
@distributed(processes=2, remote=True)
def train(path):
    with open(path, "rb", buffering=0) as gate:
        return len(gate.read(1))
@troupe.remote
class Counter:
    count = 0
    def add(self):
        self.count += 1
        return self.count
counter = Counter.options(name="counter", lifetime="detached").remote()
Counter.options(name="mine").remote()
assert troupe.get(counter.add.remote()) == 1
print(train.options(detach=True).submit(sys.argv[1]).id, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
CELL = """
import troupe
troupe.init("auto")
@troupe.remote
class Kept:
    def pid(self):
        import os
        return os.getpid()
try:
    kept = troupe.get_actor("kept")
    how = "found"
except ValueError:
    kept = Kept.options(name="kept", lifetime="detached").remote()
    how = "made"
print(how, troupe.get(kept.pid.remote()))
"""


def test_a_driver_that_was_killed_leaves_what_is_detached_to_the_next(
    cluster: Home, tmp_path: Path
) -> None:
    gate = Gate(tmp_path / "gate")
    script = tmp_path / "left.py"
    script.write_text(LEFT)
    done = subprocess.run(
        [sys.executable, script, gate.path], capture_output=True, text=True, timeout=3 * TIMEOUT_S
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    handle = troupe.launch.get(done.stdout.strip()[:12])
    assert not handle.done(), "it waits for the gate"
    gate.open()
    eventually(
        lambda: {"mine"}.isdisjoint(each["name"] for each in _alive()),
        what="the end of the actor that was not detached",
    )
    counter = troupe.get_actor("counter", namespace="day")
    assert troupe.get(counter.add.remote(), timeout=TIMEOUT_S) == 2
    troupe.kill(counter)
    assert handle.result(TIMEOUT_S) == [1, 1]
    again = troupe.launch.get(handle.id)
    assert again.done() and again.result() == [1, 1], "one that has ended is found, too"
    job = cluster.run("job", "submit", "--", "sh", "-c", "echo done").stdout.strip()
    of_job = troupe.launch.get(job)
    assert of_job.wait_end(TIMEOUT_S)["outcome"] == "succeeded" and list(of_job.logs(0)) == ["done"]
    gate.close()
    with pytest.raises(ValueError, match="no launch has"):
        troupe.launch.get("nothing")


def _alive() -> list[dict]:
    return [each for each in troupe.state.list_actors() if each["state"] != "dead"]


def test_a_kernel_that_is_restarted_finds_what_the_last_one_has_named(cluster: Home) -> None:
    pytest.importorskip("ipykernel")
    from jupyter_client.manager import start_new_kernel

    variables = {
        name: value for name, value in os.environ.items() if not name.startswith("TROUPE_NAME")
    }
    manager, client = start_new_kernel(
        kernel_name="python3", env={**variables, "JPY_SESSION_NAME": "/notebooks/day.ipynb"}
    )
    try:
        first = _printed(client)
        manager.restart_kernel(now=True)
        client.wait_for_ready(timeout=TIMEOUT_S)
        second = _printed(client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert (first.split()[0], second.split()[0]) == ("made", "found"), (first, second)
    assert first.split()[1] == second.split()[1]
    (namespace,) = {
        each["namespace"] for each in troupe.state.list_actors() if each["name"] == "kept"
    }
    assert namespace.startswith("notebook-day.ipynb-")
    troupe.kill(troupe.get_actor("kept", namespace=namespace))


def _printed(client: object) -> str:
    """Return the output of the cell in this kernel."""
    said: list[str] = []

    def hear(message: dict) -> None:
        content = message["content"]
        said.append(content.get("text", "") + "\n".join(content.get("traceback", [])))

    client.execute_interactive(CELL, timeout=3 * TIMEOUT_S, output_hook=hear)  # type: ignore[attr-defined]
    return "".join(said)


def test_the_page_of_a_day_runs_as_it_is_printed(home: Home, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    folder, bin_folder = tmp_path / "w", tmp_path / "bin"
    folder.mkdir()
    bin_folder.mkdir()
    for name, line in (("troupe", "-m troupe"), ("python", "")):
        (bin_folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} {line} "$@"\n')
        (bin_folder / name).chmod(0o755)
    variables = {
        **os.environ,
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "TROUPE_QUIET": "1",
    }
    printed = ""
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    for language, block in blocks:
        for line, instead in IN_A_TEST.items():
            block = block.replace(line, instead)
        if language == "python":
            (folder / block.split()[1]).write_text(block)
        elif language == "text":
            assert printed == block
        else:
            done = subprocess.run(
                ["sh", "-eu", "-c", block],
                cwd=folder,
                env=variables,
                capture_output=True,
                text=True,
                timeout=5 * TIMEOUT_S,
            )
            assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
            printed = done.stdout
    assert [language for language, _ in blocks].count("sh") == 4
