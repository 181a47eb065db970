"""A process that runs tasks: functions by the key their callers know them by."""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable
from typing import Any

from troupe import _pickled, exceptions
from troupe._base import bridge as _bridge, waiting as _waiting
from troupe._base.context import ActorContext
from troupe._cluster import session
from troupe._code import failures, user_main
from troupe._tasks import waits
from troupe._tasks.of_session import LEASES

DEFINE = "__define__"
LENT = "__lent__"
"""How many objects of the process others hold refs of."""
LENT_AND_OVER = "__lent_and_over__"
"""The same of a process that gets no more tasks: where it stays for these, its CPUs are the node's
to give."""
LOOKS = 64  # reads; the word may lie behind other calls


class TaskHost:
    """The instance of such a process. Its caller defines a function before it calls it."""

    current: TaskHost | None = None

    def __init__(self, cpus: float, lender: str = "") -> None:
        TaskHost.current = self
        self.lending = waits.Lending(
            cpus, lender
        )  # CPUs that this process holds, or that `lender` holds and its caller lends it
        self._functions: dict[str, Callable[..., Any]] = {}
        self.names: dict[str, str] = {}
        _waiting.around_wait = functools.partial(waits.waiting, self.lending)
        signal.signal(signal.SIGINT, _on_interrupt)

    def __troupe_find__(self, key: str) -> Callable[..., Any]:
        """Return the callable for a call of `key`. Raises RuntimeError."""
        if key == DEFINE:
            return self._define
        if key == LENT:
            return _lent
        if key == LENT_AND_OVER:
            return self._lent_and_over
        function = self._functions.get(key)
        if function is None:
            raise RuntimeError(f"the function {key} was not defined here")
        return function

    def _lent_and_over(self) -> int:
        held = _lent()
        if held and self.lending.cpus:
            self.lending.for_good(LEASES.known(session.current()))
        return held

    def _define(self, key: str, payload: bytes) -> None:
        if key not in self._functions:
            self._functions[key], self.names[key] = _loaded(payload)


def _lent() -> int:
    found: int = _bridge.native._object_figures()["lent"]
    return found


def _on_interrupt(number: int, frame: Any) -> None:
    """Somebody wants the task to look whether it is cancelled; that may have been another one, or
    it knows already."""
    for _ in range(LOOKS):
        if _bridge.native.take_cancelled():  # tasks that it started are cancelled too, if requested
            raise KeyboardInterrupt("the task was cancelled")


class Interrupter:
    """On a node where tasks of a caller elsewhere run."""

    def interrupt(self, pid: int) -> None:
        """See the function."""
        interrupt(pid)


def interrupt(pid: int) -> None:
    """Makes the task that a process of this host runs look whether it is cancelled; not one that is
    something else by now."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            if file.read(6) == b"troupe":
                os.kill(pid, signal.SIGINT)
    except OSError:
        return  # the process is gone


def _loaded(payload: bytes) -> tuple[Callable[..., Any], str]:
    """The function and its name; what cannot be loaded is one that raises why, for each of its
    tasks."""
    try:
        if payload.startswith(b"{"):
            payload = _fetched(payload)
        function, _, _, name = user_main.loads(payload)
    except ImportError as error:
        text = failures.explain_import(error, "the function")
        return _raiser(
            exceptions.with_type_of(exceptions.RuntimeEnvSetupError, error, text)
        ), "task"
    except exceptions.ObjectLostError as error:
        return _raiser(
            exceptions.ObjectLostError(
                f"the function holds Refs, and one of them cannot be had in this process: {error}"
            )
        ), "task"
    except BaseException as error:
        return _raiser(error), "task"
    return function, name


def _raiser(error: BaseException) -> Callable[..., Any]:
    def raises(*args: Any, **kwargs: Any) -> Any:
        raise error

    return raises


def _fetched(reference: bytes) -> bytes:
    """A function that is too large for a call: from the worker that keeps it."""
    import json

    from troupe._cluster import blobs

    blob = json.loads(reference)
    return blobs.get(
        session.current(),
        blob["holder"],
        bytes.fromhex(blob["sha256"]),
        blob["size_bytes"],
        what="the function",
    )


def actor_here() -> ActorContext | None:
    """Return the actor whose code this is; the process of a task has one too, which nobody knows
    of."""
    return ActorContext.current if TaskHost.current is None else None


_pickled.named_in("troupe._pickled", TaskHost)
