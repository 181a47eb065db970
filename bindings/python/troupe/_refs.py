"""References to values that are not a call's answer yet, or never were one: `put`, `ready()`, early calls.

A call on an actor that is alive gives a native ref. What is here covers the rest, so that `get` and
`wait` take both.
"""
from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from troupe import exceptions

_changed = threading.Condition()  # any LocalRef was settled


class LocalRef:
    """A value, an error, or a native ref that is still to come. Settled exactly once."""

    __slots__ = ("_callbacks", "_state", "_value", "__weakref__")

    def __init__(self) -> None:
        self._callbacks: list[Callable[[], None]] = []
        self._state = ""
        self._value: Any = None

    @classmethod
    def of(cls, value: Any) -> "LocalRef":
        """A ref whose value is there already."""
        ref = cls()
        ref.set_value(value)
        return ref

    def __reduce__(self) -> tuple:
        raise TypeError("a reference cannot travel inside another value yet: pass it as an argument of its own, "
                        "or the value itself")

    def set_value(self, value: Any) -> None:
        """Settles with a value."""
        self._settle("value", value)

    def set_error(self, error: BaseException) -> None:
        """Settles with an exception that `get` raises."""
        self._settle("error", error)

    def set_ref(self, ref: Any) -> None:
        """Settles with a native ref, which may be unanswered itself."""
        self._settle("ref", ref)

    def _settle(self, state: str, value: Any) -> None:
        with _changed:
            if self._state:
                return
            self._value, self._state = value, state
            callbacks, self._callbacks = self._callbacks, []
            _changed.notify_all()
        for callback in callbacks:
            callback()

    def on_settled(self, callback: Callable[[], None]) -> None:
        """Runs `callback()` once settled, at once if it is; it must not block."""
        with _changed:
            if not self._state:
                self._callbacks.append(callback)
                return
        callback()

    @property
    def native(self) -> Any:
        """The native ref this one stands for, or None."""
        return self._value if self._state == "ref" else None

    @property
    def settled(self) -> bool:
        """Whether there is a value, an error or a native ref."""
        return bool(self._state)

    def get(self, timeout: float | None, get_native: Callable[[Any, float | None], Any]) -> Any:
        """The value; blocks up to `timeout` seconds. Raises its error or GetTimeoutError."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with _changed:
            while not self._state:
                remaining = None if deadline is None else deadline - time.monotonic()
                if remaining is not None and remaining <= 0:
                    raise exceptions.GetTimeoutError(f"no value after {timeout:g} s: the actor has not started yet")
                _changed.wait(remaining)
        if self._state == "ref":
            return get_native(self._value, None if deadline is None else max(0.0, deadline - time.monotonic()))
        if self._state == "error":
            raise self._value
        return self._value


def wait_any(refs: Sequence[LocalRef], count: int, timeout: float | None) -> None:
    """Returns when `count` of these are settled, or after `timeout` seconds."""
    with _changed:
        _changed.wait_for(lambda: sum(ref.settled for ref in refs) >= count, timeout)
