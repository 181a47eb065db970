"""Forms in which a command prints its result, as `az` has them: --query and --output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from troupe._code import extras, yaml_files
from troupe.cli import _common, _tables

Command = TypeVar("Command", bound=Callable[..., Any])
FORMATS = ("json", "table", "tsv", "yaml", "none")


def options(default: str) -> Callable[[Command], Command]:
    """Return a decorator that adds --query and --output to a command."""

    def add(command: Command) -> Command:
        command = click.option(
            "--query",
            metavar="JMESPATH",
            callback=_compiled,
            help="Print only this part of it: name, [].status.",
        )(command)
        return click.option(
            "--output",
            "-o",
            "form",
            type=click.Choice(FORMATS),
            default=default,
            show_default=True,
            help="How it is printed.",
        )(command)

    return add


def show(value: Any, form: str, query: Any) -> None:
    """Print a value that JSON has words for.

    `query`: what `options` made of --query; None: all of it.
    """
    value = value if query is None else query.search(value)
    if form == "json":
        _common.echo_json(value)
    elif form == "yaml":
        click.echo(yaml_files.text_of(value), nl=False)
    elif form == "tsv":
        for row in value if isinstance(value, list) else [] if value is None else [value]:
            click.echo(_row(row))
    elif form == "table":
        _table(value)


def _compiled(_: click.Context, __: click.Parameter, text: str | None) -> Any:
    if text is None:
        return None
    with extras.needed("jmespath", "--query", "jmespath"):
        import jmespath
    try:
        return jmespath.compile(text)
    except jmespath.exceptions.JMESPathError as error:
        raise click.BadParameter(
            f"{text!r} is no JMESPath expression: {' '.join(str(error).split())}"
        ) from None


def _row(row: Any) -> str:
    """Return one line of tsv: scalars as they are, of a list its length, of a mapping nothing, as
    az has it."""
    if isinstance(row, Mapping):
        return "\t".join(_cell(each) for each in row.values())
    return "\t".join(_cell(each) for each in row) if isinstance(row, list) else _cell(row)


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return str(len(value))
    return "" if isinstance(value, Mapping) else str(value).replace("\t", " ").replace("\n", " ")


def _table(value: Any) -> None:
    rows = [
        each if isinstance(each, Mapping) else {"result": each}
        for each in (value if isinstance(value, list) else [] if value is None else [value])
    ]
    names = list(
        dict.fromkeys(
            name
            for row in rows
            for name, each in row.items()
            if not isinstance(each, Mapping | list)
        )
    )
    if names:
        _tables.show(
            [name.upper() for name in names],
            [["" if row.get(name) is None else _cell(row[name]) for name in names] for row in rows],
        )
