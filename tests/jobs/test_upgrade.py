# Method: a head and two nodes, each with a TROUPE_HOME of its own, as on three hosts. The head is
#     stopped alone and started again while a launch and an actor run, then each node is drained,
#     and its worker stopped and started. TROUPE_OLDER_PYTHON names the interpreter of an older
#     version, which all begin as (`./test long upgrade`); else one build is both sides.
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually, running

from troupe._base.identity import short

OLDER = os.environ.get("TROUPE_OLDER_PYTHON", "")
WORK = """
import pathlib, sys, time
from troupe.launch import distributed
gate = pathlib.Path(sys.argv[1])
def work():
    import os
    (gate / f"pid-{os.getpid()}").touch()
    while not (gate / "go").exists():
        time.sleep(0.01)  # lint-ok: a rank that works until the test says so
    return "done"
print(distributed(processes=1, remote=True)(work).options(detach=True).submit().id)
"""
ACTOR = """
import troupe
troupe.init(namespace="upgrade")
class Counter:
    def __init__(self):
        self.n = 0
    def add(self):
        self.n += 1
        return self.n
Counter = troupe.remote(num_cpus=0, lifetime="detached", max_restarts=-1)(Counter)
print(troupe.get(Counter.options(name="c", get_if_exists=True).remote().add.remote()))
"""


class Host:
    """A host of its own: a TROUPE_HOME, and the version of troupe that is used there now."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700)
        self.env = {**os.environ, "TROUPE_HOME": str(folder)}
        self.older = bool(OLDER)

    def run(self, *line: str, code: bool = False, code_wanted: int = 0) -> str:
        """Run `troupe LINE`, or a program, and return what it prints."""
        program, env = (OLDER, dict(self.env)) if self.older else (sys.executable, self.env)
        if self.older:
            for name in ("PYTHONPATH", "TROUPE_BIN_DIR"):
                env.pop(name, None)
        begin = [program, "-c"] if code else [program, "-m", "troupe"]
        done = subprocess.run(
            [*begin, *line], env=env, capture_output=True, text=True, timeout=3 * TIMEOUT_S
        )
        assert done.returncode == code_wanted, done.stderr
        return done.stdout

    def json(self, *line: str) -> Any:
        return json.loads(self.run(*line, "--json"))


@pytest.mark.long  # about thirty commands, one after the other
def test_a_head_and_its_workers_are_upgraded_one_after_the_other(
    home: Home, tmp_path: Path
) -> None:
    first = Host(tmp_path / "first")
    head = first.json("start", "--head", "--no-worker", "--port", "0")
    first.env["TROUPE_ADDRESS"] = head["address"]
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text(first.run("token", "create"))
    hosts = {name: Host(tmp_path / name) for name in ("a", "b")}

    def join(name: str) -> int:
        line = ("--address", head["address"], "--token-file", str(token), "--force-tcp")
        return int(hosts[name].json("start", *line, "--node-name", name, "--num-cpus", "1")["pid"])

    def status() -> dict[str, dict[str, Any]]:
        nodes = first.json("status")["nodes"]
        return {each["name"]: each for each in nodes if each["state"] != "dead"}

    def node_id(name: str) -> str:
        return str(status()[name]["node_id"])

    def all_are(state: str, *names: str) -> None:
        eventually(
            lambda: all(
                name in (now := status()) and now[name]["state"] == state for name in names
            ),
            what=f"that {names} are {state}",
        )

    def renew(name: str) -> None:
        """Stop the worker of a host, and start one of the newer version."""
        hosts[name].older = False
        hosts[name].run("stop")
        assert not running(workers[name])
        workers[name] = join(name)
        all_are("alive", name)

    workers = {name: join(name) for name in hosts}
    launch = first.run(WORK, str(tmp_path), code=True).strip()
    assert first.run(ACTOR, code=True) == "1\n"
    eventually(lambda: list(tmp_path.glob("pid-*")), what="the rank")
    rank = int(next(tmp_path.glob("pid-*")).name[4:])

    first.older = False
    first.run("stop", "--only", "head")
    assert not running(head["pid"]) and running(rank) and all(map(running, workers.values()))
    again = first.json("start", "--head", "--no-worker")
    assert again["resumed"] and again["address"] == head["address"]
    all_are("alive", "a", "b")
    assert running(rank) and first.run(ACTOR, code=True) == "2\n", "the actor's state is there"
    first.run(f"{ACTOR}troupe.kill(troupe.get_actor('c'))", code=True)

    known = {each["node_id"]: name for name, each in status().items()}
    busy = known[first.json("list", "launches")[0]["nodes"][0]]
    idle = "b" if busy == "a" else "a"
    assert first.json("drain", idle) == {"node": node_id(idle), "name": idle, "running": []}
    renew(idle)
    left = json.loads(first.run("drain", busy, "--timeout", "1s", "--json", code_wanted=1))
    assert [each.split()[:2] for each in left["running"]] == [["launch", short(launch)]]
    assert status()[busy]["state"] == "draining" and running(rank)
    (tmp_path / "go").touch()
    assert "nothing runs there" in first.run("drain", busy)
    renew(busy)
    ended = first.json("list", "launches")[0]
    assert (ended["id"], ended["outcome"], ended["epoch"]) == (launch, "succeeded", 1)
    for host in (*hosts.values(), first):
        host.run("stop")
    assert not any(map(running, workers.values()))
