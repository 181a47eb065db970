"""A stream of output as rows: lines that are finished, and those that a progress bar still changes.

Pure.

A carriage return begins the row again, so that only its latest state counts; a bar below another
moves the cursor up and down (tqdm with positions, rich). A line without an end is handed out in
pieces, so that memory is bounded.

R1: each line that ends by a line feed is handed out once, in order. R2: of a row that is written
again and again only its last state is. R3: what is kept is at most ROWS_MAX rows of LINE_CHARS_MAX
characters.
"""

from __future__ import annotations

import codecs
import re

LINE_CHARS_MAX = 256 << 10
ROWS_MAX = 32
BELOW = "\x1b[s"
"""Before rows that are drawn below the one that is written, and come back from: that they are none
which follow it. A terminal notes its cursor's place, which nobody asks for."""
_STEP = re.compile("(\r|\n|\x1b\\[[0-9]*[ABGK]|\x1b\\[s)")
_MOVES = re.compile("\x1b\\[(?:[0-9]*A|s)")
_UNFINISHED = re.compile("\x1b(?:\\[[0-9;:]{0,16})?\\Z")


class Rows:
    """The rows of one stream; not thread-safe."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._rest = ""  # escape sequence whose end is still to come
        self._rows = [""]
        self._at = 0
        # the highest row on the screen, the first here, that the cursor was on during this feed
        self._lowest = 0
        self._again = False  # true if the next text begins the row again
        self._below = False  # the cursor is below, after BELOW, and will be back
        self._moves = False  # this stream goes back to rows above

    def feed(self, data: bytes, *, ended: bool = False) -> list[str]:
        """The lines that are finished by `data`; with `ended`, all that is left is."""
        text = self._rest + self._decoder.decode(data, final=ended)
        self._rest = ""
        if not ended and (cut := _UNFINISHED.search(text)):
            text, self._rest = text[: cut.start()], cut[0]
        lines: list[str] = []
        if not self._below:
            self._lowest = self._at
        if not self._moves and "\r" not in text and "\x1b" not in text and not self._again:
            self._plain(text, lines)
        else:
            self._moves = self._moves or _MOVES.search(text) is not None
            for number, part in enumerate(_STEP.split(text)):
                self._control(part, lines) if number % 2 else self._write(part, lines)
        if not self._below:
            self._settle(lines)
        if ended:
            while (
                len(self._rows) - 1 > self._at and not self._rows[-1]
            ):  # erasures below the last written row
                self._rows.pop()
            lines += self._rows if self._rows[-1] else self._rows[:-1]
            self._rows, self._at, self._again = [""], 0, False
        return lines

    def after_gap(self, dropped_bytes: int, data: bytes) -> tuple[list[str], bytes]:
        """Before `data`, which a size cap cut off from what came before it: the lines that end
        there, with one that says how much is missing, and what of `data` is whole lines. A gap
        begins and ends anywhere; half a line joined to another would be one that nobody wrote."""
        lines = self.feed(b"", ended=True)
        fragment, end, whole = data.partition(b"\n")
        if end:
            data, dropped_bytes = whole, dropped_bytes + len(fragment) + 1
        return [
            *lines,
            f"... {dropped_bytes} bytes of output were dropped here (size cap) ...",
        ], data

    def live(self) -> list[str]:
        """The rows that may still change, those that say something; nothing of a stream that only
        writes lines in pieces."""
        return [row for row in self._rows if row.strip()]

    def _settle(self, lines: list[str]) -> None:
        """Rows that the cursor had left before, and has not come back to."""
        lines += self._rows[: self._lowest]
        del self._rows[: self._lowest]
        self._at -= self._lowest

    def _plain(self, text: str, lines: list[str]) -> None:
        *whole, rest = (self._rows[self._at] + text).split("\n")
        lines += whole
        while len(rest) > LINE_CHARS_MAX:
            lines.append(rest[:LINE_CHARS_MAX])
            rest = rest[LINE_CHARS_MAX:]
        self._rows[self._at] = rest

    def _write(self, text: str, lines: list[str]) -> None:
        if not text:
            return
        row = text if self._again else self._rows[self._at] + text
        self._again = False
        while len(row) > LINE_CHARS_MAX:
            lines.append(row[:LINE_CHARS_MAX])
            row = row[LINE_CHARS_MAX:]
        self._rows[self._at] = row

    def _control(self, control: str, lines: list[str]) -> None:
        if control == "\r" or control[-1] == "G":
            self._again = True
        elif control == "\n":
            self._down(lines)
        elif control[-1] == "K":
            if control == "\x1b[2K" or self._again:
                self._rows[self._at] = ""
        elif control[-1] == "A":
            self._at = max(0, self._at - int(control[2:-1] or 1))
            self._lowest, self._below = min(self._lowest, self._at), False
        elif control == BELOW:
            self._below = True
        else:
            for _ in range(min(int(control[2:-1] or 1), ROWS_MAX)):
                self._down(lines)

    def _down(self, lines: list[str]) -> None:
        self._again = False
        if not self._moves:
            lines.append(self._rows[self._at])
            self._rows[self._at] = ""
            return
        self._at += 1
        if self._at == len(self._rows):
            self._rows.append("")
        if len(self._rows) > ROWS_MAX:
            lines.append(self._rows.pop(0))
            self._at -= 1
            self._lowest = max(0, self._lowest - 1)
        self._again = bool(self._rows[self._at])
