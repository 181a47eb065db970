"""Pure.

The barrier of `report()`: what the ranks of one attempt have reported, and when all have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from troupe import _pickled


@dataclass(frozen=True)
class TrainReport:
    """The report of one rank in `report()`.

    `metrics`: of rank 0 alone. `staged`: the folder in the staging one where it has written its
    part of a checkpoint; "": it has none.
    """

    metrics: Mapping[str, Any] | None
    staged: str
    dir_name: str | None = None


@dataclass(frozen=True)
class Round:
    """All ranks have reported for the `number`th time in this attempt.

    `parts`: what they have staged, by rank.
    """

    number: int
    metrics: Mapping[str, Any]
    parts: tuple[str, ...]
    dir_name: str | None


class Uneven(Exception):
    """A rank waits in a report that others will never make; `rank` is one of these."""

    def __init__(self, rank: int, text: str) -> None:
        super().__init__(text)
        self.rank = rank


class Barrier:
    """The ranks of one attempt.

    Each waits in its report until `reported` has given the round to the last of them.
    """

    def __init__(self, world_size: int) -> None:
        self._world_size = world_size
        self._number = 1
        self._waiting: dict[int, TrainReport] = {}
        self._returned: set[int] = set()

    def reported(self, rank: int, report: TrainReport) -> Round | None:
        """The round, once this was the last rank that it waited for.

        Raises Uneven where one has returned instead.
        """
        self._waiting[rank] = report
        self._check()
        if len(self._waiting) < self._world_size:
            return None
        parts = tuple(one.staged for _, one in sorted(self._waiting.items()) if one.staged)
        names = sorted({one.dir_name for one in self._waiting.values() if one.dir_name is not None})
        done = Round(
            self._number, dict(self._waiting[0].metrics or {}), parts, names[0] if names else None
        )
        self._waiting = {}
        self._number += 1
        return done

    def waits(self) -> str:
        """Return a sentence on which ranks wait for which; "" if none wait."""
        if not self._waiting:
            return ""
        missing = set(range(self._world_size)) - set(self._waiting)
        verb = "wait" if len(self._waiting) > 1 else "waits"
        return (
            f"{_ranks(self._waiting)} {verb} in report() number {self._number} of this attempt "
            f"for {_ranks(missing)}"
        )

    def returned(self, rank: int) -> bool:
        """The rank's loop is over.

        Whether all are. Raises Uneven where others wait for its report.
        """
        self._returned.add(rank)
        self._check()
        return len(self._returned) == self._world_size

    def _check(self) -> None:
        if self._waiting and self._returned:
            raise Uneven(
                min(self._returned),
                f"{_ranks(self._returned)} returned after {self._number - 1} calls of report() in "
                "this attempt, and "
                f"{_ranks(self._waiting)} called it once more: every rank has to call report() "
                "equally often",
            )


def _ranks(ranks: Iterable[int]) -> str:
    each = sorted(ranks)
    return f"rank{'s' if len(each) > 1 else ''} {', '.join(map(str, each))}"


_pickled.named_in("troupe._pickled", TrainReport)
