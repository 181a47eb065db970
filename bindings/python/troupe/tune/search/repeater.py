"""A searcher whose suggestions are tried several times, and that learns from the averages."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from troupe.tune._search.told import suggestion_again
from troupe.tune.search._wrapping import WrappingSearcher
from troupe.tune.search.searcher import Searcher

TRIAL_INDEX = "__trial_index__"
"""The parameter that says which of the repeats a trial is, from 0; for seeds."""


@dataclass(slots=True)
class _Group:
    first: str
    config: dict[str, Any]
    trials: dict[str, float | None] = field(default_factory=dict)


class Repeater(WrappingSearcher):
    """Each suggestion of `searcher` is tried by `repeat` trials; the searcher is told the average
    of their last results, without those that are none.

    `num_samples` counts trials, repeats too. `set_index`: each configuration has `__trial_index__`,
    0 to repeat - 1. A scheduler that stops trials early makes the averages mean little. Raises
    TypeError or ValueError.

        TuneConfig(search_alg=Repeater(OptunaSearch(), repeat=3), num_samples=30)  # 10 suggestions
    """

    def __init__(self, searcher: Searcher, repeat: int = 1, set_index: bool = True) -> None:
        if not isinstance(searcher, Searcher):
            raise TypeError(
                f"Repeater takes a Searcher, not {searcher!r}; with a grid, num_samples= repeats it"
            )
        if isinstance(repeat, bool) or not isinstance(repeat, int) or repeat < 1:
            raise ValueError(f"repeat must be a whole number of at least 1, not {repeat!r}")
        if isinstance(searcher.metric, (list, tuple)):
            raise TypeError(
                f"Repeater averages one metric, and {type(searcher).__name__} has "
                f"{searcher.metric!r}"
            )
        super().__init__(searcher)
        self.repeat = repeat
        self._set_index = set_index
        self._current: _Group | None = None
        self._groups: dict[str, _Group] = {}  # groups of unfinished trials

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        if self._current is None or len(self._current.trials) == self.repeat:
            config = self.searcher.suggest(trial_id)
            if config is None or not isinstance(config, Mapping):
                return config
            self._current = _Group(trial_id, dict(config))
        self._groups[trial_id] = self._current
        self._current.trials[trial_id] = None
        made = copy.deepcopy(self._current.config)
        return {**made, TRIAL_INDEX: len(self._current.trials) - 1} if self._set_index else made

    def extra_of(self, trial_id: str) -> dict[str, Any]:
        group = self._groups[trial_id]
        return {
            **(self.searcher.extra_of(trial_id) if group.first == trial_id else {}),
            "repeats": group.first,
        }

    def on_trial_proposed(
        self, trial_id: str, config: Mapping[str, Any], extra: Mapping[str, Any]
    ) -> None:
        """As `suggest`, of a suggestion that was made before a restart."""
        own = {name: value for name, value in config.items() if name != TRIAL_INDEX}
        if extra.get("repeats", trial_id) == trial_id:
            suggestion_again(self.searcher, trial_id, own, extra)
            self._current = _Group(trial_id, own)
        if self._current is not None:
            self._groups[trial_id] = self._current
            self._current.trials[trial_id] = None

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        group = self._groups.pop(trial_id, None)
        if group is None:
            return
        score = (result or {}).get(self.metric)
        group.trials[trial_id] = float(score) if isinstance(score, (int, float)) else math.nan
        if len(group.trials) == self.repeat and None not in group.trials.values():
            self._pass_on(group)

    def _pass_on(self, group: _Group) -> None:
        scores = group.trials.values()
        known = [each for each in scores if each is not None and not math.isnan(each)]
        mean = {self.metric: math.fsum(known) / len(known)} if known else None
        self.searcher.on_trial_complete(group.first, result=mean, error=not known)

    def flush(self) -> None:
        """Pass on the averages of groups that are not complete, of those of their trials that have
        ended."""
        for group in {
            id(each): each for each in [self._current, *self._groups.values()] if each is not None
        }.values():
            missing = len(group.trials) < self.repeat or None in group.trials.values()
            if missing and any(score is not None for score in group.trials.values()):
                self._pass_on(group)
        super().flush()
