"""Options of actor methods: `@troupe.method(...)`, `handle.m.options(...)`, and what a call of them
asks for.

Pure: names and values only. `Traits` is what a handle knows of its actor's class; it travels with
the handle and, as JSON, by the head to those who look the actor up.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, overload

from troupe import _pickled
from troupe._actors import parameters as _parameters
from troupe._actors.method_table import (
    DYNAMIC,
    METHODS,
    STREAMING,
    MethodOptions as GivenOptions,
    ReturnsOptions,
)
from troupe._actors.parameters import Parameters
from troupe._base import checks as _checks, words as _words
from troupe._typed import option as _option

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterator
    from typing import Concatenate, Literal, ParamSpec, TypeVar, Unpack

    from troupe._actors.streams import ObjectRefGenerator
    from troupe._typed import DeclaredMethod, ObjectRef
    from troupe._typed.decorators import (
        DynamicMethodDecorator,
        MethodDecorator,
        SplitMethodDecorator,
    )

    P = ParamSpec("P")
    T = TypeVar("T")

_ATTRIBUTE = "__troupe_method__"


class Remote:
    """Base of classes and functions decorated with `@remote`: callable, and not bound as a method
    when stored as an attribute of a class."""


@dataclasses.dataclass(frozen=True)
class MethodOptions:
    """How calls of one method run and answer; None: as the class or the actor says."""

    num_returns: int | str = 1
    concurrency_group: str | None = None
    max_task_retries: int | None = None
    retry_exceptions: bool | tuple[type[BaseException], ...] | None = None
    backpressure: int | None = None
    keeps_tensors: bool | None = None  # tensors in the result stay in the actor
    gathered: bool = False  # a stream whose refs are one value, there once the method is over
    parameters: Parameters | None = None  # parameters of the method, where they are known

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.method_options, (_pickled.fields_of(self),)

    def target(self, method: str) -> str:
        """Return the call target of `method` (actors/core/call/call_target.h)."""
        parts = [method]
        if self.num_returns == STREAMING:
            parts.append("returns=*")
            if self.backpressure is not None and not self.gathered:
                parts.append(f"ahead={self.backpressure}")
        elif self.num_returns != 1:
            parts.append(f"returns={self.num_returns}")
        if self.keeps_tensors:
            parts.append("tensors=1")
        if self.concurrency_group is not None:
            parts.append(f"group={self.concurrency_group}")
        return ";".join(parts)

    def with_given(self, given: Mapping[str, Any]) -> MethodOptions:
        """These with those of `given` in their place.

        Raises ValueError for one that can never be right.
        """
        return dataclasses.replace(self, **check(given))


def check(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of `@method` or `.options` by the names of MethodOptions."""
    _checks.refuse_unknown("a method", given, METHODS, error=ValueError)
    checked = {
        METHODS[name].told: value
        for name, value in _option.held(METHODS, given).items()
        if METHODS[name].told
    }
    if "num_returns" in given:
        checked["gathered"] = given["num_returns"] == DYNAMIC
    return checked


@overload
def method(
    function: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]], /
) -> DeclaredMethod[P, ObjectRef[T], Coroutine[Any, Any, T]]: ...
@overload
def method(  # type: ignore[overload-overlap]
    function: Callable[Concatenate[Any, P], AsyncIterator[T]], /
) -> DeclaredMethod[P, ObjectRefGenerator[T], AsyncIterator[T]]: ...
@overload
def method(  # type: ignore[overload-overlap]
    function: Callable[Concatenate[Any, P], Iterator[T]], /
) -> DeclaredMethod[P, ObjectRefGenerator[T], Iterator[T]]: ...
@overload
def method(function: Callable[Concatenate[Any, P], T], /) -> DeclaredMethod[P, ObjectRef[T], T]: ...
@overload
def method(
    *, num_returns: Literal["dynamic"], **options: Unpack[GivenOptions]
) -> DynamicMethodDecorator: ...
@overload
def method(  # type: ignore[overload-overlap]  # 1 is a number
    *, num_returns: Literal[1, "streaming"] | None = None, **options: Unpack[GivenOptions]
) -> MethodDecorator: ...
@overload
def method(*, num_returns: int, **options: Unpack[GivenOptions]) -> SplitMethodDecorator: ...
@_option.documented(ReturnsOptions, GivenOptions)
def method(*args: Any, **options: Any) -> Any:
    """Decorator of a method of an actor class: how it is called unless a call says otherwise.

        @troupe.method(num_returns=2)
        def halves(self, x): ...

    Raises ValueError for options that are none. Without options, `@troupe.method`, it changes
    nothing but what type checkers know: they see the types of its calls where a handle is annotated
    as `troupe.actor.ActorProxy[Counter]`.
    """
    if args:
        if options or len(args) != 1 or not callable(args[0]):
            raise TypeError(
                "@method is used bare on a method, or with keyword options, e.g. "
                "@method(num_returns=2)"
            )
        return args[0]
    if not options:
        raise TypeError(
            "@method() takes keyword options, at least one, e.g. @method(num_returns=2); without "
            "any, write @method"
        )
    checked = check(options)

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        _words.current.check_yields(function, options.get("num_returns"))
        setattr(function, _ATTRIBUTE, {**getattr(function, _ATTRIBUTE, {}), **checked})
        return function

    return mark


def of_function(function: Any) -> MethodOptions:
    """The options of a method as its class defines it; a generator streams."""
    inner = inspect.unwrap(getattr(function, "__func__", function))
    marked = dict(getattr(function, _ATTRIBUTE, {}))
    if "num_returns" not in marked and (
        inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner)
    ):
        marked["num_returns"] = STREAMING
    return MethodOptions(**marked)


_DEFAULT = MethodOptions()
_known: weakref.WeakKeyDictionary[type, tuple[dict[str, MethodOptions], bool]] = (
    weakref.WeakKeyDictionary()
)
_OPERATORS = {
    "__call__",
    "__contains__",
    "__enter__",
    "__exit__",
    "__getitem__",
    "__len__",
    "__setitem__",
}
"""Methods of Python's own that a class may have called by name: `handle.__call__.remote(x)`."""
SPECIAL = {"__ray_ready__": _DEFAULT, "__ray_call__": _DEFAULT, "__ray_terminate__": _DEFAULT}


def _is_method(found: Any) -> bool:
    """Return True if an attribute of a class can be called on its actors; nested classes are
    reached through the class."""
    return callable(found) and not isinstance(found, type | Remote)


def _is_async(function: Any) -> bool:
    inner = inspect.unwrap(function)
    return inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner)


def _is_ordered(options: Mapping[str, Any], *, is_async: bool) -> bool:
    """Return True if calls run in the order in which their caller made them.

    ValueError where that is asked for and cannot be.
    """
    threads = options.get("max_concurrency") or 1
    overtaking = options.get("allow_out_of_order_execution")
    if overtaking is None:  # as Ray: threads and coroutines have no order anyhow
        return not is_async and threads == 1 and not options.get("concurrency_groups")
    if not overtaking and (is_async or threads > 1):
        what = "methods that are coroutines" if is_async else f"max_concurrency={threads}"
        raise ValueError(
            f"allow_out_of_order_execution=False does not go with {what}: those calls run beside "
            "each other, in no order\n"
            "  leave the option away, or give the actor plain methods on one thread"
        )
    return not overtaking


@dataclasses.dataclass(frozen=True)
class Traits:
    """The facts about an actor's class and options that a handle carries.

    `methods` is None where nothing is known.
    """

    methods: Mapping[str, MethodOptions] | None = None
    max_task_retries: int = 0
    max_pending_calls: int = -1
    ordered: bool = True  # true if its calls run in the order in which their caller made them
    is_async: bool = (
        False  # true if its actors run on an event loop: classes with an `async def` method do
    )

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.traits, (_pickled.fields_of(self),)

    @classmethod
    def of_class(cls, actor_class: type, options: Mapping[str, Any]) -> Traits:
        """Return the traits of actors of a class created with these options."""
        known = _known.get(actor_class)
        if known is None:
            functions = {
                name: found
                for name in dir(actor_class)
                if _is_method(found := getattr(actor_class, name, None))
            }
            methods = {
                name: dataclasses.replace(
                    of_function(each), parameters=_parameters.of_method(actor_class, name)
                )
                for name, each in functions.items()
                if not name.startswith("__") or name in _OPERATORS
            }
            known = _known[actor_class] = methods, any(map(_is_async, functions.values()))
        methods, is_async = known
        ordered = _is_ordered(options, is_async=is_async)
        return cls(
            methods,
            options.get("max_task_retries") or 0,
            options.get("max_pending_calls") or -1,
            ordered,
            is_async,
        )

    def options_of(self, name: str) -> MethodOptions | None:
        """The options of a method; None: there is no such method."""
        if name in SPECIAL:
            return SPECIAL[name]
        if name.startswith("__") and (self.methods is None or name not in _OPERATORS):
            return None
        return _DEFAULT if self.methods is None else self.methods.get(name)

    def to_json(self) -> bytes:
        """For those who look the actor up.

        Classes of exceptions stay behind: any exception is retried then.
        """
        methods = {
            name: {
                field: bool(value) if field == "retry_exceptions" else value
                for field, value in dataclasses.asdict(options).items()
                if value != getattr(_DEFAULT, field)
            }
            for name, options in (self.methods or {}).items()
        }
        return json.dumps(
            {
                "methods": methods,
                "max_task_retries": self.max_task_retries,
                "max_pending_calls": self.max_pending_calls,
                "ordered": self.ordered,
            }
        ).encode()

    @classmethod
    def from_json(cls, text: bytes) -> Traits:
        """The inverse; nothing is known where it cannot be read."""
        try:
            read = json.loads(text)
            return cls(
                {name: MethodOptions(**options) for name, options in read["methods"].items()},
                int(read["max_task_retries"]),
                int(read["max_pending_calls"]),
                bool(read["ordered"]),
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls()


@_pickled.maker("traits")
def _traits(fields: Mapping[str, Any]) -> Any:
    """Rebuild the traits of an actor's class."""
    return _pickled.of_fields(Traits, fields)


@_pickled.maker("method_options")
def _method_options(fields: Mapping[str, Any]) -> Any:
    """Rebuild the options of one method."""
    return _pickled.of_fields(MethodOptions, fields)
