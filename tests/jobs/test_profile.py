"""`troupe profile`: real ranks and an actor that are busy in a known place, sampled from
outside."""

from __future__ import annotations

import json
import os
from pathlib import Path

from e2e_conftest import Home

import troupe
from troupe.launch import distributed


def names_in(document: dict) -> dict[str, set[str]]:
    """The functions that each profile of a speedscope document has samples of."""
    frames = [each["name"] for each in document["shared"]["frames"]]
    return {
        each["name"]: {frames[at] for sample in each["samples"] for at in sample}
        for each in document["profiles"]
    }


def test_ranks_and_where_they_are_busy(idle: Home, tmp_path: Path) -> None:
    @distributed(processes=2, remote=True)
    def spin() -> None:
        def busy_loop() -> None:
            while True:
                pass

        def waits() -> None:
            import threading

            threading.Event().wait()

        import os

        print("going", flush=True)
        busy_loop() if os.environ["RANK"] == "0" else waits()

    path = tmp_path / "two.speedscope.json"
    handle = spin.submit()
    try:
        for rank in (0, 1):
            assert next(handle.logs(rank, follow=True)) == "going"
        said = idle.json("profile", handle.id, "--seconds", "1", "--idle", "-o", str(path))
        picture = idle.run(
            *("profile", handle.id, "--seconds", "1", "--rank", "0", "--format", "flamegraph"),
            *("-o", str(tmp_path / "one.svg")),
        )
        nobody = idle.run("profile", handle.id, "--rank", "7", ok=False)
    finally:
        handle.cancel()
    assert said["files"] == [str(path)]
    assert [each["rank"] for each in said["processes"]] == [0, 1]
    assert all(each["samples"] > 0 for each in said["processes"]), said
    names = names_in(json.loads(path.read_text()))
    for rank, function in ((0, "busy_loop"), (1, "waits")):
        own = set().union(*(found for name, found in names.items() if f"rank {rank}," in name))
        assert any(function in name for name in own), (rank, own)
    assert "<svg" in (tmp_path / "one.svg").read_text() and "one.svg" in picture.stdout
    assert nobody.returncode == 2 and "ranks 0 to 1, not 7" in nobody.stderr


def test_an_actor_and_a_process_of_this_host(idle: Home, tmp_path: Path) -> None:
    @troupe.remote
    class Waits:
        def ping(self) -> int:
            return os.getpid()

    actor = Waits.remote()
    pid = troupe.get(actor.ping.remote())
    row = next(each for each in idle.json("list", "actors") if each["pid"] == pid)
    path = tmp_path / "actor.txt"
    where = ["--idle", "--format", "collapsed", "-o", str(path)]
    idle.run("profile", row["actor_id"], "--seconds", "1", *where)
    assert f"pid {pid} on " in path.read_text()
    done = idle.run("profile", "--pid", str(2**22 + 1), ok=False)
    assert done.returncode == 2 and "there is no process" in done.stderr
    assert idle.run("profile", "zz", ok=False).returncode == 2
    troupe.kill(actor)
