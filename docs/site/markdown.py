"""Turns docstrings, help texts and comments into Markdown that Sphinx reads without a warning."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

SECTIONS = {
    "Args": "param",
    "Arguments": "param",
    "Parameters": "param",
    "Attributes": "ivar",
    "Raises": "raises",
    "Returns": "returns",
    "Return": "returns",
    "Yields": "returns",
}
_SECTION = re.compile(rf"^({'|'.join(SECTIONS)}):\s*(.*)$")
_ENTRY = re.compile(r"^\s*(\*{0,2}[\w.]+)(?:\s*\([^)]*\))?:\s*(.*)$")
_PAGE = re.compile(r"`?\bdocs/([\w/]+)\.md`?")
_DOCS = Path(__file__).resolve().parents[1]


def _page_link(found: re.Match[str]) -> str:
    """Return a link to a page that a text names; generated pages lie two folders deep."""
    there = (_DOCS / f"{found[1]}.md").is_file()
    return f"[{found[1].split('/')[-1]}](../../{found[1]}.md)" if there else found[0]


def escape(text: str) -> str:
    """Return one line of prose without what Markdown would take for HTML, a role or a heading."""
    text = _PAGE.sub(_page_link, text)
    parts = re.split(r"(`+[^`]*`+|\[[^\]]*\]\(\.\./[^)]*\))", text)
    for at in range(0, len(parts), 2):
        parts[at] = parts[at].replace("<", "&lt;")
        parts[at] = re.sub(r"(\{\w+\})$", r"\1 ", parts[at])
        parts[at] = re.sub(r"\*", r"\\*", parts[at])
        parts[at] = re.sub(r"\]\(", r"]\\(", parts[at])
    line = "".join(parts)
    return re.sub(r"^(\s*)([#%+=>])", r"\1\\\2", line)


def cell(text: str) -> str:
    """Return text for a cell of a table."""
    return escape(" ".join(text.split())).replace("|", "\\|")


def prose(text: str) -> str:
    """Return paragraphs as Markdown: indented lines stay as they are, in a block."""
    lines, block = [], False
    source = text.splitlines()
    for number, line in enumerate(source):
        blank = not line.strip()
        indented = line.startswith(("  ", ">>>", "|")) and not re.match(r"\s+[*-] ", line)
        if indented and not block:
            lines += ["", "```text"]
            block = True
        elif block and not indented and not (blank and _goes_on(source, number)):
            lines += ["```", ""]
            block = False
        lines.append(line if block else escape(line))
    if block:
        lines.append("```")
    return _dedented("\n".join(lines).strip("\n"))


def _dedented(text: str) -> str:
    """Return the text with its blocks moved to the left margin."""
    return re.sub(
        r"^```text\n(.*?)\n```$",
        lambda found: f"```text\n{textwrap.dedent(found[1])}\n```",
        text,
        flags=re.M | re.S,
    )


def _goes_on(lines: list[str], at: int) -> bool:
    """Return True if the next line that is not blank is indented."""
    following = next((line for line in lines[at:] if line.strip()), "")
    return following.startswith(("  ", ">>>", "|"))


def docstring(text: str | None) -> str:
    """Return a docstring in Google's style as Markdown with a list of fields."""
    lines = inspect.cleandoc(text or "").splitlines()
    body, fields, section = [], [], ""
    for line in lines:
        head = _SECTION.match(line)
        if head:
            section = SECTIONS[head[1]]
            if head[2]:
                fields.append([section, "", head[2]])
        elif section and line and not line.startswith(" "):
            section = ""
            body.append(line)
        elif section:
            _take(fields, section, line)
        else:
            body.append(line)
    return "\n\n".join(filter(None, [prose("\n".join(body)), "\n".join(_rows(fields))]))


def _take(fields: list[list[str]], section: str, line: str) -> None:
    """Add a line of a section: a new entry, or more of the last."""
    entry = _ENTRY.match(line) if section != "returns" else None
    indent = len(line) - len(line.lstrip())
    if entry and indent <= 4:
        fields.append([section, entry[1], entry[2]])
    elif not fields or fields[-1][0] != section:
        fields.append([section, "", line.strip()])
    else:
        fields[-1][2] += " " + line.strip()


def _rows(fields: list[list[str]]) -> Iterator[str]:
    for section, name, text in fields:
        name = name.lstrip("*")
        yield f":{section}{' ' + name if name else ''}: {escape(' '.join(text.split()))}"
