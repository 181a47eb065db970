"""The deciders of a sweep: its scheduler, its searcher, and the objective that these and the
sweep's configuration give."""

from __future__ import annotations

import copy
import dataclasses
import datetime
from collections.abc import Mapping
from typing import Any

from troupe.tune._config import TuneConfig
from troupe.tune._core.deciding import Mode, Scheduler, Searcher
from troupe.tune._core.objective import objective
from troupe.tune._core.rules import Conditions


@dataclasses.dataclass(frozen=True)
class Deciders:
    """The deciders of one `fit`, made from its configuration: the knowledge of earlier ones is in
    the journal."""

    scheduler: Scheduler
    searcher: Searcher
    metric: str | None
    mode: Mode
    samples: int | None
    conditions: Conditions
    time_s: float | None


def complete(tune: TuneConfig) -> TuneConfig:
    """The configuration with what it leaves to be drawn, so that whoever goes on with the sweep
    finds the same."""
    from troupe.tune.search.basic_variant import BasicVariantGenerator

    found = copy.copy(tune)
    found.search_alg = tune.search_alg if tune.search_alg is not None else BasicVariantGenerator()
    return found


def _searcher(
    search: Any, space: Mapping[str, Any], samples: int, metric: str | None, mode: Mode | None
) -> Searcher:
    """Return the searcher for a value of `search_alg`."""
    from troupe.tune.search.basic_variant import BasicVariantGenerator
    from troupe.tune.search.searcher import Searcher as OwnSearcher

    if isinstance(search, Searcher):
        return search
    if isinstance(search, BasicVariantGenerator):
        return search.searcher(space, samples)
    if isinstance(search, OwnSearcher):
        from troupe.tune._search.adapted import Adapted

        return Adapted(search, space, samples, metric, None if mode is None else mode.value)
    raise TypeError(f"TuneConfig(search_alg={search!r}): a Searcher, or one of troupe.tune.search")


def of(tune: TuneConfig, space: Mapping[str, Any], stop: Any) -> Deciders:
    """Raises TypeError for what cannot decide, ValueError for a space, a metric or a mode that are
    none, or that do not agree."""
    from troupe.tune import stopper as stoppers
    from troupe.tune.schedulers.trial_scheduler import FIFOScheduler

    stop = copy.deepcopy(stop)
    tune = copy.deepcopy(tune)
    scheduler = tune.scheduler if tune.scheduler is not None else FIFOScheduler()
    if not isinstance(scheduler, Scheduler):
        raise TypeError(
            f"TuneConfig(scheduler={scheduler!r}): one of troupe.tune.schedulers, "
            "tune.schedulers.ASHAScheduler() for one"
        )
    search = tune.search_alg
    metric, mode = objective(
        [
            ("TuneConfig", tune.metric, tune.mode),
            (type(scheduler).__name__, scheduler.metric, scheduler.mode),
            (type(search).__name__, getattr(search, "metric", None), getattr(search, "mode", None)),
        ]
    )
    if metric is None and not isinstance(scheduler, FIFOScheduler):
        raise ValueError(
            f"{type(scheduler).__name__} compares trials: TuneConfig(metric=..., mode=...) says by "
            "what"
        )
    if metric is not None:
        scheduler.begin(metric, mode or Mode.MAX)
    stopper = stoppers.made(stop)
    searcher = _searcher(search, scheduler.completed(space), tune.num_samples, metric, mode)
    samples = None if tune.num_samples == -1 or searcher.total() is not None else tune.num_samples
    budget = tune.time_budget_s
    assert not isinstance(budget, datetime.timedelta), "TuneConfig has made seconds of it"
    times = [each for each in (budget, stoppers.timeout_s(stopper)) if each is not None]
    conditions = (
        Conditions()
        if stop is None
        else Conditions(
            lambda trial, metrics: bool(stopper(trial, dict(metrics))),
            lambda: bool(stopper.stop_all()),
        )
    )
    return Deciders(
        scheduler, searcher, metric, mode or Mode.MAX, samples, conditions, min(times, default=None)
    )
