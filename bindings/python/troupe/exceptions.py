"""Errors a user of Troupe meets, under their own names and under Ray's.

Every error is a `TroupeError`. An error that stems from the user's own code is also an instance of
the exception that code raised (`except KeyError` keeps working across processes): such classes are
made on demand by `with_type_of`. Texts are for the person who reads them: what, where, why, what to
do.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any

from troupe import _pickled
from troupe._base import visible as _visible
from troupe._base.exception_pickles import carried, dict_of, made


class TroupeError(Exception):
    """Base of all errors of the runtime.

    `cause`: what it stems from, where that is known.

    Its text names what nodes, actors and programs say of themselves; str() gives it without what a
    terminal would obey (escape sequences, controls of writing direction). Attributes like
    `log_tail` keep what there was.
    """

    cause: BaseException | str | None = None

    def __str__(self) -> str:
        return _visible.text(super().__str__())

    def __init_subclass__(cls, **given: Any) -> None:
        if "_dual_of" not in vars(
            cls
        ):  # an internal class made on demand: do not run the user base's __init_subclass__ for it
            super().__init_subclass__(**given)


class SystemError_(TroupeError):
    """Something in the runtime itself broke; never the user's fault."""


class ConnectionError(TroupeError, builtins.ConnectionError):
    """No cluster could be reached at the address, or the session to it ended."""


class JoinError(TroupeError):
    """A cluster answered and refused: wrong, expired or revoked token, or another cluster's
    token."""


class PlacementError(TroupeError):
    """A request that no state of this cluster can satisfy; the text has the reason per node."""


class VersionError(TroupeError):
    """Two sides speak different versions (of Python, or of the protocol)."""


class InvalidError(TroupeError, ValueError):
    """An argument that can never be right."""


class NotFoundError(TroupeError, ValueError):
    """An unknown launch, actor, group, node or name."""


class TooLargeError(TroupeError, ValueError):
    """Over a limit; the text names what is large and the limit."""


class GetTimeoutError(TroupeError, TimeoutError):
    """A deadline passed before the value was there."""


class CancelledError(TroupeError):
    """A launch or a call was cancelled."""


class FencedError(TroupeError):
    """An older epoch, attempt or incarnation tried to act; a newer one exists."""


class UnknownOutcomeError(TroupeError):
    """The head cannot be reached, so neither success nor failure may be claimed."""


class TaskError(TroupeError):
    """A method or task raised; also an instance of what it raised. `cause` is that exception."""

    remote_traceback: str = ""

    def as_instanceof_cause(self) -> TaskError:
        """Ray's name: the error that is also an instance of its cause's type (this one already
        is)."""
        return self


class ActorError(TroupeError):
    """The actor could not answer.

    Fields: `actor_id`, its id where that is known; `failure_kind`, why its process ended or is out
    of reach, as a word ("killed", "out_of_memory", "node_lost", ...), "" where nobody has said.
    """

    actor_id: str = ""
    failure_kind: str = ""


class ActorDiedError(ActorError):
    """The actor's process is gone and will not come back; the text names the cause."""


class ActorExit(SystemExit):
    """The exception raised by exit_actor(): passes through user code that catches Exception, ends
    the actor."""


class ActorUnavailableError(ActorError):
    """The actor cannot be reached just now; a later call may succeed."""


class NotSentError(ActorUnavailableError):
    """The call never left this process: safe to repeat."""


class MaybeExecutedError(ActorUnavailableError):
    """The call was sent and its answer will not come: it may have run."""


class ActorUnschedulableError(ActorError, PlacementError):
    """No node of the cluster can ever hold this actor."""


class TaskUnschedulableError(PlacementError):
    """No node of the cluster can ever run this task."""


class WorkerCrashedError(TroupeError):
    """The process that ran a task died."""


class RayProcessDiedError(TroupeError):
    """A process of a real Ray cluster (`api="ray"`) ended, and with it the launch that the cluster
    was of.

    `process`: Ray's name of it (gcs_server, raylet); `host`; `exit_code` or `signal`, the other
    None; `log_tail`, what it wrote last.
    """

    process: str = ""
    host: str = ""
    exit_code: int | None = None
    signal: int | None = None
    log_tail: str = ""


class NodeDiedError(TroupeError):
    """The node that held the actor or object is gone."""


class NodeUnreachableError(NodeDiedError):
    """Nobody reaches the node: it counts as gone, what runs there ends when it is heard of
    again."""


class OutOfMemoryError(TroupeError):
    """The kernel killed the process for lack of memory.

    The error of a task, of an actor's call or of a launch that ended so is also a
    WorkerCrashedError, an ActorDiedError or a LaunchError. In bytes, 0 where it is not known:
    `used`, the most that the process held in memory; `limit`, what its control group may use, or
    the machine has, for all processes there; `requested`, its `memory=`, 0 where it said none.
    """

    used: int = 0
    limit: int = 0
    requested: int = 0


class RuntimeEnvSetupError(TroupeError):
    """A runtime environment could not be set up."""


class ObjectLostError(TroupeError):
    """The value existed and is gone."""


class ObjectFetchTimedOutError(ObjectLostError):
    """The value could not be fetched in time."""


class ObjectReconstructionFailedError(ObjectLostError):
    """The value is gone and cannot be made again."""


class ResultLostError(ObjectLostError):
    """The result of a call is gone with the process that made it, which had answered.

    Calls that may be made again are.
    """


class OutOfDiskError(TroupeError):
    """The disk is full."""


class ObjectStoreFullError(TroupeError):
    """There is no room for the value."""


class CrossLanguageError(TroupeError):
    """Code of another language failed."""


class UnserializableException(TaskError):
    """An exception of a method or task that cannot be pickled, or cannot be loaded here; only its
    text arrived."""


class OwnerDiedError(ObjectLostError):
    """The process that owned the value is gone."""


class TensorChangedError(TroupeError, RuntimeError):
    """A tensor that stays in its actor (`tensor_transport="auto"`) was changed there after it was
    returned."""


class PendingCallsLimitExceeded(TroupeError):
    """More calls are waiting on an actor than its limit allows."""


class TaskPlacementGroupRemoved(WorkerCrashedError):
    """The placement group was removed while something waited for it, or for a process in it."""


class ActorPlacementGroupRemoved(ActorDiedError):
    """The placement group the actor lived in was removed."""


class AlreadyExistsError(TroupeError, ValueError):
    """A name, an id or an address that is taken."""


class ActorAlreadyExistsError(AlreadyExistsError):
    """The name is taken in this namespace."""


class ActorHandleNotFoundError(TroupeError, ValueError):
    """The handle belongs to another cluster or session."""


class MissingPackageError(TroupeError, ImportError):
    """A Python package that a part of Troupe needs is not installed.

    The text has the `pip install` that brings it; `name` is the module.
    """


class DamagedFileError(TroupeError):
    """A file that Troupe has written is not what was written.

    Fields: `path`, `offset` in bytes, `why`, and `repair`, what to do.
    """

    def __init__(self, path: Any, offset: int, why: str, repair: str) -> None:
        super().__init__(f"{path} is damaged at offset {offset}: {why}\n  {repair}")
        self.path, self.offset, self.why, self.repair = path, offset, why, repair

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.offset, self.why, self.repair)


class LaunchError(TroupeError):
    """A launch failed. Also an instance of the first failing rank's exception type.

    Fields: `rank`, `host`, `exit_code`, `signal`, `cause` (the rank's exception, or a sentence),
    `epoch`, `log_tail` (last lines of its stderr), `launch`.
    """

    rank: int | None = None
    host: str = ""
    exit_code: int | None = None
    signal: int | None = None
    epoch: int = 0
    log_tail: str = ""
    launch: str = ""


class LaunchCancelledError(LaunchError, CancelledError):
    """The launch was cancelled before its marker."""


def _text_of(self: BaseException) -> str:
    found: str = dict_of(self).get("_text", "")
    return found


def _visible_text_of(self: BaseException) -> str:
    return _visible.text(_text_of(self))


def _repr_of(self: Any) -> str:
    try:
        found: str = type(self)._dual_of[1].__repr__(self)
        return found
    except Exception:  # raised by the cause's class
        return f"{type(self).__name__}({_text_of(self)!r})"


def _reduce(self: Any, _protocol: int = 0) -> tuple[Any, ...]:
    fields = {k: v for k, v in dict_of(self).items() if k not in ("_text", "cause")}
    cause = dict_of(self).get("cause")
    cause = carried(cause) if isinstance(cause, BaseException) else None
    return _pickled.error, (type(self)._dual_of[0], cause, _text_of(self), fields)


_OF_PYTHON = {
    name: vars(BaseException)[name]
    for name in (
        "__getattribute__",
        "__setattr__",
        "__delattr__",
        "__dict__",
        "args",
        "with_traceback",
        "add_note",
        "__traceback__",
        "__context__",
        "__cause__",
        "__suppress_context__",
    )
} | {"__class__": vars(object)["__class__"]}
"""What a class of the user's may have changed, and Python and this package must be able to rely on.
"""
_NEVER = {
    SystemExit,
    KeyboardInterrupt,
}  # kinds that no error of the runtime is of: they end programs
_PLAIN = {
    Exception,
    BaseException,
}  # kinds that every error is of, and that carry attributes of their own all the same
_RAYS = ("RayTaskError", "RayActorError", "RaySystemError", "TaskCancelledError")
_dual_classes: dict[tuple[type, type], type] = {}


def _shown_as(base: type) -> tuple[str, str]:
    """The module and the name by which a class made on demand shows its base: Ray's, in a program
    that is written for it."""
    from troupe._base import job as _job

    known = next((name for name in _RAYS if globals()[name] is base), None)
    return (
        ("ray.exceptions", known)
        if known is not None and _job.follows_ray()
        else (base.__module__, base.__name__)
    )


def _attribute_by(own: Any) -> Any:
    def attribute(self: Any, name: str) -> Any:
        if name.startswith(
            "__"
        ):  # Python looks for __notes__ and its like, and takes no other error than this
            raise AttributeError(name)
        return own(self, name)

    return attribute


def _dual_class(base: type, cause_type: type) -> type:
    known = _dual_classes.get((base, cause_type))
    if known is None:
        module, name = _shown_as(base)
        body = {
            **_OF_PYTHON,
            "__str__": _visible_text_of,
            "__repr__": _repr_of,
            "__reduce__": _reduce,
            "__reduce_ex__": _reduce,
            "__init__": lambda self, *a, **k: None,
            "__bool__": lambda self: True,
            "__module__": module,
            "_dual_of": (base, cause_type),
        }
        if hasattr(cause_type, "__getattr__"):
            body["__getattr__"] = _attribute_by(cause_type.__getattr__)
        bases = (cause_type,) if base in cause_type.__mro__ else (base, cause_type)
        known = type(f"{name}({cause_type.__name__})", bases, body)
        _dual_classes[base, cause_type] = known
    return known


def with_type_of(
    base: type, cause: BaseException | None, text: str, /, **fields: Any
) -> TroupeError:
    """An error of class `base` that is also an instance of `type(cause)` and carries its
    attributes.

    No code of that class runs for it. Falls back to `base` alone where there can be no such class
    (two incompatible layouts, a metaclass that refuses), and for SystemExit and KeyboardInterrupt:
    a script whose rank called sys.exit(3) would end without a word.
    """
    error = None
    if cause is not None:
        try:
            error = _of_both(base, cause)
        except KeyboardInterrupt:
            raise
        except BaseException:  # raised by the metaclass or by Python; the text says what happened
            error = None
    if error is None:
        error = base(text)
    dict_of(error).update(fields, _text=text, cause=fields.get("cause", cause))
    found: TroupeError = error
    return found


def _of_both(base: type, cause: BaseException) -> Any:
    kind = type(cause)
    kind = getattr(kind, "_dual_of", (None, kind))[1]
    if issubclass(kind, GetTimeoutError):
        # A caller that catches get()'s TimeoutError means that get(), not one raised in the method
        # that it waits for
        kind = TimeoutError
        like: BaseException = kind(str(cause))
    else:
        like = cause
    if not _NEVER.isdisjoint(kind.__mro__) or (kind in base.__mro__ and kind not in _PLAIN):
        return None
    return made(_dual_class(base, kind), like)


def _of_await(kind: type) -> bool:
    """Return True if an `await`, or the generator around it, would treat the exception as its
    own."""
    return issubclass(kind, StopIteration | GeneratorExit) or any(
        (each.__module__, each.__name__) == ("asyncio.exceptions", "CancelledError")
        for each in kind.__mro__
    )


def for_future(error: BaseException) -> BaseException:
    """`error` as a future may hold it.

    A StopIteration would end the `await` with a value, and asyncio refuses it; a CancelledError
    would say that who awaits was cancelled; a KeyboardInterrupt and its like would end the event
    loop. As Python itself does where a coroutine raises one, these become a RuntimeError, whose
    cause they are.
    """
    kind = type(error)
    if issubclass(kind, Exception) and not _of_await(kind):
        return error
    from troupe._base.tracebacks import words_of

    base, _ = getattr(kind, "_dual_of", (TaskError, None))
    text = _text_of(error) or f"{kind.__name__}: {words_of(error)}"
    given = dict_of(error)
    origin = given.get("cause")
    stands = RuntimeError(text)
    stands.__cause__ = origin if isinstance(origin, BaseException) else error
    fields = {name: value for name, value in given.items() if name not in ("_text", "cause")}
    held = with_type_of(base, stands, text, **fields)
    held.__cause__ = error
    return held


def as_raised(error: BaseException | None) -> BaseException | None:
    """Return the exception that get() raises for a future that holds `error`."""
    origin = error.__cause__ if isinstance(error, TroupeError) else None
    return origin if isinstance(origin, TroupeError) and _of_await(type(origin)) else error


# Exception classes by the code of an ErrorReply (runtime/base/status.h, ErrorCode).
BY_CODE: dict[int, type[TroupeError]] = {
    1: SystemError_,
    2: ConnectionError,
    3: JoinError,
    4: NotFoundError,
    5: InvalidError,
    6: PlacementError,
    7: GetTimeoutError,
    8: CancelledError,
    9: FencedError,
    10: TooLargeError,
    11: ActorDiedError,
    12: ActorUnavailableError,
    13: MaybeExecutedError,
    14: NotSentError,
    15: LaunchError,
    16: JoinError,
    17: VersionError,
    18: UnknownOutcomeError,
    19: AlreadyExistsError,
    100: PendingCallsLimitExceeded,
    101: ObjectLostError,
    102: OwnerDiedError,
    103: ResultLostError,
}


def from_code(code: int, text: str) -> TroupeError:
    """The exception for an error that came over the wire or out of the native module."""
    return BY_CODE.get(code, TroupeError)(text)


# Ray's names.
RayError = TroupeError
RayTaskError = TaskError
RayActorError = ActorError
RaySystemError = SystemError_
TaskCancelledError = CancelledError
ReferenceCountingAssertionError = ObjectLostError
ObjectFreedError = ObjectLostError
AuthenticationError = JoinError
LocalRayletDiedError = NodeDiedError
RpcError = ConnectionError
AsyncioActorExit = ActorExit
# Ray's compiled-graph errors. Troupe runs such graphs as ordinary calls, so these are aliases.
RayChannelError = SystemError_
RayChannelTimeoutError = GetTimeoutError
RayCgraphCapacityExceeded = PendingCallsLimitExceeded
RayDirectTransportError = SystemError_
StreamingGeneratorReplayInconsistentError = ObjectReconstructionFailedError


@_pickled.maker("error")
def _error(base: type, cause: BaseException | None, text: str, fields: Mapping[str, Any]) -> Any:
    """An error of the runtime that is also of the type of its cause."""
    return with_type_of(base, cause, text, **fields)
