"""What an actor is made of, as it travels: its class, the constructor's arguments, the refs inside them.

A ref that is an argument of its own becomes its value. Where one is still to come, the arguments are pickled at once and its
value is put into its place in the actor's process; the actor is asked for when all are there. A ref inside an argument stays
one: the process registers it with its owner before it loads the arguments.
"""
from __future__ import annotations

import dataclasses
import pickle
import threading
from collections.abc import Callable, Mapping
from typing import Any

from troupe import _calls, _capture, exceptions
from troupe._bridge import native
from troupe._identity import boot_id

_MARK = b"TRpackage"  # no pickle begins so


@dataclasses.dataclass(frozen=True)
class _Place:
    """Where the value of a ref belongs."""

    number: int


class Package:
    """Of one actor. Raises LaunchError for what cannot be pickled or is too large. `to_come`: the arguments that are refs,
    unless all of them hold values already."""

    def __init__(self, cls: type, args: tuple, kwargs: Mapping[str, Any], *also: Any) -> None:
        given = [each for each in (*args, *kwargs.values()) if type(each) is _calls.Ref]
        self.to_come = [] if _all_values(given) else given
        self.refs = native.TakenRefs()
        self._what = f"the actor class {cls.__name__}"
        args = tuple(self._placed(each) for each in args)
        kwargs = {name: self._placed(each) for name, each in kwargs.items()}
        self._pickled = self.refs.take(lambda: _capture.dumps(cls, args, kwargs, *also, what=self._what))

    def _placed(self, value: Any) -> Any:
        if type(value) is not _calls.Ref:
            return value
        if not self.to_come:
            return _calls.get(value)
        return _Place(next(i for i, each in enumerate(self.to_come) if each is value))

    def payload(self) -> bytes:
        """As it travels. Waits for what is to come, and raises what that holds as an error."""
        values = tuple(_calls.get(each) for each in self.to_come)
        if not values and not len(self.refs):
            return self._pickled
        late = b""
        if values:
            late = self.refs.take(lambda: _capture.dumps(None, values, {}, what=f"an argument of {self._what}"))
        holder = native.refs_holder() if len(self.refs) else b""
        return _MARK + pickle.dumps((holder, boot_id(), self.refs.names(), late, self._pickled))


def _all_values(refs: list) -> bool:
    """Whether all are there and none holds an error."""
    for ref in refs:
        if not ref.done():
            return False
        try:
            _calls.get(ref)
        except Exception:
            return False
    return True


def load(payload: bytes) -> tuple:
    """What was packed: (class, args, kwargs, ...). Raises what unpickling raises, and TypeError for refs of another host."""
    import cloudpickle

    if not payload.startswith(_MARK):
        return cloudpickle.loads(payload)
    holder, host, names, late, pickled = pickle.loads(payload[len(_MARK):])
    here = host == boot_id()
    if names and not here and not native.only_lives(names):
        raise TypeError("the constructor's arguments hold Refs, and the actor is on another host than who made it\n  pass their "
                        "values, troupe.get(ref), or place the actor on its maker's host")
    received = native.received_refs(names, holder) if names and here else None
    cls, args, kwargs, *also = cloudpickle.loads(pickled)
    if late:
        values = cloudpickle.loads(late)[1]
        args = tuple(values[each.number] if type(each) is _Place else each for each in args)
        kwargs = {name: values[each.number] if type(each) is _Place else each for name, each in kwargs.items()}
    del received  # what the arguments hold is held by them
    return cls, args, kwargs, *also


class LateStart:
    """Asks for an actor on a thread of its own, once its arguments are there; one of them that holds an error ends it."""

    def __init__(self, package: Package, ask: Callable[[bytes], None],
                 fail: Callable[[exceptions.TroupeError], None], label: str) -> None:
        self._package, self._ask, self._fail, self._label = package, ask, fail, label
        self._lock = threading.Lock()
        self._begun = self._stopped = False
        self._over = threading.Event()
        self._then: list[Callable[[], None]] = []
        threading.Thread(target=self._run, name="troupe-late-actor", daemon=True).start()

    def stop(self) -> bool:
        """It is not to be asked for. False: it was."""
        with self._lock:
            self._stopped = True
            return not self._begun

    def wait(self) -> None:
        """Until it was asked for, or never will be."""
        self._over.wait()

    def then(self, action: Callable[[], None]) -> bool:
        """Runs `action` when it is over. False: it is."""
        with self._lock:
            if self._over.is_set():
                return False
            self._then.append(action)
            return True

    def _run(self) -> None:
        try:
            payload = self._package.payload()
            with self._lock:
                if self._stopped:
                    return
                self._begun = True
            self._ask(payload)
        except BaseException as error:
            cause = getattr(error, "cause", None) or error
            self._fail(exceptions.with_type_of(exceptions.ActorDiedError, cause, f"{self._label} was not started: {error}"))
        finally:
            with self._lock:
                self._over.set()
                waiting, self._then = self._then, []
            for action in waiting:
                action()
