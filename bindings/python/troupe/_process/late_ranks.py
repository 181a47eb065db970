"""Ranks that have not come to a collective that others wait in, derived from each rank's answer.

Pure.

Ranks count the operations of a group that they have begun, all in the same order, so whoever has
begun fewer is late (L1). A rank that says nothing while all were asked is late too: it is stopped,
or in code that keeps Python's lock (L2). Where all have begun the same one, nobody is (L3). How
long one may wait before that is looked at: three times what usually lies between two operations, 10
s at least; 60 s while fewer than ten are known (L4).

Whom a rank that has waited for `hang_timeout` accuses (docs/guides/recovery.md): those that say
nothing; where all speak, of those that wait in no collective themselves and have stood still for as
long, the ones that have begun the fewest operations (L5). A rank that waits itself is another's
victim.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LEAST_S, UNKNOWN_S, KNOWN_MIN = 10.0, 60.0, 10
_KEPT = 64


@dataclass(frozen=True)
class Answer:
    """A rank's answer: how many operations of the group it has begun, whether it waits in the last
    one, where it runs and is."""

    begun: int
    waits: bool
    host: str = ""
    pid: int = 0
    where: str = ""
    still_s: float = 0.0  # so long it has begun nothing


def late(answers: Sequence[Answer | None]) -> list[int]:
    """The ranks of the group that others wait for, by their answers; None: it gave none."""
    most = max((each.begun for each in answers if each is not None and each.waits), default=0)
    return (
        [rank for rank, each in enumerate(answers) if each is None or each.begun < most]
        if most
        else []
    )


def accused(answers: Sequence[Answer | None], begun: int, least_still_s: float) -> list[int]:
    """The ranks of the group that keep the one waiting that has begun so many operations, by their
    answers (L5)."""
    silent = [rank for rank, each in enumerate(answers) if each is None]
    if silent:
        return silent
    busy = {
        rank: each.begun
        for rank, each in enumerate(answers)
        if each is not None
        and each.begun < begun
        and not each.waits
        and each.still_s >= least_still_s
    }
    return [rank for rank, count in busy.items() if count == min(busy.values())]


def there(answers: Sequence[Answer | None], begun: int) -> list[int]:
    """The ranks of the group that have come to that operation."""
    return [rank for rank, each in enumerate(answers) if each is not None and each.begun >= begun]


def told(
    answers: Sequence[Answer | None],
    ranks: Sequence[int],
    group: str,
    waited_s: float,
    name_of: Mapping[int, int],
    hang_s: float = 0.0,
) -> str:
    """The warning about these late ranks.

    `name_of`: a rank of the group -> its rank in the launch; `hang_s`: the launch's hang_timeout,
    0: none.
    """
    most = max(each.begun for each in answers if each is not None and each.waits)
    those = [
        name_of[rank]
        for rank, each in enumerate(answers)
        if each is not None and each.waits and each.begun == most
    ]
    one = len(ranks) == 1
    lines = [
        f"{'rank' if one else 'ranks'} {listed([name_of[rank] for rank in ranks])} "
        f"{'has' if one else 'have'} not come to operation {most} of process group "
        f"{group}, in which {'rank' if len(those) == 1 else 'ranks'} {listed(those)} "
        f"{'waits' if len(those) == 1 else 'wait'}, for {waited_s:.0f} s by now. "
        + (
            f"Who keeps others waiting for {hang_s:g} s is ended (hang_timeout)"
            if hang_s
            else "Nothing is ended because of that"
        )
    ]
    for rank in ranks[:_SHOWN_MAX]:
        lines.append(_of_one(name_of[rank], answers[rank]))
    if len(ranks) > _SHOWN_MAX:
        lines.append(f"and {len(ranks) - _SHOWN_MAX} more")
    return "\n".join(lines)


_SHOWN_MAX = 4


def _of_one(rank: int, answer: Answer | None) -> str:
    if answer is None:
        return (
            f"rank {rank} says nothing: it is stopped, or in code that keeps Python's lock; "
            "`troupe stack` shows where"
        )
    where = f"rank {rank} (host {answer.host}, pid {answer.pid}) "
    if answer.waits:
        where += (
            f"waits in operation {answer.begun} itself, perhaps because the ranks' programs "
            "differ; it is here:"
        )
    else:
        where += f"has begun {answer.begun} operations, and is here:"
    return f"{where}\n{answer.where.rstrip()}"


def listed(ranks: Sequence[int]) -> str:
    """1, 2 and 5; of many the first ones and how many."""
    if len(ranks) > 8:
        return f"{', '.join(map(str, ranks[:8]))} and {len(ranks) - 8} more"
    return " and ".join(filter(None, [", ".join(map(str, ranks[:-1])), str(ranks[-1])]))


class Pace:
    """How far apart a group's operations usually are, of the last 64, as far as looks a second
    apart tell."""

    def __init__(self) -> None:
        self._gaps: deque[float] = deque(maxlen=_KEPT)

    def add(self, count: int, seconds: float) -> None:
        """So many operations were begun in that time."""
        self._gaps.extend([seconds / count] * min(count, _KEPT))

    def patience_s(self) -> float:
        """L4."""
        if len(self._gaps) < KNOWN_MIN:
            return UNKNOWN_S
        return max(LEAST_S, 3 * sorted(self._gaps)[len(self._gaps) // 2])
