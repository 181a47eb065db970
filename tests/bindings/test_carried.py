"""Exceptions on their way: what loads again, and as what. Without processes."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import pytest

from troupe import exceptions
from troupe._base.exception_pickles import carried
from troupe._code.failures import pickled
from troupe.util.serialization import deregister_serializer, register_serializer


class Two(Exception):
    """An exception of which Exception knows only the text."""

    def __init__(self, code: int, path: str) -> None:
        super().__init__(f"{code} for {path}")
        self.code = code


class Refined(Two):
    pass


class Named(Exception):
    def __init__(self, *, code: int) -> None:
        super().__init__("a code", code)
        self.code = code


class Longer(Exception):
    """Takes its own args, and adds to them each time."""

    def __init__(self, text: str) -> None:
        super().__init__(f"longer: {text}")


class Told(Exception):
    """Says itself how it is pickled."""

    def __init__(self, code: int, path: str) -> None:
        super().__init__("told")
        self.code, self.path = code, path

    def __reduce__(self) -> tuple:
        return Told, (self.code, self.path)


class Stubborn(Exception):
    def __new__(cls, *args: str) -> Stubborn:
        if made:
            raise ValueError("only once")
        made.append(cls)
        return super().__new__(cls, *args)


made: list[type] = []


class Slow(Exception):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.made_here = True

    def __setstate__(self, state: dict) -> None:
        self.state = state


def round_trip(error: BaseException) -> Any:
    return pickle.loads(pickle.dumps(carried(error)))


@pytest.mark.parametrize("error", [Two(7, "there"), Refined(7, "there"), Named(code=7)])
def test_one_whose_init_does_not_take_its_args(error: Any) -> None:
    with pytest.raises(TypeError):
        pickle.loads(pickle.dumps(error))
    came = round_trip(error)
    assert (
        type(came) is type(error)
        and came.args == error.args
        and str(came) == str(error)
        and came.code == 7
    )


def test_args_are_what_they_were() -> None:
    assert str(pickle.loads(pickle.dumps(Longer("x")))) == "longer: longer: x"
    assert str(round_trip(Longer("x"))) == "longer: x"


@pytest.mark.parametrize(
    "error",
    [Told(7, "there"), KeyError("x"), OSError(2, "gone", "file"), exceptions.TroupeError("x")],
)
def test_others_are_left_alone(error: BaseException) -> None:
    assert carried(error) is error
    came = round_trip(error)
    assert type(came) is type(error) and str(came) == str(error) and vars(came) == vars(error)


def test_a_state_of_its_own_is_set() -> None:
    assert round_trip(Slow("x")).state == {"made_here": True}


def test_what_is_no_exception_is_itself() -> None:
    for each in (None, 7, Two):
        assert carried(each) is each


def test_a_serializer_of_the_users_goes_first() -> None:
    register_serializer(
        Two, serializer=lambda error: error.code, deserializer=lambda code: Two(code, "told")
    )
    try:
        assert str(pickle.loads(pickled(Two(7, "there")))) == "7 for told"
    finally:
        deregister_serializer(Two)
    assert str(pickle.loads(pickled(Two(7, "there")))) == "7 for there"


def test_what_cannot_be_pickled_stays_behind() -> None:
    error = Two(7, "there")
    error.lock, error.args = threading.Lock(), (*error.args, threading.Lock())  # type: ignore[attr-defined]
    came = pickle.loads(pickled(error))
    assert type(came) is Two and vars(came) == {"code": 7}
    assert came.args[0] == "7 for there" and came.args[1].startswith("<unlocked _thread.lock")


def test_one_whose_class_makes_no_second_one_loads_past_it() -> None:
    came = pickle.loads(pickled(Stubborn("x")))
    assert type(came) is Stubborn and came.args == ("x",)


def test_one_of_both_classes_is_left_to_its_text() -> None:
    error = exceptions.with_type_of(exceptions.TaskError, KeyError("x"), "f() raised KeyError")
    error.lock = threading.Lock()  # type: ignore[attr-defined]
    assert pickled(error) == b""


@pytest.mark.parametrize("locked", [False, True])
def test_each_in_a_group(locked: bool) -> None:
    inner = ExceptionGroup("inner", [Named(code=5)])
    if locked:
        inner.exceptions[0].lock = threading.Lock()  # type: ignore[attr-defined]
    came = pickle.loads(pickled(ExceptionGroup("outer", [Two(7, "there"), KeyError("x"), inner])))
    assert type(came) is ExceptionGroup and came.message == "outer"
    assert [type(each) for each in came.exceptions] == [Two, KeyError, ExceptionGroup]
    assert came.exceptions[0].code == 7 and vars(came.exceptions[2].exceptions[0]) == {"code": 5}


def test_it_stays_so_in_errors_of_errors() -> None:
    error = exceptions.with_type_of(exceptions.TaskError, Two(7, "there"), "f() raised Two")
    again = pickle.loads(
        pickle.dumps(exceptions.with_type_of(exceptions.TaskError, error, "g() raised it"))
    )
    assert isinstance(again, Two) and isinstance(again, exceptions.TaskError) and again.code == 7
    assert type(again.cause.cause) is Two
