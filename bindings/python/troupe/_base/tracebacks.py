"""Tracebacks as text, and what an exception says of itself.

Pure, but for the source of code that only this process has.
"""

from __future__ import annotations

import linecache
import os
import re

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_PLACE = re.compile(r'([ |]*  )File "(.*)", line ([0-9]+)')
_FRAME = re.compile(r'  File "(.*)", line ')
_CPP_HEADER = re.compile(r"Exception raised from .+ \(most recent call first\):\s*$")
_CPP_FRAME = re.compile(r"\s*frame #[0-9]+: .*(?: \(0x[0-9a-f]+ in .*\)|\[0x[0-9a-f]+\])\s*$")


class CppFrames:
    """Filter that leaves C++ frames out of the lines of one stream: of each list that torch adds to
    an error of its own (c10::Error), one line remains.

    Such a list follows the line "Exception raised from ... (most recent call first):". With
    TORCH_SHOW_CPP_STACKTRACES=1 in a process torch writes its lists in another form, with symbols:
    the user has asked for those, so they stay.
    """

    def __init__(self, notice: str, *, inside: bool = False) -> None:
        """`notice`: the line that takes the frames' place.

        `inside`: the first line may be a frame, its header cut off.
        """
        self._notice, self._inside, self._leaves_out = notice, inside, False

    def filter(self, lines: list[str]) -> list[str]:
        """Return the lines without frames. A list of frames may go on in the next call's lines."""
        kept: list[str] = []
        for line in lines:
            if self._inside and _CPP_FRAME.match(line):
                if not self._leaves_out:
                    self._leaves_out = True
                    kept.append(self._notice)
                continue
            if not (self._leaves_out and not line.strip()):  # the empty line that ends the list
                kept.append(line)
            self._leaves_out = False
            self._inside = _CPP_HEADER.search(line) is not None
        return kept


def words_of(error: BaseException) -> str:
    """Return str(error), or a note if its `__str__` raises."""
    try:
        return str(error)
    except Exception as other:  # a program's own __str__ may raise anything, and give no text
        return f"(its __str__ raised {type(other).__name__})"


def is_of_runtime(filename: str) -> bool:
    """Return True if `filename` belongs to the troupe package, in this process or, judged by its
    folder's name, in another."""
    return filename.startswith(_PACKAGE) or "/site-packages/troupe/" in filename


def is_frame_of_runtime(line: str) -> bool:
    """Return True if this line of a traceback names a file of the package."""
    frame = _FRAME.match(line)
    return frame is not None and is_of_runtime(frame[1])


def with_source(told: str) -> str:
    """A traceback of another process, with the lines of code that only this one has: of a
    notebook's cells, of what was typed."""
    lines = told.split("\n")
    shown = []
    for number, line in enumerate(lines):
        shown.append(line)
        frame = _PLACE.match(line)
        if frame is None or (
            number + 1 < len(lines) and lines[number + 1].startswith(frame[1] + "  ")
        ):
            continue
        cached = linecache.cache.get(frame[2])  # the file was not readable there, or differs here
        source = (
            linecache.getline(frame[2], int(frame[3])).strip()
            if cached is not None and not os.path.exists(frame[2])
            else ""
        )
        if source:
            shown.append(f"{frame[1]}  {source}")
    return "\n".join(shown)
