"""Handles of actors and their methods: what `Counter.remote()` and `get_actor()` return."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from troupe import _pickled, exceptions
from troupe._actors.handle_counts import Life
from troupe._actors.link import ActorLink, Caller
from troupe._actors.method_options import MethodOptions, Traits
from troupe._actors.method_table import STREAMING, MethodOptions as GivenOptions, ReturnsOptions
from troupe._actors.parameters import check_of
from troupe._base import waiting as _waiting
from troupe._base.identity import HexID
from troupe._cluster import session as _session
from troupe._typed import ActorT, HandleOf, P, R, RemoteCall, option as _option

if TYPE_CHECKING:
    from typing import Literal, Never, Unpack

    from troupe._actors.streams import DynamicObjectRefGenerator, ObjectRefGenerator
    from troupe._typed import ObjectRef


class ActorMethod(Caller, RemoteCall[P, R]):
    """A method of a handle.

    `remote(...)` calls it and returns a ref of the answer, a list of refs with `num_returns`, or an
    ObjectRefGenerator of a method that yields.

    `remote` is an attribute: of a method that was called before it is the call path itself. Nothing
    here refers to itself, so that a handle that is dropped lets go of its actor at once.
    """

    __slots__ = ("_check", "_life", "_link", "_name", "_options", "_retries", "_target", "remote")

    def __init__(
        self, link: ActorLink, name: str, options: MethodOptions, retries: int, life: Life | None
    ) -> None:
        self._link = link
        self._name = name
        self._options = options
        self._target = options.target(name)
        self._retries = retries  # retries of the actor
        self._life = life
        self._check = check_of(name, options.parameters, link.label)

    def __getattr__(self, name: str) -> Any:
        if name != "remote":
            raise AttributeError(name)
        own = self._options.max_task_retries
        return self._retried if (self._retries if own is None else own) != 0 else self._first

    def unbind(self) -> None:
        """See Caller."""
        with contextlib.suppress(AttributeError):
            del self.remote

    def _first(self, /, *args: Any, **kwargs: Any) -> Any:
        with self._link._lock:  # else it may be told to unbind() before it has what it is to drop
            bound = self._link.bind(
                self, self._target, self._check, self._life, waits=self._retries != 0
            )
            if self._options.gathered:
                from troupe._actors import streams

                bound = streams.gathering(bound)
            if _waiting.around_wait is not None:
                bound = _waiting.lending(bound)
            self.remote = bound  # type: ignore[method-assign]
        return bound(*args, **kwargs)

    def _retried(self, /, *args: Any, **kwargs: Any) -> Any:
        from troupe._actors.retries import RetriedCalls

        if self._check is not None:
            self._check(len(args), tuple(kwargs))
        own = self._options.max_task_retries
        retries = self._retries if own is None else own
        if self._options.num_returns == STREAMING:
            return self._streamed(retries, args, kwargs)
        return RetriedCalls.of(self._link).call(
            self._target, self._options, retries, args, kwargs, self._life
        )

    def _streamed(self, retries: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from troupe._actors import retried_streams, streams

        def start(*args: Any, **kwargs: Any) -> Any:
            return retried_streams.RetriedStream(
                self._link, self._target, self._options, retries, args, kwargs, self._life
            )

        return (streams.gathering(start) if self._options.gathered else start)(*args, **kwargs)

    @overload
    def options(
        self, *, num_returns: Literal["dynamic"], **options: Unpack[GivenOptions]
    ) -> ActorMethod[P, ObjectRef[DynamicObjectRefGenerator[Any]]]: ...
    @overload
    def options(
        self, *, num_returns: Literal["streaming"], **options: Unpack[GivenOptions]
    ) -> ActorMethod[P, ObjectRefGenerator[Any]]: ...
    @overload
    def options(
        self, *, num_returns: int, **options: Unpack[GivenOptions]
    ) -> ActorMethod[P, list[ObjectRef[Any]]]: ...
    @overload
    def options(
        self, *, num_returns: None = None, **options: Unpack[GivenOptions]
    ) -> ActorMethod[P, R]: ...
    @_option.documented(ReturnsOptions, GivenOptions)
    def options(self, **options: Any) -> ActorMethod[P, Any]:
        """Return the same method with options for its calls. Raises ValueError for others."""
        return ActorMethod(
            self._link, self._name, self._options.with_given(options), self._retries, self._life
        )

    def _remote(
        self,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[GivenOptions],
    ) -> R:
        """Ray's other way to write `options(...).remote(*args, **kwargs)`; an option that is None
        is not given."""
        given: Any = {name: value for name, value in options.items() if value not in (None, "")}
        method = self.options(**given) if given else self
        return method.remote(*(args or ()), **(kwargs or {}))

    def bind(self, /, *args: Any, **kwargs: Any) -> Any:
        """A call of it as a node of a graph (troupe.dag), or a tuple of nodes with
        `num_returns`."""
        from troupe.dag import ClassMethodNode

        return ClassMethodNode(
            ActorHandle(self._link, Traits(), self._life), self, args, kwargs
        ).outputs(self._options.num_returns)

    def __repr__(self) -> str:
        return f"<method {self._name} of {self._link.label}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the method with its handle; the copy keeps the actor alive where the handle's copy
        would."""
        traits = Traits(
            {self._name: self._options}, self._retries, self._link.pending_max, self._link.ordered
        )
        return _pickled.actor_method, (ActorHandle(self._link, traits, self._life), self._name)

    def __call__(self, /, *args: object, **kwargs: object) -> Never:
        raise TypeError(
            f"Actor methods cannot be called directly. Instead of running 'object.{self._name}()', "
            "try "
            f"'object.{self._name}.remote()'."
        )


class ActorHandle(HandleOf[ActorT]):
    """A reference to an actor.

    Can be passed to other processes of the cluster; equal to every other handle of the same actor.
    With `life` it keeps the actor alive.
    """

    __class_getitem__: Any = classmethod(types.GenericAlias)  # ActorHandle[A], for annotations

    def __init__(self, link: ActorLink, traits: Traits, life: Life | None = None) -> None:
        self._link = link
        self._traits = traits
        self._life = life

    def __getattr__(self, name: str) -> ActorMethod[..., ObjectRef[Any]]:  # type: ignore[override]  # of a DeclaredHandle, none
        if name in ("_life", "_link", "_traits"):  # read while a handle is being made
            raise AttributeError(name)
        options = self._traits.options_of(name)
        if options is None:
            raise AttributeError(f"{self._link.label} has no method {name!r}")
        method = ActorMethod(self._link, name, options, self._traits.max_task_retries, self._life)
        self.__dict__[name] = method
        return method

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(self._traits.methods or {})]

    def __repr__(self) -> str:
        return f"<{self._link.label}>"

    def __hash__(self) -> int:
        return hash(self._link.actor)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ActorHandle) and other._link.actor == self._link.actor

    def __reduce__(self) -> tuple[Any, ...]:
        if self._link.late is not None:
            self._link.late.wait()  # others ask the head for it
        weak = self._link.actor, self._link.class_name, self._traits
        if self._life is None:
            return _pickled.handle, weak
        names = self._life.lend()
        if names is None:
            self._link.uncount()
            return _pickled.handle, weak
        return _pickled.counted_handle, (*weak, *names)

    def __copy__(self) -> ActorHandle:
        return ActorHandle(self._link, self._traits, self._life)

    def __deepcopy__(self, memo: dict[int, Any]) -> ActorHandle:
        return self.__copy__()

    @property
    def _actor_id(self) -> HexID:
        return HexID(self._link.actor)

    _ray_actor_id = _actor_id


def watched(session: _session.Session, actor: str, class_name: str, traits: Traits) -> ActorLink:
    """The link to an actor somebody else created: asks the head to be told of it, once."""
    link, is_new = ActorLink.of_or_new(
        session, actor, class_name, traits.max_pending_calls, traits.ordered
    )
    if is_new:
        try:
            _, update, data = session.request("WatchActor", {"actor": actor})
        except exceptions.NotFoundError as error:
            link.end(exceptions.ActorDiedError(f"{link.label}: {error}"))
        else:
            session.board.post_reply("actor", actor, update["info"], data)
    return link


@_pickled.maker("handle")
def _handle(actor: str, class_name: str, traits: Any) -> Any:
    """Rebuild an actor handle in the process that unpickles it."""
    return ActorHandle(watched(_session.current(), actor, class_name, traits), traits)


@_pickled.maker("counted_handle")
def _counted_handle(actor: str, class_name: str, traits: Any, *life: Any) -> Any:
    """Rebuild a handle that keeps its actor alive; if its life was not pickled with it, the actor
    is no longer counted."""
    made = _handle(actor, class_name, traits)
    made._life = Life.borrowed(made._link, life)
    if made._life is None:
        made._link.uncount()
    return made


@_pickled.maker("actor_method")
def _actor_method(handle: Any, name: str) -> Any:
    """A method of a handle, with its options."""
    return getattr(handle, name)
