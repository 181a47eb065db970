"""The package an actor is created from: its class, the constructor's arguments, the refs inside
them.

A ref that is an argument of its own becomes its value; a large one is read where it lies, or copied
from there. Where one is still to come, the arguments are pickled at once and its value is put into
its place in the actor's process; the actor is asked for when all are there. A ref inside an
argument stays one: the process registers it with its owner before it loads the arguments. On
another host than its maker's it says where it is and waits: the maker brings the refs by a call
(`bring`), which holds them until the arguments are loaded (`Brought`).
"""

from __future__ import annotations

import dataclasses
import pickle
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from troupe import _pickled, exceptions
from troupe._base import callbacks as _callbacks, calls as _calls, words as _words
from troupe._base.bridge import native
from troupe._base.identity import boot_id
from troupe._cluster import signals
from troupe._code import capture, user_main

BRINGING_S = 60.0  # from when the actor's process waits for what its maker is to bring
_MARK = b"TRpackage"  # no pickle begins so


@dataclasses.dataclass(frozen=True)
class _Place:
    """The place of a ref's value among the constructor's arguments."""

    number: int

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.argument_place, (self.number,)


@dataclasses.dataclass(frozen=True)
class _Value:
    """A large value, by its ref."""

    ref: Any

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.large_argument, (self.ref,)


class Package:
    """The constructor package of one actor.

    Raises LaunchError for what cannot be pickled or is too large. `to_come`: the arguments that are
    refs, unless all of them hold values already.
    """

    def __init__(
        self, cls: type, args: tuple[Any, ...], kwargs: Mapping[str, Any], *also: Any
    ) -> None:
        given = [each for each in (*args, *kwargs.values()) if type(each) is _calls.Ref]
        self.to_come = [] if _all_values(given) else given
        self.refs = native.TakenRefs()
        self._what = f"the actor class {cls.__name__}"
        args = tuple(self._placed(each) for each in args)
        kwargs = {name: self._placed(each) for name, each in kwargs.items()}
        try:
            self._pickled = self.refs.take(
                lambda: capture.dumps(cls, args, kwargs, *also, what=self._what)
            )
        except exceptions.TooLargeError:
            _check_size(cls, self._what)
            raise
        if len(self._pickled) > _words.current.function_bytes_max(capture.LIMIT_BYTES):
            _check_size(cls, self._what)

    def _placed(self, value: Any) -> Any:
        if type(value) is not _calls.Ref:
            return value
        if not self.to_come:
            return _value_of(value)
        return _Place(next(i for i, each in enumerate(self.to_come) if each is value))

    def payload(self) -> bytes:
        """As it travels. Waits for what is to come, and raises what that holds as an error."""
        values = tuple(_value_of(each) for each in self.to_come)
        if not values and not len(self.refs):
            found: bytes = self._pickled
            return found
        late = b""
        if values:
            late = self.refs.take(
                lambda: capture.dumps(None, values, {}, what=f"an argument of {self._what}")
            )
        holder = native.refs_holder() if len(self.refs) else b""
        return _MARK + pickle.dumps((holder, boot_id(), self.refs.names(), late, self._pickled))


def _check_size(cls: type, what: str) -> None:
    """Raises what is raised for a class that is too large itself, without the arguments."""
    try:
        capture.dumps(
            cls, (), {}, what=what, limit=_words.current.function_bytes_max(capture.LIMIT_BYTES)
        )
    except exceptions.TooLargeError as error:
        raise _words.current.of_oversized("actor", cls.__name__, error) from None


def _value_of(ref: Any) -> Any:
    """As it is pickled. Raises what the ref holds as an error."""
    value = _calls.get(ref)
    return _Value(ref) if native.lies_in_memory(ref) else value


def _all_values(refs: list[Any]) -> bool:
    """Return True if all refs are resolved and none holds an error."""
    for ref in refs:
        if not ref.done():
            return False
        try:
            _calls.get(ref)
        except Exception:
            return False
    return True


def load(
    payload: bytes, brought: Callable[[Callable[[], tuple[Any, ...]]], tuple[Any, ...] | None]
) -> tuple[Any, ...]:
    """Unpack a constructor package and return (class, args, kwargs, ...).

    Raises what unpickling raises. `brought(loaded)` gives what `loaded()` does while the refs are
    here that a maker on another host brings; None: it did not come. Then all is as on the maker's
    own host once that has ended: what does not need it is loaded, and its values are lost. So a
    detached actor is made again wherever.
    """
    if not payload.startswith(_MARK):
        found: tuple[Any, ...] = user_main.loads(payload, alone=True)
        return found
    holder, host, names, late, pickled = pickle.loads(payload[len(_MARK) :])
    elsewhere = bool(names) and host != boot_id()
    came = brought(lambda: _loaded(pickled, late)) if elsewhere else None
    if came is not None:
        return came
    received = native.received_refs(names, holder) if names else None
    try:
        return _loaded(pickled, late)
    except exceptions.ObjectLostError as error:
        if elsewhere:
            raise exceptions.OwnerDiedError(
                f"the refs inside the constructor's arguments did not come within {BRINGING_S:g} s "
                "from the "
                "process that made the actor, on another host: it ended, or cannot be reached "
                f"({error})"
            ) from error
        raise
    finally:
        del received  # the actor holds the refs inside its arguments


def _loaded(pickled: bytes, late: bytes) -> tuple[Any, ...]:
    cls, args, kwargs, *also = user_main.loads(pickled, alone=True)
    values = user_main.loads(late)[1] if late else ()

    def argument(given: Any) -> Any:
        if type(given) is _Place:
            given = values[given.number]
        return _calls.get(given.ref) if type(given) is _Value else given

    return (
        cls,
        tuple(map(argument, args)),
        {name: argument(each) for name, each in kwargs.items()},
        *also,
    )


class Brought:
    """Handler of the one call by which the maker brings the refs. It may come twice."""

    def __init__(self, loaded: Callable[[], tuple[Any, ...]]) -> None:
        self._loaded = loaded
        self._error: Exception | None = None
        self._given: tuple[Any, ...] | None = None

    def take(self, refs: bytes) -> None:
        """Loads the arguments while they are held by this call, and ends the serving."""
        if self._given is None and self._error is None:
            try:
                self._given = self._loaded()
            except Exception as error:
                self._error = error
        raise exceptions.ActorExit(0)

    def given(self) -> tuple[Any, ...] | None:
        """Once it was served; None: nothing came. Raises what loading raised."""
        if self._error is not None:
            raise self._error
        return self._given


def bring(refs: Any, address: dict[str, Any], label: str, control: Any) -> Any:
    """The maker's part: a channel to the process that waits, over which it was given the refs.

    It is to be told of its end.
    """
    channel = _calls.connect(address, label, control)
    channel.call("take", refs.as_ref())
    return channel


class LateStart:
    """Asks for an actor on a thread of its own, once its arguments are there; one of them that
    holds an error ends it."""

    def __init__(
        self,
        package: Package,
        ask: Callable[[bytes], object],
        fail: Callable[[exceptions.TroupeError], None],
        label: str,
    ) -> None:
        self._package, self._ask, self._fail, self._label = package, ask, fail, label
        self._lock = threading.Lock()
        self._begun = self._stopped = False
        self._over = threading.Event()
        self._then: list[Callable[[], None]] = []
        threading.Thread(target=self._run, name="troupe-late-actor", daemon=True).start()

    def stop(self) -> bool:
        """Refuse the maker's call from now on. Return False if it has already begun."""
        with self._lock:
            self._stopped = True
            return not self._begun

    def wait(self) -> None:
        """Until it was asked for, or never will be."""
        signals.wait(self._over)

    def then(self, action: Callable[[], None]) -> bool:
        """Runs `action` when it is over. False: it is."""
        with self._lock:
            if self._over.is_set():
                return False
            self._then.append(action)
            return True

    def _not_started(self, error: BaseException) -> exceptions.TroupeError:
        cause = getattr(error, "cause", None) or error
        return exceptions.with_type_of(
            exceptions.ActorDiedError, cause, f"{self._label} was not started: {error}"
        )

    def _run(self) -> None:
        try:
            payload = self._package.payload()
            with self._lock:
                if self._stopped:
                    return
                self._begun = True
            self._ask(payload)
        except BaseException as error:
            traceback.clear_frames(
                error.__traceback__
            )  # the arguments have the refs, and the handle keeps the error
            self._fail(self._not_started(error))
        finally:
            del self._package
            with self._lock:
                self._over.set()
                waiting, self._then = self._then, []
            _callbacks.run_all("what waited for an actor to be asked for", waiting)


@_pickled.maker("argument_place")
def _argument_place(number: int) -> Any:
    """Among a constructor's arguments: where the value of a ref belongs that was still to come."""
    return _Place(number)


@_pickled.maker("large_argument")
def _large_argument(ref: Any) -> Any:
    """Among them, a large value by its ref."""
    return _Value(ref)
