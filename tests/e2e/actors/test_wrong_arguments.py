"""Calls with the wrong number of arguments or unknown keywords: refused where they are made, with
the signature."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from conftest import Home

import troupe


@troupe.remote
def add(a: int, b: int = 2, *, factor: int = 1) -> int:
    """A task."""
    return (a + b) * factor


@troupe.remote(num_cpus=0)
class Tool:
    """Methods of all kinds."""

    def __init__(self, size: int) -> None:
        self.size = size

    def scale(self, by: int, *, offset: int = 0) -> int:
        return self.size * by + offset

    @staticmethod
    def twice(x: int) -> int:
        return 2 * x

    @classmethod
    def name(cls, prefix: str) -> str:
        return prefix + cls.__name__

    def count(self, *values: int, **named: int) -> int:
        return len(values) + len(named)

    def scale_by(self, other: Any) -> int:
        """Calls another one, from its own process."""
        try:
            other.scale.remote()
        except TypeError as error:
            return str(error)
        return troupe.get(other.scale.remote(2), timeout=20)

    @troupe.method(max_task_retries=3)
    def again(self, x: int) -> int:
        return x


@pytest.fixture
def tool(idle: Home) -> Iterator[Any]:
    """An actor of size 3, killed after the test."""
    made = Tool.remote(3)
    yield made
    troupe.kill(made)


def refused(call: Any, *args: Any, **kwargs: Any) -> str:
    """Return the text of the caller's TypeError."""
    with pytest.raises(TypeError) as error:
        call.remote(*args, **kwargs)
    return str(error.value)


def test_methods(tool: Any) -> None:
    text = refused(tool.scale)
    assert text.startswith("scale() of actor Tool(") and "missing a required argument: 'by'" in text
    assert text.endswith("it is defined as scale(by, *, offset=...)")
    assert "too many positional arguments" in refused(tool.scale, 1, 2)
    assert "unexpected keyword argument 'of'" in refused(tool.scale, 1, of=2)
    assert "twice(x)" in refused(tool.twice) and "name(prefix)" in refused(tool.name, 1, 2)
    assert "again(x)" in refused(tool.again)
    calls = [
        tool.scale.remote(2),
        tool.scale.remote(by=2, offset=1),
        tool.twice.remote(4),
        tool.name.remote("a"),
        tool.count.remote(1, 2, x=3),
        tool.again.remote(5),
    ]
    assert troupe.get(calls, timeout=20) == [6, 7, 8, "aTool", 3, 5]


def test_wrong_calls_stay_wrong_among_right_ones(tool: Any) -> None:
    for number in range(20):
        assert troupe.get(tool.scale.remote(number), timeout=20) == 3 * number
        assert "missing" in refused(tool.scale)
        assert "missing" in refused(tool.scale, offset=number)


def test_handles_that_travelled_or_were_looked_up(tool: Any) -> None:
    other = Tool.options(name="the other tool").remote(1)
    assert (
        troupe.get(other.scale.remote(1), timeout=20) == 1
    )  # the head learns of methods from who has them
    assert "scale(by" in refused(troupe.get_actor("the other tool").scale)
    assert "scale(by, *, offset=...)" in troupe.get(other.scale_by.remote(tool), timeout=20)
    troupe.kill(other)


def test_constructors_and_tasks(idle: Home) -> None:
    assert refused(Tool).startswith("Tool(): missing a required argument: 'size'")
    assert "too many" in refused(Tool, 1, 2)
    assert "add(a, b=..., *, factor=...)" in refused(add)
    assert "unexpected keyword argument 'c'" in refused(add.options(num_cpus=0), 1, c=2)
    assert troupe.get([add.remote(1), add.remote(1, 1, factor=3), add.remote(a=1)], timeout=30) == [
        3,
        6,
        3,
    ]
