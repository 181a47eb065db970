"""Classes of actors as Ray's programs use them: their other names, the methods that calls reach,
how their actors end.

Method: each is done in this process or inside an actor, and compared with what the plain class, or
Ray, gives.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

import pytest
from conftest import Home, eventually

import troupe
from troupe import exceptions


class Plain:
    """A class with names of every kind."""

    RETRIES = 3

    class Config:
        """Nested in it."""

        rate = 0.5

    def __init__(self) -> None:
        self.run = 7
        self.twice = lambda x: "hidden"

    @staticmethod
    def add(a: int, b: int) -> int:
        return a + b

    @classmethod
    def title(cls, end: str = "") -> str:
        return cls.__name__ + end

    def run(self) -> str:  # noqa: F811
        return "of the class"

    def twice(self, x: int) -> int:
        return 2 * x

    def seen_inside(self) -> tuple:
        return Plain.RETRIES, Plain.Config.rate, Plain.add(1, 2), Plain.title()

    def attribute(self) -> Any:
        return self.run


Worker = troupe.remote(num_cpus=0)(Plain)


def actor_class() -> Any:
    """Return a class whose name is that of the actor class, as a decorator makes it: the value its
    methods find by that name."""

    @troupe.remote(num_cpus=0)
    class Decorated:
        RETRIES = 3

        class Config:
            rate = 0.5

        @staticmethod
        def add(a: int, b: int) -> int:
            return a + b

        @classmethod
        def title(cls) -> str:
            return cls.__name__

        def seen_inside(self) -> tuple:
            return Decorated.RETRIES, Decorated.Config.rate, Decorated.add(1, 2), Decorated.title()

    return Decorated


def test_names_of_the_class_are_reached_through_the_actor_class() -> None:
    assert (
        Worker.RETRIES,
        Worker.Config.rate,
        Worker.Config,
        Worker.add(1, 2),
        Worker.title("!"),
    ) == (3, 0.5, Plain.Config, 3, "Plain!")
    assert Worker.run is Plain.run
    with pytest.raises(
        AttributeError, match=r"'ActorClass\(Plain\)' object has no attribute 'nothing'"
    ):
        Worker.nothing  # noqa: B018
    for name in ("__bases__", "__mro__", "__wrapped__", "mro"):
        assert hasattr(Worker, name) == (name == "mro"), name
    assert {"RETRIES", "Config", "add", "remote"} <= set(dir(Worker))


def test_they_are_reached_inside_the_actor_too(idle: Home) -> None:
    decorated = actor_class()
    assert (decorated.RETRIES, decorated.Config.rate, decorated.add(1, 2), decorated.title()) == (
        3,
        0.5,
        3,
        "Decorated",
    )
    assert troupe.get(decorated.remote().seen_inside.remote(), timeout=60) == (
        3,
        0.5,
        3,
        "Decorated",
    )


def test_a_handle_has_the_methods_of_the_class_alone(idle: Home) -> None:
    worker = Worker.remote()
    assert troupe.get([worker.add.remote(1, 2), worker.title.remote("?")], timeout=60) == [
        3,
        "Plain?",
    ]
    for name in ("RETRIES", "Config"):
        with pytest.raises(AttributeError, match=name):
            getattr(worker, name)


def test_an_attribute_of_the_instance_does_not_hide_a_method(idle: Home) -> None:
    worker = Worker.remote()
    assert troupe.get(
        [worker.run.remote(), worker.twice.remote(4), worker.attribute.remote()], timeout=60
    ) == ["of the class", 8, 7]


def test_the_same_on_an_event_loop_and_on_threads(idle: Home) -> None:
    @troupe.remote(num_cpus=0)
    class OnLoop:
        def __init__(self) -> None:
            self.step = None

        async def step(self) -> str:
            return "class"

    assert troupe.get(OnLoop.remote().step.remote(), timeout=60) == "class"
    assert (
        troupe.get(Worker.options(max_concurrency=2).remote().run.remote(), timeout=60)
        == "of the class"
    )


def test_methods_that_the_class_makes_when_asked_are_found(idle: Home) -> None:
    class Partial:
        def power(self, base: int, exponent: int) -> int:
            return base**exponent

        square = functools.partialmethod(power, exponent=2)

    assert (
        troupe.get(troupe.remote(num_cpus=0)(Partial).remote().square.remote(5), timeout=60) == 25
    )


def test_the_other_way_to_write_a_call(idle: Home) -> None:
    worker = Worker._remote(args=[], kwargs={}, num_cpus=0, name="by-the-other-way")
    assert troupe.get(worker.add._remote(args=[1], kwargs={"b": 3}), timeout=60) == 4
    assert (
        troupe.get(
            troupe.get_actor("by-the-other-way").add._remote((1, 4), num_returns=1), timeout=60
        )
        == 5
    )
    with pytest.raises(ValueError, match="a method has no nothing="):
        worker.add._remote((1, 4), nothing=1)

    @troupe.remote
    def plus(x: int, y: int = 1) -> int:
        return x + y

    assert troupe.get(
        [plus._remote([1]), plus._remote(args=[1], kwargs={"y": 3}, num_cpus=0)], timeout=60
    ) == [2, 4]


def test_what_is_not_called_directly_says_how_it_is_called(idle: Home) -> None:
    with pytest.raises(
        TypeError, match=r"Actors cannot be instantiated directly.*'Plain\.remote\(\)'"
    ):
        Worker()
    with pytest.raises(
        TypeError, match=r"Actor methods cannot be called directly.*'object\.run\.remote\(\)'"
    ):
        Worker.remote().run(self=1)
    with pytest.raises(
        TypeError, match=r"Remote functions cannot be called directly.*len_of\.remote\(\)'"
    ):
        troupe.remote(len_of)(self=1)


def len_of(x: Any) -> int:
    """A function."""
    return len(x)


@troupe.remote(num_cpus=0, max_restarts=1)
class Leaving:
    """Ends in every way with the code 0."""

    def pid(self) -> int:
        return os.getpid()

    def leave(self, how: str) -> None:
        if how == "os._exit":
            os._exit(0)
        if how == "sys.exit":
            sys.exit(0)
        troupe.actor.exit_actor()


@pytest.mark.parametrize("how", ["os._exit", "sys.exit", "exit_actor"])
def test_what_ends_the_process_behind_the_actors_back_is_a_crash_whatever_its_code(
    idle: Home, how: str
) -> None:
    actor = Leaving.remote()
    pid = troupe.get(actor.pid.remote(), timeout=60)
    with pytest.raises(exceptions.ActorError):
        troupe.get(actor.leave.remote(how), timeout=60)
    if how == "os._exit":
        assert eventually(lambda: answer_of(actor), what="the restart") != pid
    else:
        with pytest.raises(exceptions.ActorDiedError):
            troupe.get(actor.pid.remote(), timeout=60)


def answer_of(actor: Any) -> int:
    """Return the actor's pid; 0 while it is being restarted."""
    try:
        return troupe.get(actor.pid.remote(), timeout=60)
    except exceptions.ActorUnavailableError:
        return 0


def test_one_value_of_a_generator_is_its_first(idle: Home) -> None:
    @troupe.remote(num_cpus=0)
    class Yielding:
        @troupe.method(num_returns=1)
        def first(self, values: list) -> Any:
            yield from values

        def all(self, values: list) -> Any:
            yield from values

        async def on_loop(self, values: list) -> Any:
            return (each for each in values)

    @troupe.remote(num_returns=1, max_retries=0)
    def task(values: list) -> Any:
        yield from values

    made, other = Yielding.remote(), Yielding.options(max_concurrency=2).remote()
    refs = [
        made.first.remote([1, 2]),
        other.first.remote([1]),
        made.all.options(num_returns=1).remote([1, 2]),
        made.on_loop.remote([1, 2]),
        task.remote([1, 2]),
    ]
    assert troupe.get(refs, timeout=60) == [1] * len(refs)
    for ref in (made.first.remote([]), task.remote([])):
        with pytest.raises(ValueError, match="returned 0 objects, but num_returns=1"):
            troupe.get(ref, timeout=60)
