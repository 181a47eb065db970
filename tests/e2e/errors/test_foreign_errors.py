"""Errors whose classes run code of their own when one is made, changed, looked at or pickled.

Method: a task, a constructor and a method raise each kind; whatever that code does, the error that
arrives is of the user's type and says what happened, and so it is where it is passed on and pickled
again.
"""

from __future__ import annotations

import pickle
import traceback
from typing import Any

import pytest
from conftest import Home

import troupe
from troupe import exceptions

WITHIN_S = 60.0


class NoSetting(Exception):
    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} is immutable")


class NoSubclass(Exception):
    def __init_subclass__(cls, **given: Any) -> None:
        raise TypeError("no class is made of it")


class OwnNew(Exception):
    def __new__(cls, text: str, *, tag: str = "") -> OwnNew:
        if not tag:
            raise RuntimeError("a tag is needed")
        return super().__new__(cls, text)

    def __init__(self, text: str, **given: Any) -> None:
        super().__init__(text)


class Probing(Exception):
    def __getattr__(self, name: str) -> object:
        raise RuntimeError(f"asked for {name}")


class Property(Exception):
    @property
    def code(self) -> int:
        raise RuntimeError("no response yet")

    cause = rank = args_of = code  # type: ignore[assignment]


class Empty(Exception):
    def __bool__(self) -> bool:
        raise RuntimeError("neither")


class Many(ExceptionGroup):
    def __new__(cls, message: str, errors: list[Exception], tag: str) -> Many:
        made = super().__new__(cls, message, errors)
        made.tag = tag  # type: ignore[attr-defined]
        return made


def _raise(kind: str) -> None:
    if kind == "Many":
        raise Many("what happened", [KeyError("k")], "blue")
    if kind == "OwnNew":
        raise OwnNew("what happened", tag="x")
    raise globals()[kind]("what happened")


class Raises:
    def __init__(self, kind: str = "") -> None:
        if kind:
            _raise(kind)

    def method(self, kind: str) -> None:
        _raise(kind)


KINDS = ["NoSetting", "NoSubclass", "OwnNew", "Probing", "Property", "Empty", "Many"]


def _checked(kind: str, call: Any, of: type[Exception]) -> None:
    with pytest.raises(globals()[kind], match="what happened") as caught:
        call()
    error = caught.value
    again = pickle.loads(pickle.dumps(error)) if kind != "Many" else error
    for each in (
        error,
        again,
        exceptions.with_type_of(exceptions.LaunchError, error, "what happened", rank=1),
    ):
        assert isinstance(each, globals()[kind]) and "what happened" in str(each)
        assert isinstance(each.cause, BaseException) and "what happened" in "".join(
            traceback.format_exception(each)
        )
    assert isinstance(error, of)


@pytest.mark.parametrize("kind", KINDS)
def test_it_says_what_happened(idle: Home, kind: str) -> None:
    task = troupe.remote(max_retries=0, num_cpus=0)(_raise)
    _checked(kind, lambda: troupe.get(task.remote(kind), timeout=WITHIN_S), exceptions.TaskError)
    actor = troupe.remote(num_cpus=0)(Raises)
    made = actor.remote()
    _checked(
        kind, lambda: troupe.get(made.method.remote(kind), timeout=WITHIN_S), exceptions.TaskError
    )
    if kind not in (
        "Probing",
        "Empty",
    ):  # a process that cannot start asks them before it has said what happened
        _checked(
            kind,
            lambda: troupe.get(actor.remote(kind).method.remote(kind), timeout=WITHIN_S),
            exceptions.ActorDiedError,
        )
    troupe.kill(made)


def test_a_wait_of_another_s_is_not_this_one_s(idle: Home) -> None:
    """A get() that timed out inside a task is a TimeoutError of the task, no GetTimeoutError of the
    caller's get()."""

    @troupe.remote(max_retries=0, num_cpus=0)
    def waits() -> None:
        raise exceptions.GetTimeoutError("the task's own wait")

    with pytest.raises(TimeoutError, match="the task's own wait") as caught:
        troupe.get(waits.remote(), timeout=WITHIN_S)
    assert isinstance(caught.value, exceptions.TaskError) and not isinstance(
        caught.value, exceptions.GetTimeoutError
    )
    assert isinstance(caught.value.cause, exceptions.GetTimeoutError)
