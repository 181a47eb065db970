"""Objects as programs have them: put, get, wait, cancel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from troupe._base import waiting as _waiting

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeVar

    from troupe._actors.handle import ActorHandle
    from troupe._actors.streams import ObjectRefGenerator
    from troupe._typed import ObjectRef

    T = TypeVar("T")
    Waited = TypeVar("Waited", bound="ObjectRef[Any] | ObjectRefGenerator[Any]")


@overload
def get(refs: ObjectRef[T], *, timeout: float | None = None) -> T: ...


@overload
def get(refs: Sequence[ObjectRef[T]], *, timeout: float | None = None) -> list[T]: ...


def get(refs: Any, *, timeout: float | None = None) -> Any:
    """The value of a ref, or the list of values of a list of refs, in order.

    Blocks.

    Raises the first error among them (an exception of a method as its own type) as soon as one is
    known, whatever stands before it, GetTimeoutError after `timeout` seconds, ValueError for what
    is neither a ref nor a list, TypeError for a list with something else in it.
    """
    from troupe._base import calls as _calls

    refs = list(refs) if isinstance(refs, tuple) else refs
    if _waiting.around_wait is None or (type(refs) is _calls.Ref and refs.done()):
        return _calls.get(refs, timeout)
    with _waiting.around_wait(refs, timeout) as left:
        return _calls.get(refs, left)


def put(
    value: T, *, _owner: ActorHandle[Any] | None = None, _tensor_transport: str | None = None
) -> ObjectRef[T]:
    """A ref of a copy of a value, kept in this process while the ref lives.

    Passed as an argument it arrives as the value. With `_owner`, the handle of an actor, the value
    is kept in that actor and outlives this process; this waits until the actor has it, in its turn
    behind the calls before. With `_tensor_transport="auto"`, in an actor, the tensors in the value
    are not copied but stay in it (docs/guides/tensors.md). Raises TypeError for a ref and for an
    owner that is no actor, what a call of the owner raises, and ValueError for a
    `_tensor_transport` that is none, or elsewhere than in an actor.
    """
    from troupe._base import calls as _calls
    from troupe._base.bridge import native

    kept: Any = value
    if _tensor_transport is not None:
        kept = _with_its_tensors_here(value, _tensor_transport, _owner)
    if type(kept) is _calls.Ref:
        raise TypeError("put() takes a value, not a ref")
    if _owner is not None and not _is_self(_owner):
        kept = get(_owner.__ray_call__.remote(_put_here, [kept]))[0]
    else:
        kept = native.completed_ref(kept)
    ref: ObjectRef[T] = kept
    return ref


def _with_its_tensors_here(value: Any, transport: str, owner: Any) -> Any:
    """Return `value` in the form that put() takes where its tensors stay in this process."""
    from troupe._actors import method_table
    from troupe._base import calls as _calls
    from troupe._base.context import ActorContext
    from troupe._base.identity import TASKS_CLASS

    if not method_table.keeps_tensors("tensor_transport", transport) or type(value) is _calls.Ref:
        return value
    here = ActorContext.current
    if (
        here is None
        or here.class_name == TASKS_CLASS
        or (owner is not None and not _is_self(owner))
    ):
        raise ValueError(
            f"put(_tensor_transport={transport!r}) keeps tensors in the actor that calls it, and "
            "this is not in an actor, or names "
            "another owner\n  leave _tensor_transport away: put() writes the value to shared "
            "memory, which processes of this host "
            "read where it lies"
        )
    from troupe._actors.tensors import kept
    from troupe._actors.tensors.value import CarriedValue

    return CarriedValue(value, kept.PUT)


def _is_self(owner: Any) -> bool:
    """Return True if `owner` is a handle of this process's own actor. Raises TypeError if it is no
    handle."""
    from troupe._actors.handle import ActorHandle
    from troupe._tasks.host import actor_here

    if not isinstance(owner, ActorHandle):
        raise TypeError(f"put(_owner=) takes the handle of an actor, not {owner!r}")
    here = actor_here()
    return here is not None and here.actor == owner._actor_id.hex()


def _put_here(_instance: Any, held: list[Any]) -> list[Any]:
    return [put(held[0])]


def wait(
    refs: list[Waited],
    *,
    num_returns: int = 1,
    timeout: float | None = None,
    fetch_local: bool = True,
) -> tuple[list[Waited], list[Waited]]:
    """(ready, not ready), both in the order given, once `num_returns` are ready or `timeout` s
    passed.

    A generator of refs is ready when its next ref, or the end, is there. Raises TypeError unless
    given a list of refs, ValueError for duplicates or a wrong `num_returns`.
    """
    if isinstance(refs, list) and not refs:
        return [], []
    if _waiting.around_wait is None:
        return _wait(refs, num_returns, timeout)
    with _waiting.around_wait(refs, timeout, num_returns) as left:
        return _wait(refs, num_returns, left)


def _wait(refs: list[Any], num_returns: int, timeout: float | None) -> tuple[list[Any], list[Any]]:
    from troupe._base import calls as _calls

    try:
        done: tuple[list[Any], list[Any]] = _calls.wait(refs, num_returns, timeout)
        return done
    except TypeError:
        if not isinstance(refs, list) or not any(
            isinstance(each, _calls.RefStream) for each in refs
        ):
            raise
    return _wait_with_streams(refs, num_returns, timeout)


def _wait_with_streams(
    refs: list[Any], num_returns: int, timeout: float | None
) -> tuple[list[Any], list[Any]]:
    """wait() where generators are among the refs: each is ready when its next ref, or the end, is
    there."""
    from troupe._base import calls as _calls

    if len(set(map(id, refs))) != len(refs):
        raise ValueError("wait() was given the same generator twice")
    asked = [each.front() if isinstance(each, _calls.RefStream) else each for each in refs]
    given = dict(zip(map(id, asked), refs, strict=True))
    ready, rest = _calls.wait(asked, num_returns, timeout)
    return [given[id(each)] for each in ready], [given[id(each)] for each in rest]


def cancel(
    ref: ObjectRef[Any] | ObjectRefGenerator[Any], *, force: bool = False, recursive: bool = True
) -> None:
    """Asks that the call of a ref, or of a generator, be not run, or ended; returns at once.

    A call that waits for its actor is not run; a coroutine gets asyncio's cancellation; a plain
    method goes on, and may ask `get_runtime_context().is_canceled()`. `get` of a cancelled call
    raises TaskCancelledError. What is over, or does not listen, answers as ever. A task that runs
    gets KeyboardInterrupt, with `force=True` its process is ended. With a task or a call, unless
    `recursive=False`, go the tasks that it started and the calls of actors that it made, theirs
    too; a plain method of an actor that runs one at a time hears of it where it waits for refs, or
    asks `is_canceled()`. Raises TypeError for what is no ref, ValueError for `force=True` with the
    call of an actor's method.
    """
    from troupe._actors import retries, streams
    from troupe._base import calls as _calls
    from troupe._tasks import pool

    ref = streams.source_of(ref)
    if isinstance(ref, _calls.RefStream):
        ref = ref.answer()
    if type(ref) is not _calls.Ref:
        raise TypeError(
            f"cancel() takes an ObjectRef or an ObjectRefGenerator, not {type(ref).__name__}"
        )
    if pool.cancel(ref, force=force, recursive=recursive):
        return
    if not force and retries.cancel(ref, recursive=recursive):
        return
    if force:
        raise ValueError(
            "force=True is not supported for actor tasks: it would end the actor; troupe.kill() "
            "does"
        )
    ref._cancel(recursive)
