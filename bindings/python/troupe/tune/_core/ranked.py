"""Pure.

Scores in order, and where a new one stands among them, without looking at each.

`Ranked` is a sorted list: putting a score in moves what follows it in memory, 2 us at 10,000.
`IntervalRanks` has values that hold for stretches of time: each is in as many sorted lists as its
stretch has blocks of a power of two, and a time is in one block of each size.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator
from typing import Any


class Ranked:
    """Scores, ascending."""

    __slots__ = ("scores",)

    def __init__(self) -> None:
        self.scores: list[Any] = []

    def __len__(self) -> int:
        return len(self.scores)

    def add(self, score: object) -> None:
        """Add a score."""
        bisect.insort(self.scores, score)

    def remove(self, score: object) -> None:
        """Remove one such score. Raises ValueError if there is none."""
        place = bisect.bisect_left(self.scores, score)
        if place == len(self.scores) or self.scores[place] != score:
            raise ValueError(f"{score!r} is not among them")
        del self.scores[place]

    def above(self, score: object) -> int:
        """How many are greater."""
        return len(self.scores) - bisect.bisect_right(self.scores, score)

    def below(self, score: object) -> int:
        """How many are less."""
        return bisect.bisect_left(self.scores, score)

    def quantile(self, fraction: float) -> float | None:
        """The value below which that fraction of them lies, between two of them in proportion, as
        numpy's percentile; None of no scores.

        Towards an infinity there is no proportion: whatever lies between is that infinity.
        """
        if not self.scores:
            return None
        place = (len(self.scores) - 1) * fraction
        first = min(math.floor(place), len(self.scores) - 1)
        share = place - first
        low = self.scores[first]
        high = self.scores[min(first + 1, len(self.scores) - 1)]
        if share == 0 or low == high or low == -math.inf:
            found: float | None = low
            return found
        if high == math.inf:
            found = high
            return found
        # From the nearer end: the same rounding as numpy's, so that a score that stands exactly
        # there stands there for both.
        found = high - (high - low) * (1 - share) if share >= 0.5 else low + (high - low) * share
        return found


class IntervalRanks:
    """Values that hold at stretches of whole ticks, and where a value stands among those that hold
    at one tick."""

    __slots__ = ("_levels",)

    def __init__(self) -> None:
        self._levels: list[
            dict[int, list[float]]
        ] = []  # by the logarithm of a block's size: its number, and its values, ascending

    def add(self, first: int, last: int, value: float) -> None:
        """The value holds from the tick `first` to the tick `last`, both included; where last <
        first, nowhere."""
        # A single loop without calls: of a stretch of 10,000 ticks this is most of the cost of a
        # decision.
        levels, insort = self._levels, bisect.insort
        level, end = 0, last + 1
        while first < end:
            if level == len(levels):
                levels.append({})
            blocks = levels[level]
            if first & 1:
                if (scores := blocks.get(first)) is None:
                    blocks[first] = [value]
                else:
                    insort(scores, value)
                first += 1
            if end & 1:
                end -= 1
                if (scores := blocks.get(end)) is None:
                    blocks[end] = [value]
                else:
                    insort(scores, value)
            first, end, level = first >> 1, end >> 1, level + 1

    def remove(self, first: int, last: int, value: float) -> None:
        """Takes back what `add` was told. Raises ValueError where it was not."""
        for level, block in _blocks(first, last):
            scores = (
                self._levels[level][block]
                if level < len(self._levels) and block in self._levels[level]
                else []
            )
            place = bisect.bisect_left(scores, value)
            if place == len(scores) or scores[place] != value:
                raise ValueError(f"{value!r} does not hold from {first} to {last}")
            del scores[place]
            if not scores:
                del self._levels[level][block]

    def at(self, tick: int, value: float) -> tuple[int, bool, float]:
        """How many values hold at this tick, whether their median is above `value`, and a
        text-worthy estimate of it: the middle of those next to `value`, or the median itself where
        that is next to it."""
        count = above = 0
        lower, upper = -math.inf, math.inf  # the nearest that hold, at most `value` and above it
        for blocks in self._levels:
            if (scores := blocks.get(tick)) is not None:
                place, number = bisect.bisect_right(scores, value), len(scores)
                count += number
                above += number - place
                if place and scores[place - 1] > lower:
                    lower = scores[place - 1]
                if place < number and scores[place] < upper:
                    upper = scores[place]
            tick >>= 1
        if 2 * above != count or not count:
            return count, 2 * above > count, upper if 2 * above > count else lower
        middle = -math.inf if lower == -math.inf else lower + (upper - lower) / 2
        return count, middle > value, middle


def _blocks(first: int, last: int) -> Iterator[tuple[int, int]]:
    """The fewest blocks of a power of two that are the stretch: (logarithm of the size, number)."""
    size, end = 0, last + 1
    while first < end:
        if first & 1:
            yield size, first
            first += 1
        if end & 1:
            end -= 1
            yield size, end
        first, end, size = first >> 1, end >> 1, size + 1
