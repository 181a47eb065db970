"""Distribution of a stream's rows over n readers.

Pure.

D1  Every row goes to one reader, but for those that are left over. D2  Equal: after every round all
readers have been given equally many rows, and fewer than n rows are left over at the end. D3  The
same lengths give the same deal: it depends on no reader's speed. D4  A round is n blocks, so that
readers of equal blocks get whole ones, and only the last round cuts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
Part = tuple[T, int, int]  # a block, and its rows from the second number up to the third


class Dealer(Generic[T]):
    """Deals blocks to `n` readers, round by round.

    Rows that a round leaves over begin the next one.
    """

    def __init__(self, n: int, *, equal: bool) -> None:
        self._n, self._equal = n, equal
        self._waiting: list[Part[T]] = []
        self._blocks = 0
        self._next = 0

    def add(self, block: T, rows: int) -> list[list[Part[T]]] | None:
        """Add a block; if it completes a round, return the parts of each reader."""
        if not self._equal:
            shares: list[list[Part[T]]] = [[] for _ in range(self._n)]
            shares[self._next] = [(block, 0, rows)]
            self._next = (self._next + 1) % self._n
            return shares
        if rows:
            self._waiting.append((block, 0, rows))
            self._blocks += 1
        return self._round() if self._blocks == self._n else None

    def end(self) -> list[list[Part[T]]] | None:
        """There are no more blocks: the last round's parts, if there are any."""
        return self._round() if self._waiting else None

    def _round(self) -> list[list[Part[T]]] | None:
        self._blocks = 0
        each = sum(stop - start for _, start, stop in self._waiting) // self._n
        if not each:
            return None
        shares, rest = [], self._waiting
        for _ in range(self._n):
            share, rest = cut(rest, each)
            shares.append(share)
        self._waiting = rest
        return shares


def cut(parts: Sequence[Part[T]], rows: int) -> tuple[list[Part[T]], list[Part[T]]]:
    """The first `rows` rows of the parts, and the others."""
    first: list[Part[T]] = []
    for index, (block, start, stop) in enumerate(parts):
        if not rows:
            return first, list(parts[index:])
        if stop - start > rows:
            return [*first, (block, start, start + rows)], [
                (block, start + rows, stop),
                *parts[index + 1 :],
            ]
        first.append((block, start, stop))
        rows -= stop - start
    return first, []


def shares(blocks: Sequence[tuple[T, int]], n: int, *, equal: bool) -> list[list[Part[T]]]:
    """All parts of each of n readers, of blocks whose rows are known."""
    dealer: Dealer[T] = Dealer(n, equal=equal)
    dealt: list[list[Part[T]]] = [[] for _ in range(n)]
    for round_ in (*(dealer.add(block, rows) for block, rows in blocks), dealer.end()):
        for mine, parts in zip(dealt, round_ or (), strict=False):
            mine += parts
    return dealt


def runs(blocks: Sequence[tuple[T, int]], lengths: Iterable[int]) -> list[list[Part[T]]]:
    """The rows of the blocks, one after the other, in runs of these lengths."""
    rest: list[Part[T]] = [(block, 0, rows) for block, rows in blocks if rows]
    found = []
    for length in lengths:
        run, rest = cut(rest, length)
        found.append(run)
    return found


def even(rows: int, n: int) -> list[int]:
    """n lengths that differ by one at most and make up all rows."""
    return [rows // n + (index < rows % n) for index in range(n)]


def rechunked(blocks: Iterable[tuple[T, int]], rows: int) -> Iterator[list[Part[T]]]:
    """Runs of so many rows (the last one of fewer), as soon as their blocks are there."""
    waiting: list[Part[T]] = []
    held = 0
    for block, count in blocks:
        if count:
            waiting.append((block, 0, count))
            held += count
        while held >= rows:
            run, waiting = cut(waiting, rows)
            held -= rows
            yield run
    if waiting:
        yield waiting
