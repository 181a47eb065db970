"""Processes that the zygote has parked: used by launches and actors, replaced, never left
behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from conftest import Home, eventually, parked, running

import troupe
from troupe.launch import distributed, ray_launch

PARKED_MIN = 6


def all_parked(home: Home) -> set[int]:
    """Pids of the parked processes, once there are as many as there are to be."""
    eventually(
        lambda: len(parked(home)) >= PARKED_MIN,
        what=f"{PARKED_MIN} parked processes ({home.processes()})",
    )
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
    (first, drawn), (second, drawn_there) = distributed(processes=2, remote=True)(
        draw
    ).distributed()
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
    assert distributed(processes=8, remote=True)(
        lambda: int(os.environ["RANK"])
    ).distributed() == list(range(8))


def test_parked_processes_that_were_killed_do_not_hurt_a_launch(idle: Home) -> None:
    victims = sorted(all_parked(idle))[:2]
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not any(running(pid) for pid in victims), what="their end")
    assert distributed(processes=4, remote=True)(lambda: 1).distributed() == [1] * 4
    assert not all_parked(idle) & set(victims)


def test_a_descendant_that_a_parked_process_leaves_is_ended(idle: Home) -> None:
    all_parked(idle)

    def leave_one() -> int:
        import subprocess
        import sys

        code = "import signal; print(flush=True); signal.pause()"
        left = subprocess.Popen(
            [sys.executable, "-c", code], start_new_session=True, stdout=subprocess.PIPE
        )
        assert left.stdout is not None
        left.stdout.readline()
        return left.pid

    [left] = distributed(processes=1, remote=True)(leave_one).distributed()
    eventually(
        lambda: left not in idle.processes(), timeout=20, what="the end of what the rank left"
    )


def test_parked_processes_end_with_their_zygote(idle: Home) -> None:
    before = all_parked(idle)
    zygotes: list[int] = []

    def one_has_its_command() -> bool:  # a process that was forked just now has it for a moment too
        zygotes[:] = [
            pid for pid, command in idle.processes().items() if "troupe._process.zygote" in command
        ]
        return len(zygotes) == 1

    eventually(one_has_its_command, what="the zygote alone")
    os.kill(zygotes[0], signal.SIGKILL)
    eventually(lambda: not before & set(idle.processes()), what="the end of its children")
    assert not all_parked(idle) & before  # processes of the next one
    assert distributed(processes=1, remote=True)(lambda: 5).distributed() == [5]


def test_parked_processes_end_with_their_node(home: Home) -> None:
    home.run("start", "--head", "--port", "0", "--num-cpus", "2")
    all_parked(home)
    home.run("stop", "--all")
    assert not home.processes()


LOADED_BEFORE = (
    "import sys; from troupe._process import preimports, zygote; "
    "preimports.preimport(preimports.OWN_MODULES); "
    "print(*(each for each in sys.modules if each.startswith('troupe')))"
)


def own_modules() -> list[str]:
    return [each for each in sys.modules if each.startswith("troupe")]


class Usual:
    """Does what most actors do: asks where it is, keeps a value, calls a task."""

    def loaded(self) -> list[str]:
        troupe.get_runtime_context().get_node_id()
        return (
            troupe.get([troupe.put(None), troupe.remote(own_modules).remote()])[1] + own_modules()
        )


def trial(config: dict) -> None:
    from troupe import tune

    tune.report({"loaded": own_modules()})


def test_what_usual_processes_load_of_the_runtime_the_zygote_has_loaded(
    idle: Home, tmp_path: Path
) -> None:
    """Else each process pays for it anew: an import of 20 ms halved the rate of trials."""
    from troupe import tune

    done = subprocess.run(
        [sys.executable, "-c", LOADED_BEFORE], capture_output=True, text=True, check=True
    )
    before = set(done.stdout.split())
    grid = tune.Tuner(trial, run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0)).fit()
    loaded = {
        "actor": troupe.get(troupe.remote(Usual).remote().loaded.remote()),
        "rank": distributed(processes=1, remote=True)(own_modules).distributed()[0],
        "driver": ray_launch(processes=1, remote=True)(own_modules).distributed()[0],
        "trial": grid[0].metrics["loaded"],
    }
    assert {kind: sorted({*modules} - before) for kind, modules in loaded.items()} == dict.fromkeys(
        loaded, []
    )
