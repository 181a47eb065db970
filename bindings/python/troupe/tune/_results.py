"""Results of a sweep: a Result for each trial, and the best of them."""

from __future__ import annotations

import datetime
import importlib
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from troupe import _pickled, exceptions
from troupe.train import _retention
from troupe.train._checkpoint import Checkpoint
from troupe.tune._core.deciding import Mode
from troupe.tune._core.rules import lookup, names_of

if TYPE_CHECKING:
    import pandas as pd

SCOPES = ("last", "all", "avg", "last-5-avg", "last-10-avg")


@dataclass
class Result:
    """The result of one trial.

    `metrics`: of its last report that counts, with what every report has; {} without one. `config`:
    its configuration. `checkpoint`: its latest. `error`: what it failed of, None where it did not.
    `path`: its folder, which is there if something was written there. `best_checkpoints`: those
    that are kept, in their order, each with its metrics.
    """

    metrics: dict[str, Any]
    config: Mapping[str, Any]
    checkpoint: Checkpoint | None
    error: Exception | None
    path: str
    best_checkpoints: list[tuple[Checkpoint, Mapping[str, Any]]] = field(default_factory=list)
    trial_id: str = ""
    stopped: str = ""
    """Why it was stopped early; "": it was not."""

    @property
    def metrics_history(self) -> list[dict[str, Any]]:
        """The metrics of all its reports that count, in their order, from the sweep's journal."""
        from troupe.tune._journal import history

        return [each for _, each in history.reports(Path(self.path).parent, self.trial_id)]

    @property
    def metrics_dataframe(self) -> pd.DataFrame:
        """The history as a DataFrame of pandas, configuration and all.

        Raises ImportError where pandas is not installed.
        """
        config = {f"config/{name}": value for name, value in flat(self.config)}
        return _pandas("metrics_dataframe").DataFrame(
            [{**dict(flat(each)), **config} for each in self.metrics_history]
        )

    @property
    def filesystem(self) -> None:
        """None: the path is one of the machine's."""
        return None

    def get_best_checkpoint(self, metric: str, mode: str) -> Checkpoint | None:
        """Return the stored checkpoint with the largest (`mode="max"`) or smallest ("min") number
        under that key; None if none has one."""
        _check_mode("get_best_checkpoint", mode)
        kept = [
            _retention.Kept(checkpoint.path, number, metrics)
            for number, (checkpoint, metrics) in enumerate(self.best_checkpoints)
        ]
        best = _retention.best_first(
            [one for one in kept if _retention.value_of(one.metrics, metric) is not None],
            metric,
            mode,
        )
        return Checkpoint(best[0].name) if best else None


class ResultGrid:
    """The trials of a sweep in the order in which they were made: `len(grid)`, `grid[0]`, `for
    result in grid`.

    `experiment_path`: the sweep's folder.

        best = grid.get_best_result("loss", "min")
        best.config, best.metrics["loss"], best.checkpoint
    """

    def __init__(
        self, results: list[Result], path: str, metric: str | None = None, mode: str | None = None
    ) -> None:
        self._results, self.experiment_path = results, path
        self._metric, self._mode = metric, mode

    def __len__(self) -> int:
        return len(self._results)

    def __getitem__(self, index: int) -> Result:
        return self._results[index]

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results)

    def __repr__(self) -> str:
        return (
            f"ResultGrid({len(self)} trials, {self.num_errors} failed, in {self.experiment_path})"
        )

    @property
    def errors(self) -> list[Exception]:
        """The errors of all failed trials."""
        return [each.error for each in self._results if each.error is not None]

    @property
    def num_errors(self) -> int:
        """How many trials failed."""
        return len(self.errors)

    @property
    def num_terminated(self) -> int:
        """How many ended otherwise: by themselves, or stopped."""
        return len(self) - self.num_errors

    @property
    def filesystem(self) -> None:
        """None: the path is one of the machine's."""
        return None

    def get_best_result(
        self,
        metric: str | None = None,
        mode: str | None = None,
        scope: str = "last",
        filter_nan_and_inf: bool = True,
    ) -> Result:
        """The trial with the largest (`mode="max"`) or smallest ("min") value of the metric; both
        are TuneConfig's unless given.

        `scope`: "last" report of each trial, best of "all", mean ("avg"), mean of the last reports
        ("last-5-avg", "last-10-avg"). `filter_nan_and_inf`: trials whose value is NaN or infinite
        are left out. Raises ValueError where nothing is to be compared, RuntimeError where no trial
        has the metric.
        """
        metric, mode = metric or self._metric, mode or self._mode
        if not metric or not mode:
            raise ValueError(
                "get_best_result(): which metric? TuneConfig(metric=..., mode=...) says it, or "
                "get_best_result(metric, mode)"
            )
        _check_mode("get_best_result", mode)
        if scope not in SCOPES:
            raise ValueError(
                f"get_best_result(scope={scope!r}): one of {', '.join(map(repr, SCOPES))}"
            )
        values = self._values(metric, mode, scope)
        score = Mode(mode).score
        known = {
            place: value
            for place, value in values.items()
            if not filter_nan_and_inf or math.isfinite(value)
        }
        if not known:
            there = sorted({name for each in self._results for name in names_of(each.metrics)})
            raise RuntimeError(
                f"no trial of {len(self)} has a number under {metric!r}; reported were: "
                f"{', '.join(there) or 'nothing'}"
                + (f"; {self.num_errors} trials failed: `grid.errors`" if self.num_errors else "")
            )
        return self._results[max(known, key=lambda place: score(known[place]))]

    def _values(self, metric: str, mode: str, scope: str) -> dict[int, float]:
        """Place in the grid -> what is compared, of the trials that have one."""
        if scope == "last":
            found = {
                place: lookup(each.metrics, metric) for place, each in enumerate(self._results)
            }
            return {
                place: float(value)
                for place, value in found.items()
                if isinstance(value, (int, float))
            }
        from troupe.tune._journal import history

        by_trial = history.values(Path(self.experiment_path), metric)
        chosen = {}
        for place, each in enumerate(self._results):
            reported = by_trial.get(each.trial_id)
            if reported:
                last = (
                    reported[-int(scope.split("-")[1]) :] if scope.startswith("last-") else reported
                )
                chosen[place] = (
                    (max if mode == "max" else min)(last)
                    if scope == "all"
                    else sum(last) / len(last)
                )
        return chosen

    def plot(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        metric: str | None = None,
        mode: str | None = None,
        kinds: Sequence[str] = ("history", "parallel", "importance"),
        format: str = "png",
    ) -> dict[str, Any]:
        """Pictures by Optuna's matplotlib functions: how the best came, which parameters go with
        it, which of them matter; needs no display.

        The figures by their names; with `folder` they are written there, `history.png` and so on.
        What there is not enough of is left out with a warning. Raises ImportError without Optuna
        and matplotlib (`pip install 'troupe[tune]'`), ValueError where no trial has a number.

            grid.plot("pictures", format="svg")
        """
        metric, mode = metric or self._metric, mode or self._mode
        if not metric or not mode:
            raise ValueError(
                "plot(): of which metric? TuneConfig(metric=..., mode=...) says it, or "
                "plot(metric=..., mode=...)"
            )
        from troupe.tune._run.folder import tuner_of
        from troupe.tune._search import plots
        from troupe.tune._search.optuna_storage import TrialRecord

        records = [
            TrialRecord(
                each.trial_id,
                each.config,
                "failed" if each.error is not None else "stopped" if each.stopped else "completed",
                values=[value]
                if isinstance(value := lookup(each.metrics, metric), (int, float))
                else None,
            )
            for each in self._results
        ]
        path = Path(self.experiment_path)
        made: dict[str, Any] = plots.figures(
            records, tuner_of(path)["space"], metric, mode, name=path.name, kinds=kinds
        )
        if folder is not None:
            plots.written(made, folder, format)
        return made

    def get_dataframe(
        self, filter_metric: str | None = None, filter_mode: str | None = None
    ) -> pd.DataFrame:
        """A row for each trial with its last report, or with `filter_metric` and `filter_mode` its
        best one, and its configuration: a DataFrame of pandas.

        Raises ImportError where pandas is not installed.
        """
        rows = []
        for each in self._results:
            metrics = each.metrics
            if filter_metric is not None:
                _check_mode("get_dataframe", filter_mode)
                scored = [
                    one
                    for one in each.metrics_history
                    if isinstance(lookup(one, filter_metric), (int, float))
                ]
                metrics = max(
                    scored,
                    key=lambda one: Mode(filter_mode).score(lookup(one, filter_metric)),
                    default=metrics,
                )
            rows.append(
                {
                    **dict(
                        flat({name: value for name, value in metrics.items() if name != "config"})
                    ),
                    "trial_id": each.trial_id,
                    "logdir": each.path,
                    **{f"config/{name}": value for name, value in flat(each.config)},
                }
            )
        return _pandas("get_dataframe()").DataFrame(rows)


def shown(
    metrics: Mapping[str, Any],
    *,
    trial: str,
    config: Mapping[str, Any],
    where: Mapping[str, Any],
    done: bool,
) -> dict[str, Any]:
    """Metrics of a report with what every report has, as people read them."""
    stamp = metrics.get("timestamp")
    date = (
        datetime.datetime.fromtimestamp(stamp).strftime("%Y-%m-%d_%H-%M-%S")
        if isinstance(stamp, (int, float))
        else None
    )
    return {
        **metrics,
        "date": date,
        "trial_id": trial,
        "hostname": where.get("hostname"),
        "node_ip": where.get("node_ip"),
        "pid": where.get("pid"),
        "done": done,
        "config": dict(config),
    }


def flat(metrics: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all items, those inside dicts as "a/b"."""
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}/")
        else:
            yield f"{prefix}{name}", value


def _check_mode(what: str, mode: Any) -> None:
    if mode not in ("max", "min"):
        raise ValueError(f"{what}(mode={mode!r}): 'max' or 'min'")


def _pandas(what: str) -> Any:
    try:
        return importlib.import_module("pandas")
    except ImportError as error:
        raise exceptions.MissingPackageError(
            f"{what} needs pandas (pip install pandas); Result.metrics and metrics_history have "
            "the same as dicts"
        ) from error


_pickled.named_in("troupe.tune", Result, ResultGrid)
