"""A process that runs tasks: functions by the key their callers know them by."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from troupe import _failures, _session, exceptions

DEFINE = "__define__"


class TaskHost:
    """The instance of such a process. Its caller defines a function before it calls it."""

    current: "TaskHost | None" = None

    def __init__(self) -> None:
        TaskHost.current = self
        self._functions: dict[str, Callable[..., Any]] = {}
        self.names: dict[str, str] = {}

    def __troupe_find__(self, key: str) -> Callable[..., Any]:
        """What a call of `key` runs. Raises RuntimeError."""
        if key == DEFINE:
            return self._define
        function = self._functions.get(key)
        if function is None:
            raise RuntimeError(f"the function {key} was not defined here")
        return function

    def _define(self, key: str, payload: bytes) -> None:
        if key not in self._functions:
            self._functions[key], self.names[key] = _loaded(payload)


def _loaded(payload: bytes) -> tuple[Callable[..., Any], str]:
    """The function and its name; what cannot be loaded is one that raises why, for each of its tasks."""
    import cloudpickle

    try:
        if payload.startswith(b"{"):
            payload = _fetched(payload)
        function, _, _, name = cloudpickle.loads(payload)
    except ImportError as error:
        text = _failures.explain_import(error, "the function")
        return _raiser(lambda: exceptions.with_type_of(exceptions.RuntimeEnvSetupError, error, text)), "task"
    except BaseException as error:
        return _raiser(lambda: error), "task"
    return function, name


def _raiser(make: Callable[[], BaseException]) -> Callable[..., Any]:
    error = make()

    def raises(*args: Any, **kwargs: Any) -> Any:
        raise error

    return raises


def _fetched(reference: bytes) -> bytes:
    """A function that is too large for a call: from the worker that keeps it."""
    import json

    from troupe import _blobs

    blob = json.loads(reference)
    return _blobs.get(_session.current(), blob["holder"], bytes.fromhex(blob["sha256"]), blob["size_bytes"],
                      what="the function")
