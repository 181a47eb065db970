"""Draws docs/quickstart.svg: the terminal of a run of scripts/quickstart.py.

PYTHONPATH=build/dev/python TROUPE_BIN_DIR=build/dev/bin python scripts/terminal_picture.py
"""

from __future__ import annotations

import io
import pathlib
import re
import subprocess
import sys

from rich.console import Console
from rich.text import Text

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/quickstart.svg"
COLUMNS, LINES_MAX = 100, 23
STYLES = {
    r"^✓": "bold green",
    r"^ {4}\S.*$": "bold",
    r"\d+\.\d+ s\b": "cyan",
    r"^\$ .*$": "bold yellow",
    r"^done\b": "bold green",
}


def drawn(lines: list[str]) -> str:
    """Return the SVG of a terminal that shows these lines."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for line in lines:
        text = Text(line)
        for pattern, style in STYLES.items():
            text.highlight_regex(pattern, style)
        console.print(text, crop=True, no_wrap=True, overflow="ellipsis", highlight=False)
    picture = console.export_svg(title="troupe")
    return re.sub(r"\s*@font-face \{.*?\}", "", picture, flags=re.S)  # no font from the network


def shown(lines: list[str]) -> list[str]:
    """Return the lines of a picture: of a run of epochs the first and last, and no wide ones."""
    kept = []
    for before, line, after in zip(["", *lines], lines, [*lines[1:], ""]):
        middle = all(" epoch " in each for each in (before, line, after))
        if line.strip() and not middle and len(line) <= COLUMNS:
            kept.append(line.rstrip())
    return [*kept[:LINES_MAX], "..."] if len(kept) > LINES_MAX else kept


def main() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/quickstart.py"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    PICTURE.write_text(drawn(["$ ./quickstart", *shown(done.stdout.splitlines())]))
    print(done.stdout)


if __name__ == "__main__":
    main()
