"""The output of a launch's ranks, shown while it comes and as far as who reads stdout takes it.

What a reader is too slow for waits in the files of the workers, and holds up no rank. Once the
launch has ended the reader has some time for the rest; what is left then is counted, said, and only
its end is shown.
"""

from __future__ import annotations

import contextvars
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable

from troupe._base.tracebacks import CppFrames
from troupe._cluster import live_output
from troupe._cluster.logs import Follower

DRAIN_DEADLINE_S = 2.0  # for what ranks still say while they end
PIECE_CHARS = 64 << 10  # length shown at once
PIPE_BYTES = select.PIPE_BUF  # in a pipe that has room: what it takes without waiting
COUNT_S = 5.0  # for counting what is not shown
LAST_LINES = 10  # last lines shown of a stream that is not shown to its end
LAST_WORDS_S = 5.0  # time that a reader has for those


class Printer:
    """Shows what one epoch's ranks write, on a thread of its own.

    `label_of(rank, is_error)`: what stands before each line of a stream, as it is. `source`: where
    a person finds all of it. `heard(rank, is_error, lines)`: told of all lines that are read, shown
    or not.
    """

    def __init__(
        self,
        follower: Follower,
        launch: str,
        label_of: Callable[[int, bool], str],
        source: str,
        began: Callable[[], None],
        heard: Callable[[int, bool, list[str]], None] | None = None,
    ) -> None:
        self._follower, self._launch, self._label_of, self._source, self._began = (
            follower,
            launch,
            label_of,
            source,
            began,
        )
        self._heard = heard
        self._lock = threading.Lock()
        self._woken = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)  # -1: it is over
        self._ending = False
        self._patience_s = 0.0  # time that is left, once the launch has ended
        self._left: dict[tuple[int, bool], _LeftOut] = {}
        self._keys: set[tuple[str, int, bool]] = set()
        self._cpp_frames: dict[tuple[int, bool], CppFrames] = {}
        self.unsaid_lines = 0
        """Lines that are not shown, of which who reads the output was not told"""
        context = contextvars.copy_context()  # says to which cell of a notebook it belongs
        self._thread = threading.Thread(
            target=context.run, args=(self._run,), name="troupe-print", daemon=True
        )
        self._thread.start()

    def end(self, patience_s: float) -> None:
        """The ranks have ended.

        Whoever reads the output may keep it waiting for `patience_s` more. Does not block.
        """
        if not self._ending:
            self._patience_s, self._ending = patience_s, True
            self._follower.end(DRAIN_DEADLINE_S)
            with self._lock:
                if self._woken >= 0:
                    os.eventfd_write(self._woken, 1)

    def leave(self) -> None:
        """Shows no more. Does not block."""
        self._follower.leave()
        self.end(0.0)

    def join(self) -> None:
        """Returns when all is shown, or counted."""
        self._thread.join()

    def _run(self) -> None:
        try:
            self._copy()
        except (OSError, ValueError):
            pass  # our own stdout is closed: there is nobody to show it to
        finally:
            live_output.forget(list(self._keys))
            with self._lock:
                os.close(self._woken)
                self._woken = -1

    def _copy(self) -> None:
        counting_until = 0.0
        for rank, is_error, lines, bars in self._follower.news():
            if self._heard is not None:
                self._heard(rank, is_error, lines)
            lines = self._without_cpp_frames(rank, is_error, lines)
            if not self._left:
                at = self._show(rank, is_error, lines, bars)
                if at == len(lines):
                    continue
                lines, counting_until = lines[at:], time.monotonic() + COUNT_S
            self._left.setdefault((rank, is_error), _LeftOut()).take(lines)
            if time.monotonic() > counting_until:
                self._say_what_is_left_out(exact=False)
                return
        self._say_what_is_left_out(exact=True)

    def _without_cpp_frames(self, rank: int, is_error: bool, lines: list[str]) -> list[str]:
        frames = self._cpp_frames.get((rank, is_error))
        if frames is None:
            frames = self._cpp_frames[rank, is_error] = CppFrames(
                f"... C++ frames left out here; all of it: {self._source} ..."
            )
        return frames.filter(lines)

    def _show(self, rank: int, is_error: bool, lines: list[str], bars: list[str]) -> int:
        """How many of the lines were taken."""
        key, label = (self._launch, rank, is_error), self._label_of(rank, is_error)
        self._keys.add(key)
        if lines or bars:
            self._began()
        may_wait = live_output.descriptor(is_error=is_error)
        at = 0
        while at < len(lines):
            if may_wait is not None and not self._has_room(may_wait):
                return at
            upto = _piece(
                lines, at, len(label) + 1, PIECE_CHARS if may_wait is None else PIPE_BYTES
            )
            live_output.show(
                key,
                label,
                lines[at:upto],
                bars if upto == len(lines) else [],
                is_error=is_error,
                source=self._source,
            )
            at = upto
        if not lines:
            live_output.show(key, label, [], bars, is_error=is_error, source=self._source)
        return at

    def _has_room(self, descriptor: int) -> bool:
        """Waits until more can be written; False: its reader has had its time."""
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT)
        poll.register(self._woken, select.POLLIN)
        while True:
            left, begin = max(0.0, self._patience_s) if self._ending else None, time.monotonic()
            ready = {each for each, _ in poll.poll(None if left is None else left * 1000)}
            if left is not None:
                self._patience_s -= time.monotonic() - begin
            if descriptor in ready:
                return True
            if self._woken in ready:
                os.eventfd_read(self._woken)
            elif left is not None and self._patience_s <= 0:
                return False

    def _say_what_is_left_out(self, *, exact: bool) -> None:
        self._patience_s = LAST_WORDS_S
        for (rank, is_error), left in sorted(self._left.items()):
            said = left.text(self._source, exact=exact)
            if self._show(rank, is_error, said, []) == 0:
                self.unsaid_lines += left.lines


def _piece(lines: list[str], begin: int, label_chars: int, most: int) -> int:
    """Up to which line from `begin` on they are so many bytes together, one line at least."""
    upto, size = begin, 0
    while upto < len(lines):
        line = lines[upto]
        size += label_chars + (len(line) if line.isascii() else 4 * len(line))
        if size > most and upto > begin:
            break
        upto += 1
    return upto


class _LeftOut:
    """Lines of one stream that are not shown."""

    def __init__(self) -> None:
        self.lines = self._chars = 0
        self.last: deque[str] = deque(maxlen=LAST_LINES)

    def take(self, lines: list[str]) -> None:
        """Counts them."""
        self.lines += len(lines)
        self._chars += sum(map(len, lines)) + len(lines)
        self.last.extend(lines)

    def text(self, source: str, *, exact: bool) -> list[str]:
        """How many they are, and the last of them. `exact`: all there are were counted."""
        last = list(self.last) if exact else []
        lines, chars = self.lines - len(last), self._chars - sum(map(len, last)) - len(last)
        if lines == 0:
            return last
        how_many = (
            f"{'' if exact else 'more than '}{lines:,} line{'' if lines == 1 else 's'} "
            f"({chars:,} characters)"
        )
        return [
            f"... {how_many} of output left out here, which was read more slowly than it was "
            f"written; all of it: {source} ...",
            *last,
        ]
