"""A dataset dealt to readers while it is made: for plans of which nobody knows beforehand how many
rows they give."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

from troupe import _pickled
from troupe._cluster import status_lines
from troupe.data import _deal, _stream

ROUNDS_AHEAD = 2
"""How many parts a reader may leave lying before the others wait for it."""
PATIENCE_S = 60.0


class Dealing:
    """Carries a plan out, epoch by epoch, and gives each reader its parts when it asks.

    Its methods are called by a thread for each reader.

    Readers are in one epoch: who asks for the next one waits until all others do, or have ended
    theirs.
    """

    def __init__(self, plan: Any, count: int, equal: bool) -> None:
        self._plan, self._count, self._equal = plan, count, equal
        self._changed = threading.Condition()
        self._epoch = -1
        self._wanted: dict[int, int] = {}  # reader -> the epoch that it asks for
        self._lines: list[deque[Any]] = [deque() for _ in range(count)]
        self._source: Any = None
        self._dealer: Any = None
        self._ended = True
        self._making = False
        self._failure: BaseException | None = None

    def next(self, index: int, epoch: int) -> list[tuple[Any, int, int, int]] | None:
        """The next parts of that reader in that epoch: (block or ref, first row, end, rows of the
        block). None: it has had all.

        Blocks while there are none yet, or while another reader is far behind. Raises DataError
        where a block cannot be made.
        """
        with self._changed:
            self._wanted[index] = epoch
            self._begin(index, epoch)
            while True:
                if self._epoch != epoch:
                    return None
                if self._lines[index]:
                    self._changed.notify_all()
                    found: list[tuple[Any, int, int, int]] | None = self._lines[index].popleft()
                    return found
                if self._failure is not None:
                    raise self._failure
                if self._ended:
                    return None
                if self._making or self._is_behind(index):
                    self._wait(index, "reader {} waits: others have not taken their parts yet: {}")
                    continue
                self._make()

    def _begin(self, index: int, epoch: int) -> None:
        self._changed.notify_all()
        while epoch > self._epoch:
            if len(self._wanted) == self._count and all(
                wanted > self._epoch for wanted in self._wanted.values()
            ):
                self._epoch += 1
                if self._source is not None:
                    self._source.close()
                self._source = _stream.blocks(self._plan, _place(), self._epoch)
                self._dealer = _deal.Dealer(self._count, equal=self._equal)
                self._ended, self._failure = False, None
                self._lines = [deque() for _ in range(self._count)]
                self._changed.notify_all()
                return
            self._wait(
                index,
                f"reader {{}} waits for epoch {epoch}, which begins when all {self._count} have "
                f"asked for it: not yet {{}}",
            )

    def _is_behind(self, index: int) -> bool:
        """Return True if another reader has left so much unread that no more is made."""
        return any(
            len(line) >= ROUNDS_AHEAD for number, line in enumerate(self._lines) if number != index
        )

    def _wait(self, index: int, text: str) -> None:
        if not self._changed.wait(PATIENCE_S):
            late = [
                number
                for number in range(self._count)
                if self._lines[number] or self._wanted.get(number, -1) <= self._epoch
            ]
            named = (
                ", ".join(f"reader {number}" for number in late if number != index)
                or "a block is being made"
            )
            status_lines.say(f"troupe.data: {PATIENCE_S:g} s: {text.format(index, named)}")

    def _make(self) -> None:
        """Make another round without holding the lock: others take their parts meanwhile."""
        self._making = True
        self._changed.release()
        failure: BaseException | None = None
        shares = None
        ended = False
        try:
            while shares is None and not ended:
                block = next(self._source, None)
                ended = block is None
                shares = (
                    self._dealer.end()
                    if block is None
                    else self._dealer.add((block.value, block.rows), block.rows)
                )
        except BaseException as error:  # each reader raises it
            failure = error
        finally:
            self._changed.acquire()
            self._making = False
        self._failure, self._ended = failure, ended
        for line, parts in zip(self._lines, shares or (), strict=False):
            if parts:
                line.append([(value, start, stop, rows) for (value, rows), start, stop in parts])
        self._changed.notify_all()


def _place() -> _stream.Place:
    import dataclasses

    place = _stream.here()
    return (
        dataclasses.replace(place, options={"num_cpus": 0, "scheduling_strategy": "SPREAD"})
        if place.cluster
        else place
    )


class DealingHere(Dealing):
    """Dealing in a process without a cluster: its readers are threads."""

    cannot_travel = (
        "this share is dealt by the process that called streaming_split(), for its functions "
        "change how many rows there are: call "
        "troupe.init() before streaming_split(), and an actor deals it to readers in other "
        "processes"
    )


class DealingActor(Dealing):
    """The actor that deals to readers in other processes; what is in the parts stays where it was
    made."""


_pickled.named_in("troupe._pickled", DealingActor)
