"""Output of other processes on this one's stdout and stderr: lines as they are finished, and
progress bars while they move.

In a terminal bars, and rows that say where something is, lie below the line that the cursor is on,
and are drawn again a few times a second; the cursor stays where it is, so that what the program
itself prints is never drawn over. In a notebook they are an output of the cell that is updated, and
of what is printed a cell shows as much as a person reads (`_cluster.cell_output`). In a rank, whose
output is read by who shows it (`_cluster.output_rows`), they are rows below the one that it writes.
Elsewhere, as in a pipe or a file, a bar is one line once it is finished, and one every `BAR_LINE_S`
while it moves.
"""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import os
import select
import stat
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

from troupe._base import visible as _visible
from troupe._cluster import cell_output, output_rows, terminal_text

REDRAW_S = 0.2
# beside REDRAW_S: of rows that change with time, and of what the program may have written over in a
# terminal
TICK_S = 0.3
BAR_LINE_S = 10.0  # between two lines of a bar that moves, where no bar can be drawn again
BARS_MAX = 20
CELLS_MAX = 8  # cells of a notebook that are written to at the same time
_ERASE_BELOW, _SAVE, _BACK, _DOWN = "\x1b[J", "\x1b7", "\x1b8", "\x1bD"


class Live:
    """The process's own; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._bars: dict[Hashable, list[str]] = {}
        self._rows: dict[Hashable, Callable[[], str]] = {}
        self._styles: dict[Hashable, str] = {}
        self._unseen: dict[
            Hashable, tuple[list[str], bool]
        ] = {}  # bars where none can be drawn again, and whether they are on stderr
        self._timer: threading.Timer | None = None
        self._changed = threading.Event()
        self._thread: threading.Thread | None = None
        self._drawn = 0
        self._notebook: Any = None
        self._cells: OrderedDict[str, tuple[cell_output.Cell, contextvars.Context]] = (
            OrderedDict()
        )  # with what says whose cell it is
        self._context: contextvars.Context | None = None
        self._pid = 0

    def show(
        self,
        key: Hashable,
        label: str,
        lines: list[str],
        bars: list[str],
        *,
        is_error: bool,
        source: str = "",
    ) -> None:
        """Prints finished lines of a stream, `key`, and has its bars drawn instead of the former
        ones. `label` stands before each line as it is. `source`: where a person finds all that the
        stream has, for places that do not show it all."""
        stream = sys.stderr if is_error else sys.stdout
        bars = [
            bar for bar in map(_visible.output, bars) if terminal_text.SGR.sub("", bar).strip()
        ]  # an escape for the cursor alone is none
        with self._lock:
            had = self._bars.pop(key, None) if not bars else self._bars.get(key)
            labelled = [f"{label}{bar.strip()}" for bar in bars]
            if bars and self._place() is not None:
                self._bars[key] = labelled
            self._keep_unseen(key, labelled if self._place() is None else [], is_error=is_error)
            lines = self._finished(key, label, lines, stream, source)
            text = "".join(f"{line}\n" for line in lines)
            beside = not self._is_drawn_on(stream)
            if text and not beside:
                self._print(text, stream)
            elif text and self._drawn and descriptor(is_error=is_error) is not None:
                # The stream may be `tee`, which writes where the rows are; they are drawn again at
                # the next look
                self._erase()
                self._changed.set()
            if not self._bars and not self._rows and self._drawn:
                self._erase()
            if not self._bars and had is not None and _is_notebook(self._place()):
                self._draw()  # at once: the cell may be over before the next look
            if had is not None or key in self._bars:
                self._draw_soon()
        if text and beside:
            print(
                text, end="", file=stream, flush=True
            )  # by a reader who is slow this one is kept waiting, and no other

    def row(self, key: Hashable, make: Callable[[], str] | None) -> None:
        """Has a row drawn below the bars, by what `make()` returns then, "" for none; None: it is
        over. Only where `sees_rows`."""
        with self._lock:
            if make is not None and self.sees_rows():
                self._rows[key] = make
                self._draw_soon()
            elif self._rows.pop(key, None) is not None:
                with contextlib.suppress(Exception):  # the user's stream may be closed
                    self._draw()

    def sees_rows(self) -> bool:
        """Return True if a person sees rows that change: in a terminal or a notebook."""
        place = self._place()
        return place is not None and (_is_terminal(place) or _is_notebook(place))

    def settle(self) -> None:
        """Shows what the next look would: at the end of something, which may be the end of its
        cell."""
        with self._lock, contextlib.suppress(Exception):
            if _is_notebook(self._place()):
                self._draw()

    def forget(self, keys: list[Hashable]) -> None:
        """Forget streams that have ended."""
        with self._lock:
            for key in keys:
                self._styles.pop(key, None)
                self._unseen.pop(key, None)

    def say(self, line: str) -> None:
        """Prints a line of the runtime's on stderr. Never raises."""
        with self._lock, contextlib.suppress(Exception):
            self._print(f"{line}\n", sys.stderr)

    def clear(self) -> None:
        """At the end of the process: nothing of the bars is left below its last line."""
        with self._lock:
            self._bars.clear()
            self._rows.clear()
            self._unseen.clear()
            self._draw()

    def _keep_unseen(self, key: Hashable, bars: list[str], *, is_error: bool) -> None:
        """Has the newest state of a stream's bars printed when the time for it has come; none: they
        are finished."""
        if not bars:
            self._unseen.pop(key, None)
            return
        self._unseen[key] = bars, is_error
        if self._timer is None or not self._timer.is_alive():  # a forked child has none
            self._timer = threading.Timer(BAR_LINE_S, self._print_unseen)
            self._timer.daemon = True
            self._timer.start()

    def _print_unseen(self) -> None:
        with self._lock:
            unseen, self._unseen, self._timer = self._unseen, {}, None
        for bars, is_error in unseen.values():
            if not _would_wait(is_error=is_error):
                with contextlib.suppress(Exception):  # the user's stream may be closed
                    print("\n".join(bars), file=sys.stderr if is_error else sys.stdout, flush=True)

    def _finished(
        self, key: Hashable, label: str, lines: list[str], stream: Any, source: str
    ) -> list[str]:
        """Lines as they are printed: where a person looks, the colours of one stream are no
        other's, and a cell has only so many."""
        if not lines:
            return lines
        shown = list(map(_visible.output, lines))
        cell = _is_notebook(stream)
        if (cell or _is_terminal(stream)) and (
            key in self._styles or any("\x1b" in each for each in shown)
        ):
            style = self._styles.pop(key, "")
            for number, each in enumerate(shown):
                shown[number], style = terminal_text.enclosed(each, style)
            if style:
                self._styles[key] = style
        shown = [f"{label}{each}" for each in shown]
        if not cell:
            return shown
        mine = self._cell_of(stream)
        printed = mine.take(shown, source)
        if len(printed) < len(shown):
            self._draw_soon()
        return printed

    def _cell_of(self, stream: Any) -> cell_output.Cell:
        header = getattr(stream, "parent_header", None) or {}
        identity = str(header.get("msg_id", ""))
        if identity not in self._cells:
            self._cells[identity] = cell_output.Cell(), contextvars.copy_context()
        self._cells.move_to_end(identity)
        if len(self._cells) > CELLS_MAX:
            self._cells.popitem(last=False)
        return self._cells[identity][0]

    def _draw_soon(self) -> None:
        """In the context of who asks: it says which cell of a notebook is theirs."""
        self._context = contextvars.copy_context()
        self._changed.set()
        if self._thread is None or self._pid != os.getpid():
            self._pid = os.getpid()
            self._thread = threading.Thread(target=self._redraw, name="troupe-bars", daemon=True)
            self._thread.start()
            atexit.unregister(self.clear)
            atexit.register(self.clear)

    def _is_drawn_on(self, stream: Any) -> bool:
        return _is_terminal(stream) or stream is self._place() or _is_notebook(stream)

    def _print(self, text: str, stream: Any) -> None:
        if self._drawn and self._is_drawn_on(stream):
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
                except Exception:  # the user's stderr may be closed: bars are an extra
                    self._bars.clear()
                    self._rows.clear()
                moves, tick = (
                    bool(self._bars or self._rows),
                    TICK_S if self._rows or _is_terminal(self._place()) else None,
                )
            pause.wait(REDRAW_S)
            if moves:
                self._changed.wait(tick)
                continue
            with self._lock:
                if not self._changed.is_set():
                    self._thread = None
                    return

    @staticmethod
    def _place() -> Any:
        """Return the stream on which moving bars are visible: a terminal, or a notebook's cell."""
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
            context = self._context or contextvars.copy_context()
            context.run(self._draw_in_cell, bars + self._made_rows())
            for cell, own in self._cells.values():
                own.run(cell.draw)
            return
        if not _is_terminal(place):
            self._draw_as_rows(place, bars[:BARS_MAX])
            return
        columns, height = _size(place)
        rows = self._made_rows()
        most = max(2, min(height - 2, BARS_MAX))
        bars = _at_most(bars, most - min(len(rows), most // 2)) + _at_most(rows, max(1, most // 2))
        if not bars:
            self._erase()
            return
        drawn = "".join(f"\r\n{terminal_text.cut(bar, columns - 1)}\x1b[K" for bar in bars)
        # Room is made first by steps down that scroll at the bottom and keep the column; then the
        # place is saved, and come back to. What lies to its right is of a row that was drawn before
        # the program wrote a line of its own.
        drawn = f"{_DOWN * len(bars)}\x1b[{len(bars)}A\x1b[K{_SAVE}{drawn}{_ERASE_BELOW}{_BACK}"
        place.write(
            drawn
        )  # also where it is as before: the program may have written lines of its own over it
        place.flush()
        self._drawn = len(bars)

    def _made_rows(self) -> list[str]:
        return [row for make in self._rows.values() if (row := _visible.name(make()))]

    def _erase(self) -> None:
        place = self._place()
        if (
            self._drawn
            and place is not None
            and not _is_terminal(place)
            and not _is_notebook(place)
        ):
            self._draw_as_rows(place, [])
        elif self._drawn and place is not None:
            place.write(_ERASE_BELOW)
            place.flush()
        self._drawn = 0

    def _draw_as_rows(self, place: Any, bars: list[str]) -> None:
        """The rows below, and those of them that were bars before and are none now; the row that
        the program writes stays as it is."""
        rows = bars + [""] * (self._drawn - len(bars))
        if rows:
            place.write(
                output_rows.BELOW
                + "".join(f"\n\r\x1b[K{row}" for row in rows)
                + f"\x1b[{len(rows)}A"
            )
            place.flush()
        self._drawn = len(bars)

    def _draw_in_cell(self, bars: list[str]) -> None:
        """An output for all the bars of a cell: short ones that follow each other do not fill
        it."""
        from IPython import get_ipython
        from IPython.display import display

        data, cell = {"text/plain": "\n".join(bars)}, get_ipython().execution_count
        if self._notebook is None or self._notebook[1] != cell and bars:
            if bars:
                self._notebook = [display(data, raw=True, display_id=True), cell, data]
        elif self._notebook[2] != data:
            self._notebook[0].update(data, raw=True)
            self._notebook[2] = data


def _at_most(rows: list[str], most: int) -> list[str]:
    return (
        rows if len(rows) <= most else [*rows[: most - 1], f"... and {len(rows) - most + 1} more"]
    )


def descriptor(*, is_error: bool) -> int | None:
    """Return the descriptor of stderr or stdout if its reader may keep a writer waiting: a pipe, a
    socket, a terminal. None for a file, or an object of the program's own."""
    try:
        number: int = (sys.stderr if is_error else sys.stdout).fileno()
        kind = os.fstat(number).st_mode
    except Exception:  # closed, or no stream
        return None
    return None if stat.S_ISREG(kind) else number


def _would_wait(*, is_error: bool) -> bool:
    """Return True if the reader of stderr or stdout leaves no room for a line now."""
    number = descriptor(is_error=is_error)
    if number is None:
        return False
    poll = select.poll()
    poll.register(number, select.POLLOUT)
    return not poll.poll(0)


def in_notebook() -> bool:
    """Return True if a cell of a notebook shows what this process prints."""
    return _is_notebook(sys.stderr) or _is_notebook(sys.stdout)


def _size(place: Any) -> tuple[int, int]:
    """(columns, lines) of a terminal as it is now."""
    with contextlib.suppress(Exception):
        columns, height = os.get_terminal_size(place.fileno())
        if columns > 1 and height > 0:
            return columns, height
    return 80, 24


def _is_terminal(stream: Any) -> bool:
    """Return True if `stream` is a terminal that shows changing rows.

    What continuous integration runs may have a terminal, of which a file is kept: variable CI.
    """
    try:
        return (
            bool(stream.isatty())
            and os.environ.get("TERM", "dumb") != "dumb"
            and os.environ.get("CI", "").lower() in ("", "0", "false")
        )
    except Exception:  # closed, or no stream
        return False


def _is_read_as_rows() -> bool:
    """Return True if this process is a rank."""
    session = getattr(sys.modules.get("troupe._cluster.session"), "current_or_none", lambda: None)()
    return session is not None and session.in_process


def _is_notebook(stream: Any) -> bool:
    return type(stream).__module__.startswith("ipykernel.")


_live = Live()
show = _live.show
say = _live.say
row = _live.row
sees_rows = _live.sees_rows
settle = _live.settle
forget = _live.forget
