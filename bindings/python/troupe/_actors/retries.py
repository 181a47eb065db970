"""Calls of actors with `max_task_retries`: made again when the actor's process is lost, in the same
order.

`RetryLine` decides and is pure; `RetriedCalls` acts. A call is made again at most as often as its
method allows, so it runs at least once and perhaps more often; without retries nothing of this is
on the path.
"""

from __future__ import annotations

import functools
import threading
from typing import Any, Generic, TypeVar

from troupe import exceptions
from troupe._actors import tensors
from troupe._actors.link import ActorLink, Caller
from troupe._actors.method_options import MethodOptions
from troupe._base import calls as _calls
from troupe._base.bridge import native

_KEPT = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    _calls.Ref,
)  # types of values that nobody can change
LOST = (exceptions.ActorUnavailableError, exceptions.ResultLostError)
Call = TypeVar("Call")


class RetryLine(Generic[Call]):
    """The calls of one process to one actor that may be made again, in the order they were first
    made.

    After a loss nothing is sent until all that was sent has come back; then what was lost goes
    again, before what came since. So the order of the first attempts is that of every later one.
    Not thread-safe.
    """

    def __init__(self) -> None:
        self._sent: dict[int, Call] = {}
        self._held: dict[int, Call] = {}  # lost, or begun after a loss
        self._next = 0

    def begin(self, call: Call) -> tuple[int, list[Call]]:
        """Number the call, and return the number and the calls to send now."""
        number, self._next = self._next, self._next + 1
        if self._held:
            self._held[number] = call
            return number, []
        self._sent[number] = call
        return number, [call]

    def over(self, number: int) -> list[Call]:
        """A call has its answer, or is given up: what is to be sent now."""
        self._sent.pop(number, None)
        self._held.pop(number, None)
        return self._release()

    def lost(self, number: int) -> list[Call]:
        """A call that was sent came back without an answer and is to go again: what is to be sent
        now."""
        self._held[number] = self._sent.pop(number)
        return self._release()

    def _release(self) -> list[Call]:
        if self._sent or not self._held:
            return []
        self._sent = dict(sorted(self._held.items()))
        self._held = {}
        return list(self._sent.values())


class _Call:
    """A call, over all its attempts."""

    def __init__(
        self,
        target: str,
        options: MethodOptions,
        retries: int,
        frozen: Frozen,
        promises: list[Any],
        life: Any,
    ) -> None:
        self.target = target
        self.options = options
        self.left = retries  # -1: any number
        self.frozen = frozen
        self.promises = promises
        self.life = life  # life of the actor
        self.number = 0
        self.cancelled = False
        self.attempt: list[Any] = []
        self.coming = 0  # results still to come
        self.error: BaseException | None = None  # error of the attempt

    def may_go_again(self) -> bool:
        """Counts one more attempt, if there may be one."""
        if self.left == 0 or self.cancelled:
            return False
        self.left -= self.left > 0
        return True


class RetriedCalls(Caller):
    """Makes the calls of one link again. One per link."""

    __slots__ = ("_bound", "_line", "_link", "_lock")

    def __init__(self, link: ActorLink) -> None:
        self._link = link
        self._line: RetryLine[_Call] = RetryLine()
        self._bound: dict[str, Any] = {}
        self._lock = threading.RLock()

    @classmethod
    def of(cls, link: ActorLink) -> RetriedCalls:
        """The one of this link."""
        with link._lock:
            if link.retried is None:
                link.retried = cls(link)
            found: RetriedCalls = link.retried
            return found

    def unbind(self) -> None:
        """See Caller."""
        self._bound = {}

    def call(
        self,
        target: str,
        options: MethodOptions,
        retries: int,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        life: Any = None,
    ) -> Any:
        """Starts a call, which holds `life` until it has its answer; what its caller gets."""
        promises = [_calls.Promise() for _ in range(max(1, int(options.num_returns)))]
        call = _Call(target, options, retries, Frozen(args, kwargs), promises, life)
        with self._lock:
            call.number, now = self._line.begin(call)
            self._send(now)
        refs = [promise.ref for promise in promises]
        _open[refs[0].hex()] = call
        if all(ref.done() for ref in refs):
            _open.pop(refs[0].hex(), None)
        return refs[0] if options.num_returns == 1 else refs if options.num_returns else None

    def bound(self, target: str) -> Any:
        """Return the starter of calls of `target`."""
        with (
            self._lock,
            self._link._lock,
        ):  # the link's: else unbind() may come before what it is to drop
            found = self._bound.get(target)
            if found is None:
                found = self._bound[target] = self._link.bind(self, target)
            return found

    def _send(self, calls: list[_Call]) -> None:
        for call in calls:
            try:
                args, kwargs = call.frozen.thawed()
                made = self.bound(call.target)(*args, **kwargs)
            except (exceptions.TroupeError, TypeError, ValueError) as error:
                self._answer(call, error)
                continue
            call.attempt = made if isinstance(made, list) else [made] if made is not None else []
            if not call.attempt:
                self._answer(call, None)
                continue
            call.coming = len(call.attempt)
            for ref in call.attempt:
                ended = ref._ended() if call.options.keeps_tensors else ref.future()
                ended.add_done_callback(
                    functools.partial(self._came, call, ref is call.attempt[-1])
                )

    def _came(self, call: _Call, is_last: bool, future: Any) -> None:
        """Handle one result of an attempt: the last one says how the attempt ended, unless another
        one was lost with the process."""
        try:
            self._note(call, is_last, exceptions.as_raised(future.exception()))
        # raised by a class of the user's, say: make it the call's answer, or the caller waits for
        # ever
        except BaseException as fault:
            for promise in call.promises:
                if not promise.ref.done():
                    promise.set_error(fault)
            raise

    def _note(self, call: _Call, is_last: bool, error: BaseException | None) -> None:
        with self._lock:
            if is_last and call.error is None or isinstance(error, exceptions.ResultLostError):
                call.error = error
            call.coming -= 1
            if call.coming == 0:
                self._came_back(call)

    def _came_back(self, call: _Call) -> None:
        error, call.error = call.error, None
        with self._lock:
            if error is not None and call.frozen.failed():
                return self._answer(call, error)
            lost = (
                error
                if isinstance(error, LOST)
                and not isinstance(error, exceptions.TaskError)
                and not self._link.dead
                else None
            )  # nor is the session over
            if lost is not None and call.may_go_again():
                self._link.suspect(lost)
                return self._send(self._line.lost(call.number))
            if error is not None and retries(call.options, error) and call.may_go_again():
                return self._send([call])
            return self._answer(call, error)

    def _answer(self, call: _Call, error: BaseException | None) -> None:
        for promise, ref in zip(call.promises, call.attempt, strict=True):
            try:
                with tensors.left_where_they_are():
                    promise.set_value(_calls.get(ref))
            except (
                BaseException
            ) as raised:  # also of a value that cannot be loaded: whoever waits must hear of it
                promise.set_error(raised)
        if not call.attempt:
            for promise in call.promises:
                promise.set_error(error) if error is not None else promise.set_value(None)
        _open.pop(call.promises[0].ref.hex(), None)
        self._send(self._line.over(call.number))


class OpenCall:
    """A call that may be made again, known by the ref that its caller has until `close()`: for
    cancel()."""

    def __init__(self, ref: Any) -> None:
        self._hex = ref.hex()
        self.cancelled = False
        self.attempt: list[Any] = []
        _open[self._hex] = self

    def close(self) -> None:
        """Forget the stream: it has its answer, or nobody wants it."""
        _open.pop(self._hex, None)


_open: dict[str, _Call | OpenCall] = {}  # by the ref that their caller has


def cancel(ref: Any, *, recursive: bool) -> bool:
    """Cancels a call that may be made again, and with `recursive` what it started; False: the ref
    is of none."""
    call = _open.get(ref.hex())
    if call is None:
        return False
    call.cancelled = True
    for attempt in call.attempt[:1]:
        attempt._cancel(recursive)
    return True


def retries(options: MethodOptions, error: BaseException) -> bool:
    """Return True if an exception of the method itself is a reason to call it again."""
    which = options.retry_exceptions
    if not which or not isinstance(error, exceptions.TaskError):
        return False
    return isinstance(error, which) if isinstance(which, tuple) else which


class Frozen:
    """Arguments as they are now: what is changed later must not be seen by another attempt.

    Refs among them stay refs, and those inside are held.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._args, self._kwargs = args, kwargs
        self._changing: Any = None
        if all(type(value) in _KEPT for value in (*args, *kwargs.values())):
            return
        changing = (
            {i: value for i, value in enumerate(args) if type(value) not in _KEPT},
            {name: value for name, value in kwargs.items() if type(value) not in _KEPT},
        )
        self._changing = native.completed_ref(changing)
        self._args = tuple(None if i in changing[0] else value for i, value in enumerate(args))
        self._kwargs = {
            name: None if name in changing[1] else value for name, value in kwargs.items()
        }

    def thawed(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return a fresh copy of the frozen arguments."""
        if self._changing is None:
            return self._args, self._kwargs
        by_place, by_name = _calls.get(self._changing, None)
        return tuple(by_place.get(i, value) for i, value in enumerate(self._args)), {
            **self._kwargs,
            **by_name,
        }

    def failed(self) -> bool:
        """Return True if a ref among them holds an error: that is its call's answer, however often
        it is made."""
        return any(
            holds_error(value)
            for value in (*self._args, *self._kwargs.values())
            if type(value) is _calls.Ref
        )


def holds_error(ref: Any) -> bool:
    try:
        if ref.done():
            with tensors.left_where_they_are():
                _calls.get(ref)
    except Exception:
        return True
    return False
