"""The base class of users' searchers, by Ray's interface."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

from troupe.tune._core.deciding import Where
from troupe.tune._core.objective import mode_of
from troupe.tune._search.domains import seed_of


class Searcher:
    """Base of searchers of one's own: `suggest` and `on_trial_complete` are what it must have.

    For `TuneConfig(search_alg=...)`.

    Asked by a thread of its own, one call at a time, so it may take long. After a restart of the
    sweep it is told the same again: `suggest` for each trial that there was, and all results; one
    that draws should have a seed, and draw the same. One that can be told of a suggestion without
    making it has `on_trial_proposed`. `metric` and `mode` may be lists. Raises TypeError or
    ValueError.

        class Halves(Searcher):
            def __init__(self): super().__init__(); self.lr = 1.0
            def suggest(self, trial_id): self.lr /= 2; return {"lr": self.lr}
            def on_trial_complete(self, trial_id, result=None, error=False): pass
    """

    FINISHED = "FINISHED"
    """What `suggest` returns when there is nothing more to suggest."""
    where = Where.THREAD

    def __init__(
        self, metric: str | list[str] | None = None, mode: str | list[str] | None = None
    ) -> None:
        modes = (
            list(mode) if isinstance(mode, (list, tuple)) else [mode] if mode is not None else []
        )
        if (
            metric is not None
            and mode is not None
            and (
                isinstance(metric, str) != isinstance(mode, str)
                or not isinstance(metric, str)
                and len(metric) != len(modes)
            )
        ):
            raise ValueError(
                "metric and mode must be two texts, or two lists of the same length, not "
                f"{metric!r} and {mode!r}"
            )
        for each in modes:
            mode_of(type(self).__name__, each)
        self._metric, self._mode = metric, mode
        self.seed_of_the_rest = seed_of(
            None
            # Values drawn beside its suggestions, kept with them so that a resumed sweep draws the
            # same
        )

    @property
    def metric(self) -> str | list[str] | None:
        """The metric that is optimized; None if it has not been set."""
        return self._metric

    @property
    def mode(self) -> str | list[str] | None:
        """The direction of optimization, "max" or "min"."""
        return self._mode

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: Mapping[str, Any], **spec: Any
    ) -> bool:
        """The sweep's objective and its `param_space`, before all other calls.

        False: the searcher has a space of its own, so `param_space` may hold constants alone, which
        each configuration gets too.
        """
        return False

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        """The parameters of a trial.

        None: not now, ask again when another trial has ended. FINISHED: never more.
        """
        raise NotImplementedError(f"{type(self).__name__} has no suggest(trial_id)")

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """A report of a trial; it may lack the metric, or have NaN."""

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """A trial is over.

        `result`: its last report, if there is one, with `done` False where it was stopped early.
        `error`: it failed.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no on_trial_complete(trial_id, result, error)"
        )

    def flush(self) -> None:
        """Work on what was held back, since the sweep makes no more calls.

        Of wrapping searchers: passes on the trials of an incomplete batch.
        """

    def set_max_concurrency(self, max_concurrent: int) -> bool:
        """So many trials run at most. True: the searcher sees to that itself."""
        return False

    def add_evaluated_point(
        self,
        parameters: dict[str, Any],
        value: float,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: list[float] | None = None,
    ) -> None:
        """The result of a point that was tried elsewhere.

        Raises NotImplementedError where the searcher cannot use it.
        """
        raise NotImplementedError(
            f"{type(self).__name__} cannot be told of points that were tried elsewhere"
        )

    def extra_of(self, trial_id: str) -> dict[str, Any]:
        """Return the JSON data to store with a suggestion just made, for `on_trial_proposed`."""
        return {}

    def save(self, checkpoint_path: str) -> None:
        """Writes its state to a file, by which another of its kind goes on.

        Sweeps need it not: they have a journal.
        """
        with open(checkpoint_path, "wb") as file:
            pickle.dump(self.get_state(), file)

    def restore(self, checkpoint_path: str) -> None:
        """Reads what `save` has written.

        The file is a pickle: read none of which you do not know who wrote it.
        """
        with open(checkpoint_path, "rb") as file:
            self.set_state(pickle.load(file))

    def get_state(self) -> dict[str, Any]:
        """All that makes its next suggestion."""
        return dict(self.__dict__)

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes on from that."""
        self.__dict__.update(state)
