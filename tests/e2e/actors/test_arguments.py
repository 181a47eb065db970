"""Arguments of every name, number and kind arrive as they were given; what is checked is what is
called.

Method: each call is made through real processes and compared with a plain call of the same
function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
from conftest import Home

import troupe
from troupe import exceptions
from troupe.util import ActorPool

MANY = 10_000
NAMES = (
    "self",
    "args",
    "kwargs",
    "name",
    "options",
    "function",
    "method",
    "cls",
    "count",
    "keywords",
    "link",
    "detach",
    "timeout",
)


class Plain:
    """Takes whatever it is given."""

    def __init__(self, /, *args: Any, **named: Any) -> None:
        self.given = args, named

    def constructed(self) -> tuple:
        return self.given

    def anything(self, /, *args: Any, **named: Any) -> tuple:
        return args, named

    def by_place(self, a: int, /, b: int) -> tuple:
        return a, b

    def other_self(this, self: int = 0) -> int:  # noqa: N805
        return self

    @troupe.method(max_task_retries=1)
    def again(self, /, *args: Any, **named: Any) -> tuple:
        return args, named

    @troupe.method(num_returns=2)
    def both(self, x: int) -> tuple:
        return x, -x


Tool = troupe.remote(num_cpus=0)(Plain)


def anything(*args: Any, **named: Any) -> tuple:
    """As a task."""
    return args, named


def test_every_name_is_a_keyword(idle: Home) -> None:
    named = {name: number for number, name in enumerate(NAMES)}
    tool = Tool.remote(1, **named)
    refs = [
        tool.constructed.remote(),
        tool.anything.remote(1, **named),
        tool.again.remote(1, **named),
        troupe.remote(anything).remote(1, **named),
        tool.anything._remote([1], named),
        tool.anything.options().remote(1, **named),
    ]
    assert troupe.get(refs, timeout=60) == [((1,), named)] * len(refs)
    assert troupe.get(tool.other_self.remote(self=5), timeout=60) == 5


def test_positional_only_parameters_are(idle: Home) -> None:
    tool = Tool.remote()
    assert troupe.get(tool.by_place.remote(1, b=2), timeout=60) == (1, 2)
    with pytest.raises(TypeError, match="'a' parameter is positional only"):
        tool.by_place.remote(a=1, b=2)


def test_many_arguments_arrive(idle: Home) -> None:
    tool, task = Tool.remote(*range(MANY)), troupe.remote(anything)
    assert troupe.get(tool.constructed.remote(), timeout=60) == (tuple(range(MANY)), {})
    for call in (tool.anything.remote, task.remote, tool.again.remote):
        assert troupe.get(call(*range(MANY)), timeout=60) == (tuple(range(MANY)), {})
    assert troupe.get(task.remote(*[troupe.put(i) for i in range(1500)]), timeout=60)[0] == tuple(
        range(1500)
    )
    assert troupe.get(task.remote(*[task.remote(i) for i in range(1200)]), timeout=60)[0][-1] == (
        (1199,),
        {},
    )


def test_many_keywords_arrive(idle: Home) -> None:
    tool, task = Tool.remote(), troupe.remote(anything)
    named = {f"k{number}": number for number in range(MANY)}
    for call in (tool.anything.remote, task.remote):
        assert troupe.get([call(1, **named), call(1, **named)], timeout=60) == [((1,), named)] * 2
    assert troupe.get(tool.anything.remote(2), timeout=60) == ((2,), {}), "the connection goes on"


def test_calls_with_ever_other_keywords_go_on(idle: Home) -> None:
    tool, task = Tool.remote(), troupe.remote(anything)
    for call in (tool.anything.remote, task.remote):
        assert troupe.get(
            [call(**{f"k{number}": number}) for number in range(600)], timeout=60
        ) == [((), {f"k{number}": number}) for number in range(600)]


def test_more_than_a_call_can_carry_is_refused_where_it_is_made(idle: Home) -> None:
    tool = Tool.remote()
    with pytest.raises(ValueError, match="was given 65536 arguments, 65535 are allowed"):
        tool.anything.remote(*range(65536))
    assert troupe.get(tool.anything.remote(1), timeout=60) == ((1,), {})


def with_extra(inner: Callable) -> Callable:
    """A decorator whose wrapper takes a keyword more."""

    @functools.wraps(inner)
    def wrapper(*args: Any, extra: Any = None) -> tuple:
        return inner(*args), extra

    return wrapper


def of_three(inner: Callable) -> Callable:
    """Return a function whose wrapper takes other parameters, and whose `__signature__` lies."""

    @functools.wraps(inner)
    def wrapper(self: Any, a: int, b: int, c: int) -> Any:
        return inner(self, a + b + c)

    wrapper.__signature__ = "none"  # type: ignore[attr-defined]
    return wrapper


def test_a_decorated_function_is_checked_by_what_is_called(idle: Home) -> None:
    @troupe.remote(num_cpus=0)
    class Decorated:
        @with_extra
        def one(self, x: int) -> int:
            return x

        @of_three
        def sum(self, x: int) -> int:
            return x

    @troupe.remote
    @with_extra
    def task(x: int) -> int:
        return x

    made = Decorated.remote()
    assert troupe.get(
        [made.one.remote(1, extra=2), made.sum.remote(1, 2, 3), task.remote(1, extra=3)], timeout=60
    ) == [(1, 2), 6, (1, 3)]
    with pytest.raises(TypeError, match="missing a required argument: 'b'"):
        made.sum.remote(1)
    with pytest.raises(exceptions.TaskError, match="missing 1 required positional argument: 'x'"):
        troupe.get(task.remote(), timeout=60)


def test_a_pool_of_actors_takes_calls_with_several_results(idle: Home) -> None:
    pool = ActorPool([Tool.remote(), Tool.remote()])
    assert list(pool.map(lambda actor, value: actor.both.remote(value), range(4))) == [
        [0, 0],
        [1, -1],
        [2, -2],
        [3, -3],
    ]
    assert sorted(pool.map_unordered(lambda actor, value: actor.both.remote(value), range(4))) == [
        [0, 0],
        [1, -1],
        [2, -2],
        [3, -3],
    ]
    pool.submit(lambda actor, value: actor.both.remote(value), 7)
    assert pool.get_next(timeout=60) == [7, -7]
