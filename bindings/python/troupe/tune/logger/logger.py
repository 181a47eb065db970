"""Parts shared by loggers: their base class, values in the form of JSON, and the limit on open
files."""

from __future__ import annotations

import json
import numbers
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from troupe.tune._callback import Callback, TrialView

OPEN_MAX = 64
"""Of trials whose files one logger holds open: of thousands that pause, those written to last."""


class LoggerCallback(Callback):
    """A callback that writes down trials: override `log_trial_start`, `log_trial_result`,
    `log_trial_end`. As Ray's `ray.tune.logger.LoggerCallback`.

    It is called on a thread that no trial waits for; what it raises ends nothing, and is said once.
    `trial.local_path` is the trial's folder, which `trial.init_local_path()` makes.

        class Prints(LoggerCallback):
            def log_trial_result(self, iteration, trial, result):
                print(trial, result["acc"])
    """

    def log_trial_start(self, trial: TrialView) -> None:
        """A trial runs for the first time, or again."""

    def log_trial_restore(self, trial: TrialView) -> None:
        """A trial goes on from a checkpoint."""

    def log_trial_save(self, trial: TrialView) -> None:
        """A checkpoint of a trial is kept."""

    def log_trial_result(self, iteration: int, trial: TrialView, result: dict[str, Any]) -> None:
        """A trial has reported. `iteration`: the number of the report among all of the sweep's."""

    def log_trial_end(self, trial: TrialView, failed: bool = False) -> None:
        """A trial is over."""

    def on_trial_start(
        self, iteration: int, trials: Sequence[TrialView], trial: TrialView, **info: object
    ) -> None:
        """See Callback."""
        self.log_trial_start(trial)

    def on_trial_restore(
        self, iteration: int, trials: Sequence[TrialView], trial: TrialView, **info: object
    ) -> None:
        """See Callback."""
        self.log_trial_restore(trial)

    def on_trial_save(
        self, iteration: int, trials: Sequence[TrialView], trial: TrialView, **info: object
    ) -> None:
        """See Callback."""
        self.log_trial_save(trial)

    def on_trial_result(
        self,
        iteration: int,
        trials: Sequence[TrialView],
        trial: TrialView,
        result: dict[str, Any],
        **info: object,
    ) -> None:
        """See Callback."""
        self.log_trial_result(iteration, trial, result)

    def on_trial_complete(
        self, iteration: int, trials: Sequence[TrialView], trial: TrialView, **info: object
    ) -> None:
        """See Callback."""
        self.log_trial_end(trial, failed=False)

    def on_trial_error(
        self, iteration: int, trials: Sequence[TrialView], trial: TrialView, **info: object
    ) -> None:
        """See Callback."""
        self.log_trial_end(trial, failed=True)


class Closes(Protocol):
    """An object that can be closed."""

    def close(self) -> None:
        """Close it; it is not written to until it is opened again."""


T = TypeVar("T", bound=Closes)


class OpenFiles(Generic[T]):
    """A cache of open files by trial: at most `most` at once; the least recently used one is closed
    for the next. `opens`: opens a trial's file to append to it."""

    def __init__(self, opens: Callable[[TrialView], T], most: int = OPEN_MAX) -> None:
        self._opens, self._most = opens, most
        self._open: OrderedDict[TrialView, T] = OrderedDict()

    def of(self, trial: TrialView) -> T:
        """Raises OSError where it cannot be opened."""
        found = self._open.get(trial)
        if found is None:
            if len(self._open) >= self._most:
                self._open.popitem(last=False)[1].close()
            found = self._open[trial] = self._opens(trial)
        self._open.move_to_end(trial)
        return found

    def close(self, trial: TrialView) -> None:
        """The trial's, if it is open."""
        if (found := self._open.pop(trial, None)) is not None:
            found.close()

    def close_all(self) -> None:
        """The sweep is over."""
        while self._open:
            self._open.popitem()[1].close()


def by_depth(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the items, those inside dicts as "a/b" after those that are not: Ray's order."""
    found: dict[str, Any] = {}
    level: list[tuple[str, Mapping[str, Any]]] = [("", values)]
    while level:
        inner: list[tuple[str, Mapping[str, Any]]] = []
        for prefix, held in level:
            for name, value in held.items():
                if isinstance(value, Mapping):
                    inner.append((f"{prefix}{name}/", value))
                else:
                    found[f"{prefix}{name}"] = value
        level = inner
    return found


class AsJson(json.JSONEncoder):
    """Arrays as lists, numbers of numpy as numbers, what JSON has no word for as text: Ray's
    `SafeFallbackEncoder`."""

    def default(self, o: Any) -> Any:
        """See JSONEncoder."""
        try:
            if hasattr(o, "tolist"):
                return o.tolist()
            if isinstance(o, numbers.Integral):
                return int(o)
            if isinstance(o, numbers.Number):
                return float(o)  # type: ignore[arg-type]
            return str(o)
        except Exception:  # raised by user code
            return f"<{type(o).__name__}>"


def pretty_print(result: dict[str, Any], exclude: set[str] | None = None) -> str:
    """A report as YAML, without its configuration, and without what is None or named in `exclude`.

    As Ray's `ray.tune.logger.pretty_print`.

    print(pretty_print(grid[0].metrics))
    """
    import yaml

    kept = {
        name: value
        for name, value in result.items()
        if name not in ("config", "hist_stats", *(exclude or ())) and value is not None
    }
    return str(yaml.safe_dump(json.loads(json.dumps(kept, cls=AsJson)), default_flow_style=False))
