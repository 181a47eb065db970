"""Types of decorators with options, as checkers and editors read them."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from typing import Any, Concatenate, Protocol, overload

from typing_extensions import ParamSpec, TypeVar

from troupe._actors.classes import ActorClass
from troupe._actors.streams import DynamicObjectRefGenerator, ObjectRefGenerator
from troupe._tasks.functions import RemoteFunction
from troupe._typed import DeclaredMethod, ObjectRef
from troupe.launch._function import DistributedFunction

_Q = ParamSpec("_Q")
_T = TypeVar("_T")
_C_co = TypeVar("_C_co", covariant=True)

class MethodDecorator(Protocol):
    """`@troupe.method` with options that leave the number of refs as it is."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[Any, _Q], Coroutine[Any, Any, _T]], /
    ) -> DeclaredMethod[_Q, ObjectRef[_T], Coroutine[Any, Any, _T]]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[Concatenate[Any, _Q], AsyncIterator[_T]], /
    ) -> DeclaredMethod[_Q, ObjectRefGenerator[_T], AsyncIterator[_T]]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[Concatenate[Any, _Q], Iterator[_T]], /
    ) -> DeclaredMethod[_Q, ObjectRefGenerator[_T], Iterator[_T]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Any, _Q], _T], /
    ) -> DeclaredMethod[_Q, ObjectRef[_T], _T]: ...

class SplitMethodDecorator(Protocol):
    """`@troupe.method(num_returns=2)`: the method's value is so many refs."""

    def __call__(
        self, function: Callable[Concatenate[Any, _Q], _T], /
    ) -> DeclaredMethod[_Q, list[ObjectRef[Any]], _T]: ...

class DynamicMethodDecorator(Protocol):
    """`@troupe.method(num_returns="dynamic")`: one ref of the refs of what the method yields."""

    def __call__(
        self, function: Callable[Concatenate[Any, _Q], Iterable[_T]], /
    ) -> DeclaredMethod[_Q, ObjectRef[DynamicObjectRefGenerator[_T]], Iterable[_T]]: ...

class ClassTarget(Protocol[_Q, _C_co]):
    """A class, by its constructor.

    Pyright does not take classes for one: for such checkers `type[T]` is beside.
    """

    @property
    def __mro__(self) -> tuple[type, ...]: ...
    def __call__(self, *args: _Q.args, **kwargs: _Q.kwargs) -> _C_co: ...

class RemoteDecorator(Protocol):
    """`@troupe.remote` with options that leave the number of refs as it is."""

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, target: ClassTarget[_Q, _T], /
    ) -> ActorClass[_T, Callable[_Q, _T]]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, target: type[_T], /
    ) -> ActorClass[_T, type[_T]]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, target: Callable[_Q, Iterator[_T]], /
    ) -> RemoteFunction[_Q, ObjectRefGenerator[_T]]: ...
    @overload
    def __call__(self, target: Callable[_Q, _T], /) -> RemoteFunction[_Q, ObjectRef[_T]]: ...

class SplitDecorator(Protocol):
    """`@troupe.remote(num_returns=2)`: the function's value is so many refs."""

    def __call__(
        self, target: Callable[_Q, Any], /
    ) -> RemoteFunction[_Q, list[ObjectRef[Any]]]: ...

class DynamicDecorator(Protocol):
    """`@troupe.remote(num_returns="dynamic")`: one ref of the refs of what the function yields."""

    def __call__(
        self, target: Callable[_Q, Iterable[_T]], /
    ) -> RemoteFunction[_Q, ObjectRef[DynamicObjectRefGenerator[_T]]]: ...

class LaunchDecorator(Protocol):
    """`@distributed` with options."""

    def __call__(self, fn: Callable[_Q, _T], /) -> DistributedFunction[_Q, _T, _T]: ...

class DriverDecorator(Protocol):
    """`@ray_launch` with options: rank 0 gives the function's value, the others None."""

    def __call__(self, fn: Callable[_Q, _T], /) -> DistributedFunction[_Q, _T, _T | None]: ...
