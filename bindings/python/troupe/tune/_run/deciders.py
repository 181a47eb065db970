"""Who decides: the scheduler and the searcher that a sweep was asked for."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from troupe.tune._config import TuneConfig
from troupe.tune._core.deciding import Action, Proposal, Report, Scheduler, Searcher


class FIFO(Scheduler):
    """Stops nothing."""

    def reported(self, report: Report) -> Sequence[Action]:
        return ()


class Same(Searcher):
    """One configuration, so many times."""

    def __init__(self, config: Mapping[str, Any], times: int | None) -> None:
        self._config, self._times, self._made = dict(config), times, 0

    def total(self) -> int | None:
        return self._times

    def propose(self, trial: str) -> Proposal | None:
        if self.finished():
            return None
        self._made += 1
        return Proposal(dict(self._config))

    def proposed(self, trial: str, proposal: Proposal) -> None:
        self._made += 1

    def finished(self) -> bool:
        return self._times is not None and self._made >= self._times


def of(tune: TuneConfig, space: Mapping[str, Any]) -> tuple[Scheduler, Searcher]:
    """Raises TypeError for what is neither."""
    scheduler = tune.scheduler or FIFO()
    if not isinstance(scheduler, Scheduler):
        raise TypeError(f"TuneConfig(scheduler={scheduler!r}): one of troupe.tune.schedulers")
    searcher = tune.search_alg or Same(space, None if tune.num_samples == -1 else tune.num_samples)
    if not isinstance(searcher, Searcher):
        raise TypeError(f"TuneConfig(search_alg={searcher!r}): one of troupe.tune.search")
    return scheduler, searcher
