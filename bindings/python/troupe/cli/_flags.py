"""Flags of commands, of the tables of options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

import click

from troupe._typed import option


def of_table(
    table: Mapping[str, option.Option],
    kind: type,
    names: Iterable[str],
    *,
    first: str = "",
    checked: bool = True,
) -> list[Callable[..., Any]]:
    """Return the flags of these options of a table: None where they are not given.

    Args:
        table: the options by name.
        kind: the TypedDict that has them.
        names: which of them.
        first: begins the help of each.
        checked: a value that the option's check refuses is a usage error. Else the caller checks
            what it makes of the text.
    """
    types = option.types_of(kind)
    return [_flag(name, types[name], table[name], first, checked) for name in names]


def _flag(
    name: str, kind: Any, about: option.Option, first: str, checked: bool
) -> Callable[..., Any]:
    flag, choices = "--" + name.replace("_", "-"), option.choices_of(kind)
    help_text = about.doc.partition(". ")[0].rstrip(".").replace("`", "")
    if first:
        help_text = first + help_text[0].lower() + help_text[1:]
    if not choices and _first_type(kind) == "bool":
        return click.option(flag, is_flag=True, help=f"{help_text}.")
    numbers = {"int": click.INT, "float": click.FLOAT}
    return click.option(
        flag,
        type=click.Choice(choices) if choices else numbers.get(_first_type(kind), click.STRING),
        metavar=None if choices else about.flag,
        multiple=about.repeats,
        callback=_checked_as(name, about) if checked else None,
        help=f"{help_text}.  [default: {about.unsaid or about.default}]",
    )


def _checked_as(name: str, about: option.Option) -> Callable[..., Any]:
    """Return a callback that gives a flag's value as it is, once the option's check has passed."""

    def callback(_: click.Context, __: click.Parameter, value: Any) -> Any:
        try:
            if value is not None:
                about.check(name, value)
        except (TypeError, ValueError) as error:
            raise click.BadParameter(str(error)) from None
        return value

    return callback


def _first_type(kind: Any) -> str:
    """Return the name of the type, of a union its first one's that is no None."""
    kinds = [each for each in (get_args(kind) or (kind,)) if each is not type(None)]
    return "str" if str in kinds else str(kinds[0].__name__)
