"""Writes the reference pages of the command `troupe`, from its click commands."""

from __future__ import annotations

import re
from pathlib import Path

import click
import markdown

from troupe.cli import commands


def write(folder: Path) -> None:
    """Write a page for each command into a folder, and `index.md`."""
    folder.mkdir(parents=True, exist_ok=True)
    context = click.Context(commands, info_name="troupe")
    rows, names = [], []
    for name in commands.list_commands(context):
        command = commands.get_command(context, name)
        if command is None or command.hidden:
            continue
        names.append(name)
        rows.append(f"| [`troupe {name}`]({name}.md) | {markdown.cell(_short(command))} |")
        (folder / f"{name}.md").write_text(page(command, name, context, 1) + "\n")
    listed = "\n".join(f"troupe {name} <{name}>" for name in names)
    (folder / "index.md").write_text(
        "# Command line\n\nEach page is made of the command's `--help`.\n\n"
        "| command | what it does |\n|---|---|\n"
        + "\n".join(rows)
        + f"\n\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
    )


def _short(command: click.Command) -> str:
    """Return the first sentence of a command's help."""
    text = re.sub(r"[\b\f]", "", command.help or "").strip().split("\n\n")[0]
    return re.split(r"(?<=[.:]) ", " ".join(text.split()))[0]


def page(command: click.Command, name: str, parent: click.Context, depth: int) -> str:
    """Return a command's section, and those of the commands below it."""
    context = click.Context(command, info_name=name, parent=parent)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    parts = [f"{'#' * depth} {context.command_path}", f"```text\n{usage}\n```", _help(command)]
    parts.append(_options(command, context))
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            below = command.get_command(context, each)
            if below is not None and not below.hidden:
                parts.append(page(below, each, context, depth + 1))
    return "\n\n".join(filter(None, parts))


def _help(command: click.Command) -> str:
    """Return the help text; paragraphs that click does not wrap stay as they are."""
    found = []
    for paragraph in (command.help or "").split("\n\n"):
        if "\b" in paragraph:
            text = paragraph.replace("\b", "").strip("\n")
            found.append(f"```text\n{text}\n```")
        else:
            found.append(markdown.prose("\n".join(map(str.strip, paragraph.splitlines()))))
    return "\n\n".join(found)


def _options(command: click.Command, context: click.Context) -> str:
    """Return the table of a command's options."""
    rows = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            names = record[0].replace("|", "\\|").replace("`", "'")
            rows.append(f"| `{names}` | {markdown.cell(record[1])} |")
    return "\n".join(["| option | meaning |", "|---|---|", *rows]) if rows else ""
