"""`num_returns="dynamic"`: one ref of all that a task or a method yields, there once that is
over."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest
from conftest import Home

import troupe
from troupe import exceptions

WAIT_S = 60


@troupe.remote(num_returns="dynamic", max_retries=0)
def parts(count: int, end: str = "") -> Iterator[list[int]]:
    for i in range(count):
        yield [i]
    if end == "raise":
        raise LookupError("half way")
    if end == "kill":
        os.kill(os.getpid(), 9)
    while end == "never":
        yield [-1]
        threading.Event().wait(0.01)


@troupe.remote
def total(refs: troupe.DynamicObjectRefGenerator) -> int:
    return sum(troupe.get(ref)[0] for ref in refs)


class Reader:
    """A method by its mark, one by its call, and one of plain iteration."""

    @troupe.method(num_returns="dynamic")
    def marked(self, count: int) -> Iterator[int]:
        yield from range(count)

    def plain(self, count: int) -> Iterator[int]:
        yield from range(count)


def test_a_task_gives_one_ref_of_all_its_refs(idle: Home) -> None:
    ref = parts.remote(4)
    assert isinstance(ref, troupe.ObjectRef) and troupe.wait([ref], timeout=WAIT_S) == ([ref], [])
    refs = troupe.get(ref, timeout=WAIT_S)
    assert isinstance(refs, troupe.DynamicObjectRefGenerator) and len(refs) == 4
    assert [troupe.get(each) for each in refs] == [[0], [1], [2], [3]] and len(refs) == 0
    assert len(troupe.get(parts.remote(0), timeout=WAIT_S)) == 0


def test_the_ref_and_its_value_are_passed_on(idle: Home) -> None:
    ref = parts.remote(4)
    assert troupe.get(total.remote(ref), timeout=WAIT_S) == 6
    assert troupe.get(total.remote(troupe.get(ref)), timeout=WAIT_S) == 6
    assert troupe.get(total.remote(parts.remote(1000)), timeout=WAIT_S) == 499_500


def test_methods_of_actors(idle: Home) -> None:
    reader = troupe.remote(Reader).remote()
    for ref in (reader.marked.remote(3), reader.plain.options(num_returns="dynamic").remote(3)):
        assert [troupe.get(each) for each in troupe.get(ref, timeout=WAIT_S)] == [0, 1, 2]
    assert isinstance(
        reader.marked.options(num_returns="streaming").remote(1), troupe.ObjectRefGenerator
    )
    troupe.kill(reader)


def test_an_exception_is_the_last_ref_or_where_nothing_came_the_answer(idle: Home) -> None:
    first, error = troupe.get(parts.remote(1, "raise"), timeout=WAIT_S)
    assert troupe.get(first) == [0]
    with pytest.raises(LookupError, match="half way"):
        troupe.get(error)
    with pytest.raises(LookupError, match="half way"):
        troupe.get(parts.remote(0, "raise"), timeout=WAIT_S)
    with pytest.raises(exceptions.WorkerCrashedError, match="SIGKILL"):
        troupe.get(parts.remote(0, "kill"), timeout=WAIT_S)
    with pytest.raises(TypeError, match="iterable"):
        troupe.get(troupe.remote(num_returns="dynamic")(lambda: 5).remote(), timeout=WAIT_S)


def test_more_refs_than_one_value_holds(idle: Home) -> None:
    reader = troupe.remote(Reader).remote()
    assert len(troupe.get(reader.marked.remote(60_000), timeout=WAIT_S)) == 60_000
    with pytest.raises(ValueError, match="70000 refs, it may hold 65536"):
        troupe.get(reader.marked.remote(70_000), timeout=WAIT_S)
    troupe.kill(reader)


def test_cancelling_it(idle: Home) -> None:
    ref = parts.remote(3, "never")
    with pytest.raises(exceptions.GetTimeoutError):
        troupe.get(ref, timeout=0.3)
    troupe.cancel(ref)
    with pytest.raises(exceptions.TaskCancelledError):
        for each in troupe.get(ref, timeout=WAIT_S):
            troupe.get(each)
