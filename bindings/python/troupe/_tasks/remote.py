"""`@troupe.remote`: the decorator of functions and of classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, overload

from troupe._actors.method_table import ReturnsOptions
from troupe._tasks.option_table import RemoteOptions
from troupe._typed import option as _option

if TYPE_CHECKING:
    from typing import Literal, ParamSpec, TypeVar, Unpack

    from troupe._actors.classes import ActorClass
    from troupe._actors.streams import ObjectRefGenerator
    from troupe._tasks.functions import RemoteFunction
    from troupe._typed import ObjectRef
    from troupe._typed.decorators import (
        ClassTarget,
        DynamicDecorator,
        RemoteDecorator,
        SplitDecorator,
    )

    P = ParamSpec("P")
    T = TypeVar("T")


@overload
def remote(target: ClassTarget[P, T], /) -> ActorClass[T, Callable[P, T]]: ...  # type: ignore[overload-overlap]  # a class can be called too
@overload
def remote(target: type[T], /) -> ActorClass[T, type[T]]: ...  # type: ignore[overload-overlap]
@overload
def remote(target: Callable[P, Iterator[T]], /) -> RemoteFunction[P, ObjectRefGenerator[T]]: ...  # type: ignore[overload-overlap]
@overload
def remote(target: Callable[P, T], /) -> RemoteFunction[P, ObjectRef[T]]: ...
@overload
def remote(
    *, num_returns: Literal["dynamic"], **options: Unpack[RemoteOptions]
) -> DynamicDecorator: ...
@overload
def remote(  # type: ignore[overload-overlap]  # 1 is a number
    *, num_returns: Literal[1, "streaming"] | None = None, **options: Unpack[RemoteOptions]
) -> RemoteDecorator: ...
@overload
def remote(*, num_returns: int, **options: Unpack[RemoteOptions]) -> SplitDecorator: ...
@_option.documented(ReturnsOptions, RemoteOptions)
def remote(*args: Any, **options: Any) -> Any:
    """Decorator that makes an actor class of a class, or a task of a function.

    @troupe.remote
    class Counter: ...

    @troupe.remote(num_cpus=1, max_concurrency=4)
    class Server: ...
    """
    if args:
        if options or len(args) != 1 or not callable(args[0]):
            raise TypeError(
                "@remote is used bare on a class or function, or with keyword options only"
            )
        return _remote_of(args[0], {})
    if not options:
        raise TypeError("@remote() takes at least one option; without any, write @remote")
    return lambda target: _remote_of(target, options)


def _remote_of(target: Any, options: Mapping[str, Any]) -> Any:
    from troupe._actors.classes import ActorClass
    from troupe._tasks.functions import RemoteFunction

    if isinstance(target, (ActorClass, RemoteFunction)):
        raise TypeError(
            f"{target} is what @remote makes already; .options(...) of it changes how it runs"
        )
    if isinstance(target, type):
        return ActorClass(target, options)
    return RemoteFunction(target, options)
