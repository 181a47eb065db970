"""Calls of actors whose arguments are answers of other calls: `b.g.remote(a.f.remote())`.

Method: a real cluster; what has to wait does so until the test lets it, so that a call that blocked
its caller would be a hang here, and a deadline makes a hang a failure.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

import cloudpickle
import pytest
from conftest import Home

import troupe
from troupe import exceptions

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@troupe.remote(num_cpus=0)
class Gate:
    """Lets callers through once it is open."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()

    async def wait(self, value: Any = None) -> Any:
        await self.opened.wait()
        return value

    async def open(self) -> None:
        self.opened.set()

    async def take(self, value: Any) -> Any:
        return value


@troupe.remote(num_cpus=0)
class Stage:
    def __init__(self) -> None:
        self.seen: list = []

    def add(self, value: int, more: int = 1) -> int:
        self.seen.append(value)
        return value + more

    def all(self) -> list:
        return self.seen

    def pid(self) -> int:
        return os.getpid()

    def fail(self) -> None:
        raise KeyError("first stage")

    def chain(self, others: list, gate: Any) -> int:
        """Starts a chain from inside an actor."""
        value = gate.wait.remote(1)
        for other in others:
            value = other.add.remote(value)
        gate.open.remote()
        return troupe.get(value, timeout=30)


def test_a_pipeline_is_started_before_its_first_value_is_there(idle: Home) -> None:
    gate, stages = Gate.remote(), [Stage.remote() for _ in range(4)]
    ends = []
    for i in range(50):
        value = gate.wait.remote(i)
        for stage in stages:
            value = stage.add.remote(value)
        ends.append(value)
    assert troupe.wait(ends, timeout=0.1)[0] == []
    gate.open.remote()
    assert troupe.get(ends, timeout=30) == [i + 4 for i in range(50)]
    assert troupe.get(stages[3].all.remote(), timeout=30) == [i + 3 for i in range(50)]
    assert troupe.get(stages[0].chain.remote(stages[1:], Gate.remote()), timeout=30) == 4


def test_an_actor_whose_calls_run_side_by_side_is_not_held_up(idle: Home) -> None:
    gate = Gate.remote()
    made = gate.take.remote(
        gate.wait.remote("late")
    )  # for the gate itself, which must be opened by a later call
    troupe.get(gate.open.remote(), timeout=30)
    assert troupe.get(made, timeout=30) == "late"


def test_order_can_be_given_up(idle: Home) -> None:
    gate, stage = Gate.remote(), Stage.options(allow_out_of_order_execution=True).remote()
    late = stage.add.remote(gate.wait.remote(1))
    assert troupe.get(stage.add.remote(2), timeout=30) == 3
    gate.open.remote()
    assert troupe.get(late, timeout=30) == 2
    with pytest.raises(
        ValueError, match="allow_out_of_order_execution must be True, False or None, not 'yes'"
    ):
        Stage.options(allow_out_of_order_execution="yes").remote()


def test_an_error_runs_through_the_chain(idle: Home) -> None:
    a, b = Stage.remote(), Stage.remote()
    with pytest.raises(KeyError, match="first stage"):
        troupe.get(b.add.remote(b.add.remote(a.fail.remote())), timeout=30)
    assert troupe.get(b.all.remote(), timeout=30) == []
    dead = Stage.remote()
    value = dead.add.remote(Gate.remote().wait.remote(1))
    troupe.kill(dead)
    with pytest.raises(exceptions.ActorDiedError):
        troupe.get(b.add.remote(value), timeout=30)


def test_calls_that_are_made_again_wait_for_arguments_too(idle: Home) -> None:
    gate, stage = Gate.remote(), Stage.options(max_restarts=1, max_task_retries=5).remote()
    pid = troupe.get(stage.pid.remote(), timeout=30)
    late, behind = stage.add.remote(gate.wait.remote(1), more=2), stage.add.remote(10)
    os.kill(pid, signal.SIGKILL)
    gate.open.remote()
    assert troupe.get([late, behind], timeout=30) == [3, 11]
    assert troupe.get(stage.pid.remote(), timeout=30) != pid
    with pytest.raises(
        KeyError, match="first stage"
    ):  # however often it were made, its argument stays an error
        troupe.get(
            stage.add.options(max_task_retries=-1).remote(Stage.remote().fail.remote()), timeout=30
        )


def test_a_coroutine_that_makes_such_a_call_does_not_hold_up_its_loop(idle: Home) -> None:
    gate, stage = Gate.remote(), Stage.remote()

    async def both() -> int:
        late = stage.add.remote(gate.wait.remote(1))
        await asyncio.sleep(0)
        await gate.open.remote()
        return await asyncio.wait_for(late, 30)

    assert asyncio.run(both()) == 2


def test_cancelled_while_its_argument_is_to_come(idle: Home) -> None:
    gate, stage = Gate.remote(), Stage.remote()
    late, behind = stage.add.remote(gate.wait.remote(1)), stage.add.remote(5)
    troupe.cancel(late)
    with pytest.raises(exceptions.TaskCancelledError):
        troupe.get(late, timeout=30)
    assert troupe.get(behind, timeout=30) == 6
