"""Output of other processes on this one's stdout and stderr: lines as they are finished, and progress bars while they move.

In a terminal the bars lie below the line that the cursor is on, and are drawn again a few times a second; the cursor stays where it is,
so that what the program itself prints is never drawn over. In a notebook they are an output of the cell that is updated. In a rank, whose
output is read by who shows it (`_cluster.output_rows`), they are rows below the one that it writes. Elsewhere, as in a file, a bar is one line, once it is
finished.
"""
from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import sys
import threading
import unicodedata
from collections.abc import Hashable
from typing import Any

from troupe import _visible
from troupe._cluster import output_rows

REDRAW_S = 0.2
BARS_MAX = 20
_SGR = re.compile("(\x1b\\[[0-9;:]*m)")
_ERASE_BELOW, _SAVE, _BACK, _DOWN = "\x1b[J", "\x1b7", "\x1b8", "\x1bD"


class Live:
    """The process's own; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._bars: dict[Hashable, list[str]] = {}
        self._changed = threading.Event()
        self._thread: threading.Thread | None = None
        self._drawn = 0
        self._notebook: Any = None
        self._pid = 0

    def show(self, key: Hashable, label: str, lines: list[str], bars: list[str], *, is_error: bool) -> None:
        """Prints finished lines of a stream, `key`, and has its bars drawn instead of the former ones."""
        label = f"{label} " if label else ""
        text = "".join(f"{label}{_visible.output(line)}\n" for line in lines)
        bars = [bar for bar in map(_visible.output, bars) if _SGR.sub("", bar).strip()]  # an escape for the cursor alone is none
        with self._lock:
            had = self._bars.pop(key, None) if not bars else self._bars.get(key)
            if bars and self._place() is not None:
                self._bars[key] = [f"{label}{bar.strip()}" for bar in bars]
            if text:
                self._print(text, sys.stderr if is_error else sys.stdout)
            if not self._bars and self._drawn:
                self._erase()
            if not self._bars and had is not None and _is_notebook(self._place()):
                self._draw()  # at once: the cell may be over before the next look
            if had is None and key not in self._bars:
                return
            self._changed.set()
            if self._thread is None or self._pid != os.getpid():
                self._pid = os.getpid()
                self._thread = threading.Thread(target=self._redraw, name="troupe-bars", daemon=True)
                self._thread.start()
                atexit.unregister(self.clear)
                atexit.register(self.clear)

    def say(self, line: str) -> None:
        """Prints a line of the runtime's on stderr. Never raises."""
        with self._lock, contextlib.suppress(Exception):
            self._print(f"{line}\n", sys.stderr)

    def clear(self) -> None:
        """At the end of the process: nothing of the bars is left below its last line."""
        with self._lock:
            self._bars.clear()
            self._draw()

    def _print(self, text: str, stream: Any) -> None:
        if self._drawn and (_is_terminal(stream) or stream is self._place()):
            self._erase()
            stream.write(text)
            stream.flush()
            self._draw()
        else:
            print(text, end="", file=stream, flush=True)

    def _redraw(self) -> None:
        pause = threading.Event()
        while True:
            with self._lock:
                self._changed.clear()
                try:
                    self._draw()
                except Exception:  # of the user's stderr, which may be gone: bars are an extra
                    self._bars.clear()
                if not self._bars:
                    self._thread = None
                    return
            pause.wait(REDRAW_S)
            self._changed.wait()

    @staticmethod
    def _place() -> Any:
        """Where bars can be seen moving: a terminal, or a notebook's cell."""
        for stream in (sys.stderr, sys.stdout):
            if _is_terminal(stream) or _is_notebook(stream):
                return stream
        return sys.stderr if _is_read_as_rows() else None

    def _draw(self) -> None:
        place = self._place()
        bars = [bar for each in self._bars.values() for bar in each]
        if place is None:
            return
        if _is_notebook(place):
            self._draw_in_cell(bars)
            return
        if not _is_terminal(place):
            self._draw_as_rows(place, bars[:BARS_MAX])
            return
        columns, height = shutil.get_terminal_size()
        most = max(1, min(height - 2, BARS_MAX))
        if len(bars) > most:
            bars[most - 1:] = [f"... and {len(bars) - most + 1} more bars"]
        if not bars:
            self._erase()
            return
        rows = "".join(f"\r\n{_cut(bar, columns - 1)}\x1b[K" for bar in bars)
        # Room is made first by steps down that scroll at the bottom and keep the column; then the place is saved, and come back to.
        place.write(f"{_DOWN * len(bars)}\x1b[{len(bars)}A{_SAVE}{rows}{_ERASE_BELOW}{_BACK}")
        place.flush()
        self._drawn = len(bars)

    def _erase(self) -> None:
        place = self._place()
        if self._drawn and place is not None and not _is_terminal(place) and not _is_notebook(place):
            self._draw_as_rows(place, [])
        elif self._drawn and place is not None:
            place.write(_ERASE_BELOW)
            place.flush()
        self._drawn = 0

    def _draw_as_rows(self, place: Any, bars: list[str]) -> None:
        """The rows below, and those of them that were bars before and are none now; the row that the program writes stays as it is."""
        rows = bars + [""] * (self._drawn - len(bars))
        if rows:
            place.write(output_rows.BELOW + "".join(f"\n\r\x1b[K{row}" for row in rows) + f"\x1b[{len(rows)}A")
            place.flush()
        self._drawn = len(bars)

    def _draw_in_cell(self, bars: list[str]) -> None:
        """One output for all the bars of a cell: short ones that follow each other do not fill it."""
        from IPython import get_ipython
        from IPython.display import display

        data, cell = {"text/plain": "\n".join(bars)}, get_ipython().execution_count
        if self._notebook is not None and (self._notebook[1] == cell or not bars):
            self._notebook[0].update(data, raw=True)
        elif bars:
            self._notebook = display(data, raw=True, display_id=True), cell


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty()) and os.environ.get("TERM", "dumb") != "dumb"
    except Exception:  # closed, or no stream
        return False


def _is_read_as_rows() -> bool:
    """Whether this process is a rank."""
    session = getattr(sys.modules.get("troupe._cluster.session"), "current_or_none", lambda: None)()
    return session is not None and session.in_process


def _is_notebook(stream: Any) -> bool:
    return type(stream).__module__.startswith("ipykernel.")


def _cut(row: str, columns: int) -> str:
    """As much of it as fits on a line of a terminal."""
    parts, left = [], columns
    for number, part in enumerate(_SGR.split(row)):
        if number % 2:
            parts.append(part)
            continue
        for each in part.expandtabs(1):
            left -= 0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1
            if left < 0:
                return "".join(parts) + "\x1b[0m"
            parts.append(each)
    return "".join(parts) + ("\x1b[0m" if len(parts) and "\x1b" in row else "")


_live = Live()
show = _live.show
say = _live.say
