"""A table of options for one kind of thing: a TypedDict whose annotations give all facts of each
option.

    class LaunchOptions(TypedDict, total=False):
        exit_grace: Annotated[float, Option(60.0, "Seconds that ...", _grace, wire="exit_grace_ms")]

Checkers and editors read the names and types; the signature, the `Args:` of the docstring, the
checks, the fields of the message and the flags of the command line are made of the rest. Pure.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ForwardRef, Literal, TypeVar, get_args, get_origin

_Function = TypeVar("_Function", bound=Callable[..., Any])


FOR_RAY = "Accepted for programs that are written for Ray, without a meaning here."


def _as_given(name: str, value: Any) -> Any:
    return value


def _as_held(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Option:
    """The facts about one option besides its name and type.

    Attributes:
        default: its value where it is not given.
        doc: sentences; the first is the help of its flag.
        check: makes of its name and what is given what is held, or raises TypeError or ValueError.
        wire: the field of the message that carries it; "": none does by itself.
        sent: makes of what is held the field's value.
        flag: how the command line's help calls its value, or "" where it has no flag.
        unsaid: what the command line's help says of the default, where it is not the value.
        repeats: its flag may be given several times.
        told: the name by which the process that runs it is told what is held; "": it is not.
    """

    default: Any
    doc: str
    check: Callable[[str, Any], Any] = _as_given
    wire: str = ""
    sent: Callable[[Any], Any] = _as_held
    flag: str = ""
    unsaid: str = ""
    told: str = ""
    repeats: bool = False


def table_of(*kinds: type) -> dict[str, Option]:
    """Return the options of these TypedDicts by name, in the order in which they stand there.

    Raises:
        TypeError: one is annotated without an Option.
    """
    table = {}
    for kind in kinds:
        for name, annotation in kind.__annotations__.items():
            found = [each for each in _arguments(annotation)[1:] if isinstance(each, Option)]
            if len(found) != 1:
                raise TypeError(f"{kind.__name__}.{name} needs one Option in its annotation")
            table[name] = found[0]
    return table


def types_of(*kinds: type) -> dict[str, Any]:
    """Return the types of these TypedDicts' options by name, a text for one that is written so."""
    return {
        name: kind.__forward_arg__ if isinstance(kind, ForwardRef) else kind
        for name, kind in _kinds(kinds)
    }


def _kinds(kinds: Iterable[type]) -> Iterator[tuple[str, Any]]:
    for kind in kinds:
        for name, annotation in kind.__annotations__.items():
            yield name, _arguments(annotation)[0]


def _arguments(annotation: Any) -> tuple[Any, ...]:
    """Return the type and what Annotated says beside it."""
    return (annotation.__origin__, *getattr(annotation, "__metadata__", ()))


def complete(table: Mapping[str, Option], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value for each option of the table, as given or the default."""
    return {name: given.get(name, each.default) for name, each in table.items()}


def held(table: Mapping[str, Option], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the options' checks make of these values. Raises what a check raises."""
    return {name: table[name].check(name, value) for name, value in values.items()}


def message_of(table: Mapping[str, Option], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message's fields of the options that one carries, of what is held by name."""
    return {
        each.wire: each.sent(values.get(name, each.default))
        for name, each in table.items()
        if each.wire
    }


def told(table: Mapping[str, Option], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the process is told that runs something with these options."""
    return {each.told: values.get(name, each.default) for name, each in table.items() if each.told}


def documented(*kinds: type) -> Callable[[_Function], _Function]:
    """Return a decorator that gives a function these TypedDicts' options as its signature and
    `Args:`.

    The function takes them as `**options`; its other parameters stay.
    """

    def decorate(function: _Function) -> _Function:
        table, types = table_of(*kinds), types_of(*kinds)
        own = inspect.signature(function).parameters.values()
        parameters = [each for each in own if each.kind is not inspect.Parameter.VAR_KEYWORD]
        parameters += [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=types[name]
            )
            for name, each in table.items()
        ]
        function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        text = inspect.cleandoc(function.__doc__ or "")
        function.__doc__ = f"{text}\n\n{arguments_text(table)}"
        return function

    return decorate


def arguments_text(table: Mapping[str, Option], columns: int = 100) -> str:
    """Return the `Args:` of a docstring, with each default.

    >>> print(arguments_text({"quiet": Option(False, "No status lines.")}))
    Args:
        quiet: No status lines. Default: False.
    """
    lines = ["Args:"]
    for name, each in table.items():
        line = f"    {name}:"
        # textwrap takes six times as long, and this runs when a module is imported
        for word in f"{each.doc} Default: {each.default!r}.".split():
            if len(line) + len(word) >= columns:
                lines.append(line)
                line = " " * 7
            line += f" {word}"
        lines.append(line)
    return "\n".join(lines)


def choices_of(kind: Any) -> tuple[str, ...]:
    """Return the texts that a Literal type allows, also one of `Literal[...] | None`.

    >>> from typing import Literal
    >>> choices_of(Literal["fail", "shrink"] | None), choices_of(float)
    (('fail', 'shrink'), ())
    """
    parts: Iterable[Any] = (kind, *get_args(kind))
    return tuple(text for part in parts if get_origin(part) is Literal for text in get_args(part))
