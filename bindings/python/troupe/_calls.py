"""The one place that touches the native call path: channels, refs, servers and their errors."""
from __future__ import annotations

from typing import Any

from troupe import exceptions
from troupe._bridge import native
from troupe._identity import boot_id

Ref = ObjectRef = native.Ref
get = native.get
wait = native.wait
_DIED = 11  # ErrorCode::kActorDied
_CODES = {kind: code for code, kind in exceptions.BY_CODE.items()}


def connect(address: dict, description: str, control: Any) -> Any:
    """A channel to an actor: by Unix socket on this host, else over TLS by its worker's port.

    Raises ActorUnavailableError when its process on this host cannot be reached; one on another host is
    dialled in the background, and calls that cannot reach it end as NotSentError.
    """
    if address["boot_id"] == boot_id():
        return native.CallChannel(address["unix_path"], description=description)
    return native.CallChannel("", description=description, host=address["host"], port=address["port"],
                              process=address["process"], actor=address["actor"], control=control)


def on_lost(channel: Any, address: dict, action: Any) -> None:
    """Runs `action()` on a thread of the runtime when the connection to another host is lost for good: one
    whose ends both live is made anew, and calls go on. On this host nothing is to be done: there it is the
    end of the process."""
    if address["boot_id"] != boot_id():
        channel.set_on_disconnect(action)


def fail(channel: Any, error: exceptions.TroupeError) -> None:
    """Tells a channel that its actor is dead, or out of reach for good: what is outstanding ends with this text."""
    channel.fail(_CODES.get(type(error), _DIED), str(error))


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

    def follow(self, ref: Any) -> None:
        """Answers with what another ref is answered with."""
        ref.future().add_done_callback(self._take)

    def _take(self, future: Any) -> None:
        error = future.exception()
        if error is not None:
            self.set_error(error)
        else:
            self.set_value(future.result())


def when_done(ref: Any, action: Any) -> None:
    """Runs `action()` on a thread of the runtime once the ref has its answer; it must not block."""
    ref.future().add_done_callback(lambda _: action())


def serve(server: Any, instance: Any, max_concurrency: int) -> None:
    """Runs calls on the instance in the calling thread until a method ends the process."""
    try:
        server.serve(instance, max_concurrency=max_concurrency)
    except SystemExit:
        return


def listen(path: str, control: Any) -> Any:
    """A server that listens on a Unix socket, and takes callers of other hosts over from the worker, for
    whom `control` gets it a certificate; calls wait until `serve`."""
    return native.CallServer(path, control)
