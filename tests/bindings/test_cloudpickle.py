"""The pickler of functions and classes: their code keeps its file's name."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from troupe._code import capture, cloudpickle


def make_local() -> Callable[[], Any]:
    class Local:
        def method(self) -> Any:
            return lambda: 0  # code inside of code

    return Local


@pytest.mark.parametrize(
    "dumps",
    [
        cloudpickle.dumps,
        capture.cloudpickled,
        lambda value: capture.dumps(value, (), {}, what="it"),
    ],
)
def test_code_keeps_its_file(dumps: Callable[[Any], bytes]) -> None:
    value = pickle.loads(dumps(make_local()))
    method = (value[0] if isinstance(value, tuple) else value).method
    assert method.__code__.co_filename == method(None).__code__.co_filename == __file__


def test_buffers_go_beside_it() -> None:
    taken: list[pickle.PickleBuffer] = []
    data = cloudpickle.dumps(
        [lambda: 1, pickle.PickleBuffer(bytearray(b"beside"))], 5, taken.append
    )
    function, beside = pickle.loads(data, buffers=taken)
    assert function() == 1 and bytes(beside) == b"beside"
