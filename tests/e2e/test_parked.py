"""Processes that the zygote has parked: used by launches and actors, replaced, never left behind."""
from __future__ import annotations

import os
import signal

from conftest import Home, eventually, parked

import troupe
from troupe.launch import distributed

PARKED_MIN = 6


def all_parked(home: Home) -> set[int]:
    """Pids of the parked processes, once there are as many as there are to be."""
    eventually(lambda: len(parked(home)) >= PARKED_MIN, what=f"{PARKED_MIN} parked processes ({home.processes()})")
    return parked(home)


def test_ranks_and_actors_take_parked_processes_which_are_replaced(idle: Home) -> None:
    def draw() -> tuple[int, tuple[float, float]]:
        import random

        try:
            from torch import rand
        except ImportError:
            return os.getpid(), (random.random(), random.random())
        return os.getpid(), (random.random(), rand(1).item())

    before = all_parked(idle)
    (first, drawn), (second, drawn_there) = distributed(processes=2, remote=True)(draw).distributed()
    assert {first, second} < before
    assert drawn[0] != drawn_there[0] and drawn[1] != drawn_there[1]
    before = all_parked(idle)

    class Where:
        """Tells its process."""

        def pid(self) -> int:
            return os.getpid()

    actor = troupe.remote(Where).remote()
    assert troupe.get(actor.pid.remote(), timeout=60) in before
    assert all_parked(idle) >= before - {troupe.get(actor.pid.remote(), timeout=60)}
    troupe.kill(actor)


def test_more_ranks_than_are_parked(idle: Home) -> None:
    all_parked(idle)
    assert distributed(processes=8, remote=True)(lambda: int(os.environ["RANK"])).distributed() == list(range(8))


def test_parked_processes_that_were_killed_do_not_hurt_a_launch(idle: Home) -> None:
    victims = sorted(all_parked(idle))[:2]
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in victims), what="their end")
    assert distributed(processes=4, remote=True)(lambda: 1).distributed() == [1] * 4
    assert not all_parked(idle) & set(victims)


def test_a_descendant_that_a_parked_process_leaves_is_ended(idle: Home) -> None:
    all_parked(idle)

    def leave_one() -> int:
        import subprocess
        import sys

        code = "import signal; print(flush=True); signal.pause()"
        left = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stdout=subprocess.PIPE)
        assert left.stdout is not None
        left.stdout.readline()
        return left.pid

    [left] = distributed(processes=1, remote=True)(leave_one).distributed()
    eventually(lambda: left not in idle.processes(), timeout=20, what="the end of what the rank left")


def test_parked_processes_end_with_their_zygote(idle: Home) -> None:
    before = all_parked(idle)
    zygotes: list[int] = []

    def one_has_its_command() -> bool:  # a process that was forked just now has it for a moment too
        zygotes[:] = [pid for pid, command in idle.processes().items() if "troupe._process.zygote" in command]
        return len(zygotes) == 1

    eventually(one_has_its_command, what="the zygote alone")
    os.kill(zygotes[0], signal.SIGKILL)
    eventually(lambda: not before & set(idle.processes()), what="the end of its children")
    assert not all_parked(idle) & before  # those of the next one
    assert distributed(processes=1, remote=True)(lambda: 5).distributed() == [5]


def test_parked_processes_end_with_their_node(home: Home) -> None:
    home.run("start", "--head", "--port", "0", "--num-cpus", "2")
    all_parked(home)
    home.run("stop", "--all")
    assert not home.processes()
