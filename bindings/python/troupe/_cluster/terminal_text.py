"""Text as a terminal shows it: how wide it is, and where its colours end. Pure."""

from __future__ import annotations

import re

SGR = re.compile("(\x1b\\[[0-9;:]*m)")
_ENDS = re.compile("\x1b\\[0*m")
_STYLE_CHARS_MAX = 256
_RESET = "\x1b[0m"


def cut(row: str, columns: int) -> str:
    """As much of it as fits on a line of a terminal."""
    from rich.cells import get_character_cell_size

    parts, left = [], columns
    for number, part in enumerate(SGR.split(row)):
        if number % 2:
            parts.append(part)
            continue
        for each in part.expandtabs(1):
            left -= get_character_cell_size(each)
            if left < 0:
                return "".join(parts) + _RESET
            parts.append(each)
    return "".join(parts) + (_RESET if parts and "\x1b" in row else "")


def enclosed(line: str, style: str) -> tuple[str, str]:
    """A line in the colours that its stream has set before, which do not colour what follows of
    others: (it, the colours after it)."""
    after = style
    for found in SGR.findall(line):
        after = (
            ""
            if _ENDS.fullmatch(found) or found == "\x1b[m"
            else (after + found)[-_STYLE_CHARS_MAX:]
        )
    return f"{style}{line}{_RESET if after else ''}", after
