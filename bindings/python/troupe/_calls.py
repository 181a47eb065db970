"""The one place that touches the native call path: channels, refs, servers and their errors."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from troupe import _native, exceptions
from troupe._identity import boot_id
from troupe._refs import LocalRef, wait_any

NativeRef = _native.Ref
_UNSETTLED_SLICE_S = 0.02
_DIED = 11  # ErrorCode::kActorDied


def _task_error(cause: BaseException | None, type_name: str, text: str, traceback: str, method: str,
                description: str) -> BaseException:
    """What get() raises when a method raised: of the exception's own type, with the remote traceback."""
    where = f"{method}() of {description}" if method else "the call"
    body = "\n  ".join((traceback or f"{type_name}: {text}").rstrip().splitlines())
    return exceptions.with_type_of(exceptions.TaskError, cause, f"{where} raised {type_name}: {text}\n  {body}",
                                   remote_traceback=traceback or "")


_native.set_error_factory(exceptions.from_code)
_native.set_task_error_factory(_task_error)


def connect(address: dict, description: str) -> Any:
    """A channel to an actor.

    Raises ActorUnavailableError when its process cannot be reached from here.
    """
    if address["boot_id"] != boot_id():
        raise exceptions.ActorUnavailableError(
            f"{description} runs on another host ({address['host']}); calls between hosts are not part of this "
            "version: create it on this node")
    return _native.CallChannel(address["unix_path"], description=description)


def call(channel: Any, method: str, *args: Any, **kwargs: Any) -> Any:
    """Starts a call; a ref of its answer."""
    return channel.call(method, *args, **kwargs)


def fail(channel: Any, error: exceptions.TroupeError) -> None:
    """Tells a channel that its actor is dead: what is outstanding ends with this text."""
    channel.fail(_DIED, str(error))


def is_ref(value: Any) -> bool:
    """Whether `value` stands for a value that `get` returns."""
    kind = type(value)
    return kind is NativeRef or kind is LocalRef


def get_ref(ref: Any, timeout: float | None) -> Any:
    """The value of one ref. Raises its error, or GetTimeoutError after `timeout` seconds."""
    if type(ref) is LocalRef:
        return ref.get(timeout, _get_native)
    return _native.get(ref, timeout)


def _get_native(ref: Any, timeout: float | None) -> Any:
    return _native.get(ref, timeout)


def wait_refs(refs: Sequence[Any], num_returns: int, timeout: float | None) -> tuple[list[Any], list[Any]]:
    """(ready, not ready) in the order given; returns when `num_returns` are ready or time is over."""
    if all(type(ref) is NativeRef for ref in refs):
        return _native.wait(list(refs), num_returns, timeout)
    return _wait_mixed(refs, num_returns, timeout)


def _wait_mixed(refs: Sequence[Any], num_returns: int, timeout: float | None) -> tuple[list[Any], list[Any]]:
    """Some refs have no native one yet (their actor is starting): settle those, then wait natively."""
    import time

    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        native = [_native_of(ref) for ref in refs]
        pending = [ref for ref in refs if type(ref) is LocalRef and not ref.settled]
        here = sum(type(ref) is LocalRef and ref.settled and ref.native is None for ref in refs)
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        waiting = [ref for ref in native if ref is not None]
        enough = num_returns - here
        slice_s = left if not pending else min(_UNSETTLED_SLICE_S, _UNSETTLED_SLICE_S if left is None else left)
        ready_native: list[Any] = []
        if waiting and enough > 0:
            ready_native = _native.wait(waiting, min(enough, len(waiting)), slice_s)[0]
        elif waiting:
            ready_native = _native.wait(waiting, len(waiting), 0)[0]
        elif pending and enough > 0:
            wait_any(pending, 1, left)
        done = {id(ref) for ref in ready_native}
        ready = [ref for ref, under in zip(refs, native)
                 if (under is not None and id(under) in done)
                 or (type(ref) is LocalRef and ref.settled and ref.native is None)]
        if len(ready) >= num_returns or (left is not None and left <= 0):
            ready = ready[:num_returns]
            chosen = {id(ref) for ref in ready}
            return ready, [ref for ref in refs if id(ref) not in chosen]


def _native_of(ref: Any) -> Any:
    return ref if type(ref) is NativeRef else ref.native


def serve(instance: Any, path: str, *, max_concurrency: int) -> Any:
    """A server that listens on a Unix socket and runs the object's methods; `run()` serves until told to stop."""
    return _native.CallServer(instance, path, max_concurrency=max_concurrency)
