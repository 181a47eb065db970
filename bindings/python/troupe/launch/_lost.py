"""The entry of a launch's results for a rank that died and that the launch went on without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from troupe import _pickled


@dataclass(frozen=True)
class RankLost:
    """The place of a rank that died, in the results of a launch with `on_rank_death="shrink"` that
    succeeded without it.

    `rank` is the launch's; `exit_code` is 128 and the signal for one that was killed.
    """

    rank: int
    host: str
    cause: str
    exit_code: int


def of_info(each: dict[str, Any]) -> RankLost | None:
    """Return the RankLost of a RankInfo of a launch that succeeded; None if the rank returned a
    value."""
    return (
        RankLost(each["rank"], each["node_name"] or each["host"], each["cause"], each["exit_code"])
        if each["outcome"] == "failed"
        else None
    )


_pickled.named_in("troupe.train", RankLost)
