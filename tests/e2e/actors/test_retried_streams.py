"""Streaming methods that are called again: what was given stays, what follows comes, each item
once.

Method: an actor's process ends, or its method raises, in the middle of its items, as often as a
file of the test says.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from conftest import Home, eventually

import troupe
from troupe import exceptions

COUNT = 200


@troupe.remote(num_cpus=0, max_restarts=-1, max_task_retries=2)
class Source:
    """Gives numbers."""

    def items(self, folder: str, faults: int, how: str, at: int = 5) -> Any:
        try:
            for number in range(COUNT):
                if number == at and len(os.listdir(folder)) < faults:
                    Path(folder, str(len(os.listdir(folder)))).touch()
                    if how == "exits":
                        os._exit(1)
                    raise LookupError("not yet")
                yield number
        except GeneratorExit:
            Path(folder, "closed").touch()
            raise

    @troupe.method(retry_exceptions=[LookupError], max_task_retries=1)
    def raising(self, folder: str, faults: int) -> Any:
        yield from self.items(folder, faults, "raises")

    def pid(self) -> int:
        return os.getpid()


def numbers(stream: Any) -> list[int]:
    """All that it gives."""
    return [troupe.get(ref, timeout=60) for ref in stream]


def test_a_stream_whose_process_ends_goes_on(idle: Home, tmp_path: Path) -> None:
    source = Source.remote()
    assert numbers(source.items.remote(str(tmp_path), 2, "exits")) == list(range(COUNT))
    assert len(os.listdir(tmp_path)) == 2
    troupe.kill(source)


def test_one_that_raised_what_is_a_reason_goes_on(idle: Home, tmp_path: Path) -> None:
    source = Source.remote()
    stream = source.raising.remote(str(tmp_path), 1)
    assert isinstance(stream, troupe.ObjectRefGenerator)
    assert (
        numbers(stream) == list(range(COUNT))
        and stream.is_finished()
        and troupe.get(stream.completed(), timeout=60) is None
    )
    troupe.kill(source)


def test_after_its_retries_the_error_is_the_last_item(idle: Home, tmp_path: Path) -> None:
    source = Source.remote()
    given, stream = [], source.raising.remote(str(tmp_path), 2)
    with pytest.raises(LookupError):
        for ref in stream:
            given.append(troupe.get(ref, timeout=60))
    assert given == list(range(5)), "each once, though the method gave them twice"
    assert list(stream) == [] and isinstance(error_of(stream.completed()), LookupError)
    troupe.kill(source)


def error_of(ref: Any) -> BaseException | None:
    """Return the exception that get() raises."""
    try:
        troupe.get(ref, timeout=60)
    except exceptions.TroupeError as error:
        return error
    return None


def test_one_is_awaited_waited_for_and_gathered_as_others_are(idle: Home, tmp_path: Path) -> None:
    source = Source.remote()
    folders = [tmp_path / str(number) for number in range(3)]
    for each in folders:
        each.mkdir()

    async def awaited() -> list[int]:
        return [await ref async for ref in source.items.remote(str(folders[0]), 1, "exits")]

    assert asyncio.run(asyncio.wait_for(awaited(), 120)) == list(range(COUNT))
    gathered = source.items.options(num_returns="dynamic").remote(str(folders[1]), 1, "exits")
    assert numbers(troupe.get(gathered, timeout=60)) == list(range(COUNT))
    stream, given = source.items.remote(str(folders[2]), 1, "exits"), []
    while not stream.is_finished():
        ready, _ = troupe.wait([stream], timeout=60)
        assert ready == [stream]
        given += [troupe.get(ref, timeout=60) for ref in [next(stream, None)] if ref is not None]
    assert given == list(range(COUNT))
    troupe.kill(source)


def test_dropped_or_cancelled_it_ends_the_method(idle: Home, tmp_path: Path) -> None:
    source = Source.remote()
    stream = source.items.options(_generator_backpressure_num_objects=1).remote(
        str(tmp_path), 0, "exits"
    )
    assert troupe.get(next(stream), timeout=60) == 0
    del stream
    eventually((tmp_path / "closed").exists, what="the end of the method")
    troupe.kill(source)
    for options in ({}, {"max_concurrency": 2}):
        source = Source.options(**options).remote()
        stream = source.items.options(_generator_backpressure_num_objects=1).remote(
            str(tmp_path), 0, "exits"
        )
        assert troupe.get(next(stream), timeout=60) == 0
        troupe.cancel(stream)
        given = list(stream)
        assert len(given) < COUNT
        with pytest.raises(exceptions.TaskCancelledError):  # must not look like a normal end
            troupe.get(given[-1], timeout=60)
        assert troupe.get(source.pid.remote(), timeout=60)
        troupe.kill(source)


def test_of_an_actor_that_is_dead_for_good_what_ended_it_is_the_last_item(
    idle: Home, tmp_path: Path
) -> None:
    source = Source.options(max_restarts=0).remote()
    given = []
    with pytest.raises(exceptions.ActorError):
        for ref in source.items.remote(str(tmp_path), 1, "exits"):
            given.append(troupe.get(ref, timeout=60))
    assert given == list(range(len(given))) and len(given) <= 5
