"""Waits between hosts: a get() of several refs of which one fails, a queue's getter that is killed.

Method: as test_early_failures and test_queues, with actors on two nodes that reach each other by
TCP.
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import eventually
from handles import Watched

import troupe
from troupe.util.queue import Queue

WITHIN_S = 60.0


def waits(line: Queue, count: int) -> None:
    def waiting() -> bool:
        return (
            troupe.get(
                line.actor.__ray_call__.remote(lambda self: len(self._line._getters)),
                timeout=WITHIN_S,
            )
            == count
        )

    eventually(waiting, what=f"the wait of {count} getters")


def test_one_that_fails_on_another_host_is_raised_at_once(
    hosts: dict[str, str], tmp_path: Path
) -> None:
    class There:
        def waits_for(self, path: str) -> None:
            import pathlib
            import threading

            pause = threading.Event()
            while not pathlib.Path(path).exists():
                pause.wait(0.01)

        def fails(self, path: str) -> None:
            self.waits_for(path)
            raise KeyError("early")

    a, b = (
        troupe.remote(num_cpus=0)(There)
        .options(
            scheduling_strategy=troupe.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
                hosts[name], soft=False
            )
        )
        .remote()
        for name in "ab"
    )
    gate, trigger = tmp_path / "gate", tmp_path / "trigger"
    refs = [a.waits_for.remote(str(gate)), b.fails.remote(str(trigger))]
    threading.Timer(0.2, trigger.touch).start()
    with pytest.raises(KeyError, match="early"):
        troupe.get(refs, timeout=WITHIN_S)
    gate.touch()
    assert troupe.get(refs[0], timeout=WITHIN_S) is None
    for actor in (a, b):
        troupe.kill(actor)


def test_a_getter_on_another_host(hosts: dict[str, str]) -> None:
    class There:
        def gets(self, line: Queue) -> Any:
            return line.get()

    on = troupe.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    line = Queue(actor_options={"scheduling_strategy": on(hosts["a"], soft=False)})
    getters = [
        troupe.remote(num_cpus=0)(There)
        .options(scheduling_strategy=on(hosts["b"], soft=False))
        .remote()
        for _ in range(2)
    ]
    ends = Watched(getters[0])
    asked = [getters[0].gets.remote(line)]
    waits(line, 1)
    asked.append(getters[1].gets.remote(line))
    waits(line, 2)
    os.kill(ends.pid, signal.SIGKILL)
    ends.ends()
    line.put("first")
    line.put("second")
    assert sorted([troupe.get(asked[1], timeout=WITHIN_S), line.get(timeout=WITHIN_S)]) == [
        "first",
        "second",
    ]
    assert line.empty()
    for actor in (line.actor, getters[1]):
        troupe.kill(actor)
