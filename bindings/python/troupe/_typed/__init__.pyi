"""Types of refs and of what is called remotely, as checkers and editors read them.

`RemoteCall[P, R]`: `remote(...)` takes the parameters P of the function, and gives R. Any of its
first six arguments may be a ref of the value instead, where it is given by position.
"""

import asyncio
import concurrent.futures
from collections.abc import Callable, Coroutine, Generator, Iterator
from typing import Any, Concatenate, Generic, Never, Protocol, TypeAlias, final, overload

from typing_extensions import ParamSpec, TypeVar

from troupe._actors.handle import ActorHandle, ActorMethod

P = ParamSpec("P", default=...)
R = TypeVar("R", default=Any)
T = TypeVar("T", default=Any)
ActorT = TypeVar("ActorT", default=Any)
ElementT = TypeVar("ElementT", default=Any)
ConstructorT = TypeVar("ConstructorT", default=Callable[..., Any])
_Q = ParamSpec("_Q")
_R = TypeVar("_R")
_T = TypeVar("_T")
_F_co = TypeVar("_F_co", bound=Callable[..., Any], covariant=True)
_T_co = TypeVar("_T_co", default=Any, covariant=True)
_A0 = TypeVar("_A0")
_A1 = TypeVar("_A1")
_A2 = TypeVar("_A2")
_A3 = TypeVar("_A3")
_A4 = TypeVar("_A4")
_A5 = TypeVar("_A5")

@final
class ObjectRef(Generic[_T_co]):
    """The answer of a call, here or still to come."""

    def __init__(self, _never: Never) -> None: ...
    def __await__(self) -> Generator[Any, None, _T_co]: ...
    def __hash__(self) -> int: ...
    def hex(self) -> str:
        """Return 32 hex digits that no other ref of any process has."""
    def binary(self) -> bytes:
        """Return `hex()` as bytes."""
    def is_nil(self) -> bool:
        """Return False: a ref always names something."""
    def done(self) -> bool:
        """Return True if the answer is here. Does not wait."""
    def future(self) -> concurrent.futures.Future[_T_co]:
        """Return a future that a background thread completes. It cannot be cancelled."""
    def as_future(self) -> asyncio.Future[_T_co]:
        """Return an asyncio.Future of the running loop. Cancelling it leaves the call as it is."""
    def _on_completed(self, callback: Callable[[Any], object], /) -> None: ...
    def _ended(self) -> concurrent.futures.Future[None]: ...
    def _settled(self) -> Coroutine[Any, Any, None]: ...
    def _cancel(self, recursive: bool, /) -> None: ...
    def _is_end(self) -> bool: ...
    def _is_error(self) -> bool: ...

class RefStream:
    """Refs of what a streaming call gives, each when it is there."""

    def answer(self) -> ObjectRef[None]: ...
    def front(self) -> ObjectRef[Any]: ...

class RefsOf(Generic[T]):
    """Refs of T, one after the other."""

    def __iter__(self) -> Iterator[ObjectRef[T]]: ...
    def __next__(self) -> ObjectRef[T]: ...
    def take(self) -> ObjectRef[T] | None: ...

Ref: TypeAlias = _A0 | ObjectRef[_A0]

class _Wraps(Protocol[_F_co]):
    def _call(self) -> _F_co: ...

class RemoteCall(Generic[P, R]):
    """A function, class or method that is called remotely."""

    def _call(self) -> Callable[P, R]: ...
    @overload
    def remote(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call it remotely, and return at once."""
    @overload
    def remote(
        self: _Wraps[Callable[Concatenate[_A0, _Q], _R]],
        a0: Ref[_A0],
        /,
        *args: _Q.args,
        **kwargs: _Q.kwargs,
    ) -> _R: ...
    @overload
    def remote(
        self: _Wraps[Callable[Concatenate[_A0, _A1, _Q], _R]],
        a0: Ref[_A0],
        a1: Ref[_A1],
        /,
        *args: _Q.args,
        **kwargs: _Q.kwargs,
    ) -> _R: ...
    @overload
    def remote(
        self: _Wraps[Callable[Concatenate[_A0, _A1, _A2, _Q], _R]],
        a0: Ref[_A0],
        a1: Ref[_A1],
        a2: Ref[_A2],
        /,
        *args: _Q.args,
        **kwargs: _Q.kwargs,
    ) -> _R: ...
    @overload
    def remote(
        self: _Wraps[Callable[Concatenate[_A0, _A1, _A2, _A3, _Q], _R]],
        a0: Ref[_A0],
        a1: Ref[_A1],
        a2: Ref[_A2],
        a3: Ref[_A3],
        /,
        *args: _Q.args,
        **kwargs: _Q.kwargs,
    ) -> _R: ...
    @overload
    def remote(
        self: _Wraps[Callable[Concatenate[_A0, _A1, _A2, _A3, _A4, _Q], _R]],
        a0: Ref[_A0],
        a1: Ref[_A1],
        a2: Ref[_A2],
        a3: Ref[_A3],
        a4: Ref[_A4],
        /,
        *args: _Q.args,
        **kwargs: _Q.kwargs,
    ) -> _R: ...
    @overload
    def remote(
        self: _Wraps[Callable[Concatenate[_A0, _A1, _A2, _A3, _A4, _A5, _Q], _R]],
        a0: Ref[_A0],
        a1: Ref[_A1],
        a2: Ref[_A2],
        a3: Ref[_A3],
        a4: Ref[_A4],
        a5: Ref[_A5],
        /,
        *args: _Q.args,
        **kwargs: _Q.kwargs,
    ) -> _R: ...

class ActorClassOf(Generic[ActorT, ConstructorT]):
    """An actor class of ActorT.

    ConstructorT: what its arguments are, a function or the class itself.
    """

    def _call(self) -> ConstructorT: ...
    @overload
    def remote(
        self: _Wraps[Callable[_Q, _R]], *args: _Q.args, **kwargs: _Q.kwargs
    ) -> ActorHandle[_R]:
        """Create an actor, and return its handle at once."""
    @overload
    def remote(
        self: _Wraps[Callable[Concatenate[_A0, _Q], _R]],
        a0: Ref[_A0],
        /,
        *args: _Q.args,
        **kwargs: _Q.kwargs,
    ) -> ActorHandle[_R]: ...
    @overload
    def remote(
        self: _Wraps[Callable[Concatenate[_A0, _A1, _Q], _R]],
        a0: Ref[_A0],
        a1: Ref[_A1],
        /,
        *args: _Q.args,
        **kwargs: _Q.kwargs,
    ) -> ActorHandle[_R]: ...
    @overload
    def remote(
        self: _Wraps[Callable[Concatenate[_A0, _A1, _A2, _Q], _R]],
        a0: Ref[_A0],
        a1: Ref[_A1],
        a2: Ref[_A2],
        /,
        *args: _Q.args,
        **kwargs: _Q.kwargs,
    ) -> ActorHandle[_R]: ...
    @overload
    def remote(
        self: _Wraps[Callable[Concatenate[_A0, _A1, _A2, _A3, _Q], _R]],
        a0: Ref[_A0],
        a1: Ref[_A1],
        a2: Ref[_A2],
        a3: Ref[_A3],
        /,
        *args: _Q.args,
        **kwargs: _Q.kwargs,
    ) -> ActorHandle[_R]: ...
    @overload
    def remote(
        self: _Wraps[Callable[Concatenate[_A0, _A1, _A2, _A3, _A4, _Q], _R]],
        a0: Ref[_A0],
        a1: Ref[_A1],
        a2: Ref[_A2],
        a3: Ref[_A3],
        a4: Ref[_A4],
        /,
        *args: _Q.args,
        **kwargs: _Q.kwargs,
    ) -> ActorHandle[_R]: ...
    @overload
    def remote(
        self: _Wraps[Callable[Concatenate[_A0, _A1, _A2, _A3, _A4, _A5, _Q], _R]],
        a0: Ref[_A0],
        a1: Ref[_A1],
        a2: Ref[_A2],
        a3: Ref[_A3],
        a4: Ref[_A4],
        a5: Ref[_A5],
        /,
        *args: _Q.args,
        **kwargs: _Q.kwargs,
    ) -> ActorHandle[_R]: ...

class _CallInActor(Generic[ActorT]):
    """`handle.__ray_call__`: runs a function with the actor's object as its first argument."""

    def remote(
        self,
        function: Callable[Concatenate[ActorT, _Q], _T],
        /,
        *args: _Q.args,
        **kwargs: _Q.kwargs,
    ) -> ObjectRef[_T]: ...

class DeclaredHandle(Generic[ActorT]):
    """A handle without the methods that its class does not declare by `@troupe.method`."""

    def __getattr__(self, name: str) -> Never: ...

ActorProxy: TypeAlias = DeclaredHandle[ActorT] | type[ActorT]

class HandleOf(DeclaredHandle[ActorT]):
    @property
    def __ray_call__(self) -> _CallInActor[ActorT]: ...
    @property
    def __ray_ready__(self) -> ActorMethod[[], ObjectRef[Any]]: ...
    @property
    def __ray_terminate__(self) -> ActorMethod[[], ObjectRef[None]]: ...

class DeclaredMethod(Generic[P, R, T]):
    """A method with `@troupe.method`.

    It is called remotely of a handle, and as any method inside the class.
    """

    @overload
    def __get__(self, instance: None, owner: type) -> ActorMethod[P, R]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Callable[P, T]: ...

class LaunchFunctionOf(Generic[P, T, ElementT]):
    """A function of T that ranks of a launch run. `distributed(...)` gives a list of ElementT."""

class LaunchOf(Generic[ElementT]):
    """A launch whose ranks give ElementT."""
