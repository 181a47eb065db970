"""Output of other processes in a notebook's cell: the first lines as they come, then the size of
the rest, and its end.

A cell that was given everything would make its notebook unusable, and stays in the file. So the
first LINES_MAX lines of a cell are printed; what comes then is counted, and one output is updated
that says how many lines are left out, where all of them are, and the latest.
"""

from __future__ import annotations

from collections import deque
from typing import Any

LINES_MAX = 1000
CHARS_MAX = 128 << 10
LATEST_MAX = 20
LATEST_CHARS_MAX = 300  # longest kept latest line
SOURCES_MAX = 3  # named as where all of it is


class Cell:
    """The output of one cell; not thread-safe."""

    def __init__(self) -> None:
        self._lines = self._chars = 0
        self._left_lines = self._left_chars = 0
        self._latest: deque[str] = deque(maxlen=LATEST_MAX)
        self._sources: dict[str, None] = {}
        self._display: Any = None
        self._drawn = ""

    def take(self, lines: list[str], source: str) -> list[str]:
        """Return the lines to print. `source`: where a person finds all of them."""
        printed = []
        for line in lines:
            if (
                not self._left_lines
                and self._lines < LINES_MAX
                and self._chars + len(line) <= CHARS_MAX
            ):
                self._lines, self._chars = self._lines + 1, self._chars + len(line)
                printed.append(line)
                continue
            self._left_lines, self._left_chars = (
                self._left_lines + 1,
                self._left_chars + len(line) + 1,
            )
            self._latest.append(
                line if len(line) <= LATEST_CHARS_MAX else f"{line[:LATEST_CHARS_MAX]}..."
            )
            if source and len(self._sources) < SOURCES_MAX:
                self._sources[source] = None
        return printed

    def text(self) -> str:
        """Return the sentence about omitted lines; "" if there are none."""
        if not self._left_lines:
            return ""
        hidden = self._left_lines - len(self._latest)
        where = f"; all of it: {', '.join(self._sources)}" if self._sources else ""
        said = [f"... {hidden:,} lines are left out here{where} ..."] if hidden else []
        return "\n".join([*said, *self._latest])

    def draw(self) -> None:
        """Shows it in an output of its own, below what was printed; in the caller's context, which
        says whose cell it is."""
        text = self.text()
        if text == self._drawn:
            return
        self._drawn = text
        from IPython.display import display

        data = {"text/plain": text}
        if self._display is None:
            self._display = display(data, raw=True, display_id=True)
        else:
            self._display.update(data, raw=True)
