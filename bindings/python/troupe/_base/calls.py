"""The one place that touches the native call path: channels, refs, servers and their errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from troupe import exceptions
from troupe._base.bridge import native
from troupe._base.identity import boot_id

if TYPE_CHECKING:
    from troupe._typed import ObjectRef as ObjectRef, RefStream as RefStream

    Ref = ObjectRef
else:
    Ref = ObjectRef = native.Ref
    RefStream = native.RefStream
get = native.get
wait = native.wait
_CODES: dict[type[BaseException], int] = {kind: code for code, kind in exceptions.BY_CODE.items()}


def _to(address: dict[str, Any], control: Any) -> dict[str, Any]:
    """Return how to reach a process that serves calls: by Unix socket on this host, else over TLS
    by its worker's port."""
    if is_here(address):
        return {"unix_path": address["unix_path"]}
    return {
        "unix_path": "",
        "host": address["host"],
        "port": address["port"],
        "process": address["process"],
        "actor": address["actor"],
        "control": control,
    }


def connect(address: dict[str, Any], description: str, control: Any) -> Any:
    """A channel to a process that serves calls.

    Raises ActorUnavailableError when its process on this host cannot be reached; one on another
    host is dialled in the background, and calls that cannot reach it end as NotSentError.
    """
    return native.CallChannel(description=description, **_to(address, control))


def connect_aside(address: dict[str, Any], description: str, control: Any) -> Any:
    """Connect to the second call socket of an actor, which answers beside its methods
    (`runtime/net/handover.h`); for an actor on this host the address may be its `unix_path` and
    `boot_id` alone."""
    if is_here(address):
        return native.CallChannel(
            _aside(address["unix_path"]), description=description, grace_s=0.0
        )
    return native.CallChannel(description=description, aside=True, **_to(address, control))


def listen_aside(unix_path: str, control: Any) -> Any:
    """Return a server at the second call socket of the process with call socket `unix_path`."""
    return native.CallServer(_aside(unix_path), control)


def _aside(unix_path: str) -> str:
    return unix_path + ".a"  # AsideSocket in runtime/net/handover.h


def channel_later(description: str, pending_max: int, ordered: bool) -> Any:
    """A channel to an actor that is not there yet: calls wait in it until `aim`.

    More than `pending_max` calls without an answer are refused with PendingCallsLimitExceeded (-1:
    none). Unless `ordered`, a call may overtake one whose arguments are to come.
    """
    return native.CallChannel(
        None, description=description, pending_max=pending_max, ordered=ordered
    )


def aim(channel: Any, address: dict[str, Any], control: Any) -> None:
    """The actor is there.

    Does not block; where its process cannot be reached, the channel's calls end as NotSentError.
    """
    channel.aim(**_to(address, control))


def is_here(address: dict[str, Any]) -> bool:
    """Return True if an actor is on this host."""
    found: bool = address["boot_id"] == boot_id()
    return found


def on_lost(channel: Any, address: dict[str, Any], action: Any) -> None:
    """Runs `action()` on a thread of the runtime when the connection to another host is lost for
    good: one whose ends both live is made anew, and calls go on. On this host nothing is to be
    done: there it is the end of the process."""
    if not is_here(address):
        channel.set_on_disconnect(action)


def fail(channel: Any, error: exceptions.TroupeError) -> None:
    """Tells a channel that its actor is dead, or out of reach for good: its calls end with
    `error`."""
    error.__dict__["_passed_on"] = True
    channel.fail_with(error)


class Promise:
    """A ref whose answer this process provides later; the first answer counts."""

    def __init__(self) -> None:
        self.ref, self._resolver = native.pending_ref()

    def set_value(self, value: Any) -> None:
        """Answers with a value, copied as a call would copy it."""
        self._resolver.set_value(value)

    def set_error(self, error: BaseException) -> None:
        """Answers with an exception, which `get` raises as it is."""
        code = _CODES.get(type(error))
        if code is not None:
            self._resolver.set_error(code, str(error))
            return
        error.__dict__["_passed_on"] = True
        self._resolver.set_exception(error)


def on_completed(ref: Any, callback: Any) -> None:
    """Runs `callback` with the ref's value, or with its exception, on a thread of the runtime."""
    ref.future().add_done_callback(lambda future: callback(future.exception() or future.result()))


def when_done(ref: Any, action: Any) -> None:
    """Runs `action()` on a thread of the runtime once the ref has its answer; it must not block."""
    ref.future().add_done_callback(lambda _: action())


def serve(
    server: Any,
    instance: Any,
    *,
    find: Any = None,
    max_concurrency: int = 1,
    groups: Mapping[str, int] | None = None,
    loop: Any = None,
) -> SystemExit | None:
    """Runs calls in the calling thread until a method ends the process, and gives what it raised to
    that end: of a name, what `find(name)` gives, by default that attribute of the instance; of a
    call that leaves its tensors here, `find(name, returns)`.

    One after the other; on threads where `max_concurrency` is above 1 or there are concurrency
    groups; as coroutines on `loop`, an asyncio event loop, where that is given.
    """
    named = list((groups or {}).items())
    try:
        if loop is not None:
            server.serve_on_loop(loop, instance, max_concurrency, find, named)
        else:
            server.serve(instance, max_concurrency, find, named)
    except SystemExit as left:
        return left
    return None


def listen(path: str, control: Any) -> Any:
    """A server that listens on a Unix socket, and takes callers of other hosts over from the
    worker, for whom `control` gets it a certificate; calls wait until `serve`."""
    return native.CallServer(path, control)
