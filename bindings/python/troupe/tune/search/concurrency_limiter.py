"""A searcher that is asked only while few of its trials run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troupe.tune._search.told import suggestion_again
from troupe.tune.search._wrapping import WrappingSearcher
from troupe.tune.search.searcher import Searcher


class ConcurrencyLimiter(WrappingSearcher):
    """At most `max_concurrent` trials of `searcher` run at a time; with `batch` the next ones are
    suggested when all of these have ended.

    Fewer at a time mean more results to learn from for each suggestion. Raises TypeError or
    ValueError.

        TuneConfig(search_alg=ConcurrencyLimiter(OptunaSearch(), max_concurrent=4), num_samples=100)
    """

    def __init__(self, searcher: Searcher, max_concurrent: int, batch: bool = False) -> None:
        if not isinstance(searcher, Searcher):
            raise TypeError(
                f"ConcurrencyLimiter takes a Searcher, not {searcher!r}; BasicVariantGenerator has "
                "max_concurrent= of its own"
            )
        if (
            isinstance(max_concurrent, bool)
            or not isinstance(max_concurrent, int)
            or max_concurrent < 1
        ):
            raise ValueError(
                f"max_concurrent must be a whole number of at least 1, not {max_concurrent!r}"
            )
        super().__init__(searcher)
        self.max_concurrent, self.batch = max_concurrent, batch
        self._limits_itself = searcher.set_max_concurrency(max_concurrent)
        self._live: set[str] = set()
        self._ended: dict[
            str, tuple[dict[str, Any] | None, bool]
        ] = {}  # answers of an unfinished batch

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        if not self._limits_itself and len(self._live) >= self.max_concurrent:
            return None
        suggestion = self.searcher.suggest(trial_id)
        if suggestion is not None and suggestion != Searcher.FINISHED:
            self._live.add(trial_id)
        return suggestion

    def extra_of(self, trial_id: str) -> dict[str, Any]:
        return self.searcher.extra_of(trial_id)

    def on_trial_proposed(
        self, trial_id: str, config: Mapping[str, Any], extra: Mapping[str, Any]
    ) -> None:
        """As `suggest`, of a suggestion that was made before a restart."""
        suggestion_again(self.searcher, trial_id, config, extra)
        self._live.add(trial_id)

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        self.searcher.on_trial_result(trial_id, result)

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        if trial_id not in self._live:
            return
        self._ended[trial_id] = result, error
        if self.batch and not self._limits_itself and len(self._ended) < len(self._live):
            return
        self._pass_on()

    def _pass_on(self) -> None:
        for trial, (last, failed) in self._ended.items():
            self.searcher.on_trial_complete(trial, result=last, error=failed)
            self._live.discard(trial)
        self._ended = {}

    def flush(self) -> None:
        """Pass on the trials of the last batch that have ended."""
        self._pass_on()
        super().flush()

    def add_evaluated_point(
        self,
        parameters: dict[str, Any],
        value: float,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: list[float] | None = None,
    ) -> None:
        self.searcher.add_evaluated_point(parameters, value, error, pruned, intermediate_values)
