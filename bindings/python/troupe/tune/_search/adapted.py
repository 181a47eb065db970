"""Pure.

A searcher of Ray's interface as the engine asks it: its suggestions, completed by what
`param_space` says of the rest.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from troupe.tune._core.deciding import End, Proposal, Report, Searcher
from troupe.tune._search import space_tree
from troupe.tune._search.domains import Domain, Function, grid_values
from troupe.tune._search.told import suggestion_again


class Adapted(Searcher):
    """`search`: what the user gave as `search_alg`; `num_samples` -1: it is asked until it has
        nothing more.

    A configuration is `param_space` with the suggestion in its place. What the searcher does not
    suggest is drawn: functions of the rest, and domains that it does not know. Raises TypeError or
    ValueError for a space that the searcher cannot have.
    """

    def __init__(
        self,
        search: Any,
        space: Mapping[str, Any],
        num_samples: int,
        metric: str | None,
        mode: str | None,
    ) -> None:
        space_tree.check(space)
        if (
            isinstance(num_samples, bool)
            or not isinstance(num_samples, int)
            or num_samples < 1
            and num_samples != -1
        ):
            raise ValueError(
                "num_samples must be a whole number of at least 1, or -1 for no end, not "
                f"{num_samples!r}"
            )
        name = type(search).__name__
        for path, value in space_tree.leaves(space):
            if grid_values(value) is not None:
                raise ValueError(
                    f"param_space: {space_tree.named(path)} is a grid, and {name} suggests one "
                    "configuration at a time: make it a "
                    "tune.choice, or leave search_alg out"
                )
        if not search.set_search_properties(metric, mode, space):
            left = [
                space_tree.named(path)
                for path, value in space_tree.leaves(space)
                if isinstance(value, Domain) and not isinstance(value, Function)
            ]
            if left:
                raise ValueError(
                    f"{name} has a space of its own, and param_space says what {', '.join(left)} "
                    "may be: say it in one of the two"
                )
        self.where = search.where
        self._search, self._space, self._samples = search, space, num_samples
        self._seed = getattr(search, "seed_of_the_rest", 0)
        self._count = 0
        self._finished = False
        self._own: set[str] = set()  # trials that are not over

    def total(self) -> int | None:
        return None if self._samples == -1 else self._samples

    def finished(self) -> bool:
        return self._finished or 0 <= self._samples <= self._count

    def propose(self, trial: str) -> Proposal | None:
        if self.finished():
            return None
        suggestion = self._search.suggest(trial)
        if isinstance(suggestion, str) and suggestion == "FINISHED":
            self._finished = True
            return None
        if suggestion is None:
            return None
        if not isinstance(suggestion, Mapping):
            raise TypeError(
                f"{type(self._search).__name__}.suggest({trial!r}) must return a dict of "
                f"parameters, FINISHED or None, not {suggestion!r}"
            )
        config, _ = space_tree.draw(
            _with(self._space, suggestion), random.Random((self._seed << 64) + self._count)
        )
        extra = {"search": self._count, **self._search.extra_of(trial)}
        self._count += 1
        self._own.add(trial)
        return Proposal(config, extra)

    def proposed(self, trial: str, proposal: Proposal) -> None:
        if "search" not in proposal.extra:
            return  # a person's: nothing that the searcher has to do with
        suggestion_again(self._search, trial, proposal.config, proposal.extra)
        self._count = proposal.extra["search"] + 1
        self._own.add(trial)

    def reported(self, report: Report) -> None:
        if report.trial in self._own:
            self._search.on_trial_result(report.trial, dict(report.metrics))

    def ended(self, trial: str, end: End, last: Report | None) -> None:
        if trial in self._own:
            self._own.discard(trial)
            result = None if last is None else {**last.metrics, "done": end is End.COMPLETED}
            self._search.on_trial_complete(trial, result=result, error=end is End.FAILED)

    def over(self) -> None:
        self._search.flush()


def _with(space: Any, suggestion: Any) -> Any:
    """The space with what is suggested in its place; dicts of both are joined."""
    if isinstance(space, Mapping) and isinstance(suggestion, Mapping):
        return {
            **space,
            **{
                key: _with(space[key], value) if key in space else value
                for key, value in suggestion.items()
            },
        }
    return suggestion
