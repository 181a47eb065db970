"""Population based training (Jaderberg et al., arXiv 1711.09846): trials that do badly go on from
those that do well, a little changed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from troupe.tune._core.deciding import (
    WORST,
    Action,
    Choice,
    End,
    Exploit,
    Mode,
    Pause,
    Report,
    ReportError,
    Resume,
    Scheduler,
)
from troupe.tune._core.explore import Explorer, completed
from troupe.tune._core.ranked import Ranked
from troupe.tune._search.domains import seed_of
from troupe.tune.schedulers import _said
from troupe.tune.schedulers.pbt_replay import PopulationBasedTrainingReplay

__all__ = ["PopulationBasedTraining", "PopulationBasedTrainingReplay"]


@dataclass(slots=True)
class _Member:
    """A trial that is not over.

    `standing`: its score where it is ranked. `copyable`: number and progress of the report of that
    score, if others can go on from it. `saved`: score, number and progress of its latest report
    with a checkpoint, since it exploited last. `has_saved`: whether there ever was one;
    `unsaved_since`: its progress when it was ready first, and there was none. `trained`: its
    progress when it was last ready, or the donor's.
    """

    order: int
    config: Mapping[str, Any]
    standing: float | None = None
    copyable: tuple[int, float] | None = None
    saved: tuple[float, int, float] | None = None
    has_saved: bool = False
    trained: float = 0.0
    perturbed: float = 0.0
    unsaved_since: float | None = None
    paused: tuple[float, int, str] | None = None


class PopulationBasedTraining(Scheduler):
    """Every `perturbation_interval` of its progress a trial is compared: one of the worst
    `quantile_fraction` takes checkpoint and configuration of one of the best, drawn, and then
    explores.

    `hyperparam_mutations`: of each parameter a list (it moves to a neighbour), a domain or a
    function without arguments (numbers are multiplied by one of `perturbation_factors`; within the
    domain's bounds), or a dict of these; with `resample_probability` it is drawn anew. Those that
    `param_space` has not are drawn by them at first. `custom_explore_fn(config)` returns a
    configuration. Progress is `time_attr`: "training_iteration" makes the same decisions on a
    machine that is busy, wall time does not. Trials must report checkpoints; a trial ranks by its
    latest report with one, which is what others copy. More trials than slots take turns, those with
    the least progress first. `synch=True`: all wait for each other at each interval. A metric that
    is None or NaN is worse than all others. Raises TypeError or ValueError.

        PopulationBasedTraining(
            time_attr="training_iteration", perturbation_interval=5, metric="acc", mode="max",
            hyperparam_mutations={"lr": tune.loguniform(1e-4, 1e-1), "batch": [32, 64, 128]})
    """

    needs_checkpoints = True

    def __init__(
        self,
        time_attr: str = "time_total_s",
        metric: str | None = None,
        mode: str | None = None,
        perturbation_interval: float = 60.0,
        burn_in_period: float = 0.0,
        hyperparam_mutations: Mapping[str, Any] | None = None,
        quantile_fraction: float = 0.25,
        resample_probability: float = 0.25,
        perturbation_factors: Sequence[float] = (1.2, 0.8),
        custom_explore_fn: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
        log_config: bool = True,
        require_attrs: bool = True,
        synch: bool = False,
        *,
        seed: int | None = None,
    ) -> None:
        name = "PopulationBasedTraining"
        _said.objective(name, time_attr, metric, mode)
        _said.number(f"{name}: perturbation_interval", perturbation_interval, above=0)
        _said.number(f"{name}: burn_in_period", burn_in_period, least=0)
        _said.number(f"{name}: quantile_fraction", quantile_fraction, least=0, most=0.5)
        _said.number(f"{name}: resample_probability", resample_probability, least=0, most=1)
        if not perturbation_factors:
            raise ValueError(f"{name}: perturbation_factors is empty")
        for factor in perturbation_factors:
            _said.number(f"{name}: perturbation_factors", factor)
        if hyperparam_mutations is not None and not isinstance(hyperparam_mutations, Mapping):
            raise TypeError(
                f"{name}: hyperparam_mutations must be a dict, not {hyperparam_mutations!r}"
            )
        if not hyperparam_mutations and custom_explore_fn is None:
            raise ValueError(
                f"{name}: say what changes, by hyperparam_mutations= or custom_explore_fn="
            )
        self.metric, self.mode = metric, mode
        self.log_config = log_config
        self._time_attr, self._interval, self._burn_in = (
            time_attr,
            perturbation_interval,
            burn_in_period,
        )
        self._mutations = dict(hyperparam_mutations or {})
        self._quantile, self._require, self._synch = quantile_fraction, require_attrs, synch
        self._explorer = Explorer(
            self._mutations, resample_probability, tuple(perturbation_factors), custom_explore_fn
        )
        self._generator = random.Random(seed_of(seed))
        self._next_sync = max(perturbation_interval, burn_in_period)
        self._population = _Population()
        self._negated = False

    def begin(self, metric: str, mode: Mode) -> None:
        self.metric, self._negated = metric, mode is Mode.MIN

    def completed(self, space: Mapping[str, Any]) -> Mapping[str, Any]:
        return completed(space, self._mutations)

    def added(self, trial: str, config: Mapping[str, Any]) -> None:
        self._population.add(trial, config)

    def reported(self, report: Report) -> Sequence[Action]:
        time = _said.progress("PopulationBasedTraining", self._time_attr, report)
        if time is None:
            if self._require:
                raise ReportError(
                    f"PopulationBasedTraining asks for {self._time_attr!r} (time_attr) in every "
                    f"report, and report {report.number} of "
                    f"{report.trial} has none; with require_attrs=False such a report is passed "
                    "over"
                )
            return ()
        member = self._population.members[report.trial]
        is_ready = time >= self._burn_in and time - member.perturbed >= self._interval
        if report.checkpoint:
            member.saved, member.has_saved = (report.score, report.number, time), True
            if member.standing is not None:
                self._population.rank_by_checkpoint(report.trial)
        if not is_ready:
            return ()
        if member.saved is not None:
            self._population.rank_by_checkpoint(report.trial)
        else:
            self._population.rank(report.trial, report.score, None)
            self._check_saves(member, report, time)
        if self._synch and not report.checkpoint:
            # The trial continues to its next checkpoint: a pause here would lose the work since the
            # last one, again and again
            return ()
        self._population.train(report.trial, time)
        return self._together(report) if self._synch else self._alone(report, time)

    def _check_saves(self, member: _Member, report: Report, time: float) -> None:
        """Raises ReportError where a trial comes to be compared again, an interval later, and has
        never reported a checkpoint."""
        if member.unsaved_since is None:
            member.unsaved_since = time
        elif not member.has_saved and time - member.unsaved_since >= self._interval:
            raise ReportError(
                f"PopulationBasedTraining copies checkpoints, and {report.trial} has reported none "
                f"in {report.number} reports: "
                "report(metrics, checkpoint=...) at least every perturbation_interval, here "
                f"{self._interval:g} {self._time_attr}"
            )

    def _alone(self, report: Report, time: float) -> Sequence[Action]:
        trial, member = report.trial, self._population.members[report.trial]
        member.perturbed = time
        if (
            self._population.is_low(trial, self._quantile)
            and (exploit := self._exploit(trial)) is not None
        ):
            return (exploit,)
        first = self._population.least_trained()
        if report.checkpoint and (report.can_add or first is not None and first[1] < time):
            self._population.pause(trial)
            return (Pause(trial, f"others have come less far than {self._time_attr} {time:g}"),)
        return ()

    def _together(self, report: Report) -> Sequence[Action]:
        trial = report.trial
        self._population.pause(trial)
        pause = Pause(trial, f"it waits until all are at {self._time_attr} {self._next_sync:g}")
        if report.can_add or self._population.least_progress() < self._next_sync:
            return (pause,)
        exploits = self._all_at_once(self._population.members[trial].trained)
        return (
            exploits if any(exploit.trial == trial for exploit in exploits) else (pause, *exploits)
        )

    def _all_at_once(self, time: float) -> list[Exploit]:
        """All are there: the worst go on from the best, and the next time is set."""
        members = self._population.members
        lower = [trial for trial in members if self._population.is_low(trial, self._quantile)]
        for member in members.values():
            member.perturbed = time
        exploits = [exploit for trial in lower if (exploit := self._exploit(trial)) is not None]
        progress = [member.trained for member in members.values()]
        self._next_sync = max(self._next_sync + self._interval, *progress)
        while self._next_sync <= min(progress):
            self._next_sync += self._interval
        return exploits

    def _exploit(self, trial: str) -> Exploit | None:
        """Return the trial and checkpoint to continue from, or None where none of the best has
        reported a checkpoint."""
        population = self._population
        member, mine = population.members[trial], population.members[trial].standing
        upper = population.best(self._quantile)
        first = self._generator.randrange(len(upper)) if upper else 0
        for step in range(len(upper)):
            donor = upper[(first + step) % len(upper)]
            other = population.members[donor]
            if (
                other.copyable is None
                or other.standing is None
                or other.standing == WORST
                or mine is None
                or other.standing <= mine
            ):
                continue
            config, changes = self._explorer.explored(other.config, self._generator)
            why = (
                f"its {self.metric} is {_said.shown(mine, self._negated)} and {donor}'s "
                f"{_said.shown(other.standing, self._negated)}; "
                f"{changes}"
            )
            number, time = other.copyable
            member.copyable, member.saved, member.config = None, None, config
            member.perturbed = other.perturbed
            population.train(trial, time)
            population.pause(trial)
            return Exploit(trial, donor, number, config, why)
        return None

    def ended(self, trial: str, end: End) -> Sequence[Action]:
        self._population.remove(trial)
        return ()

    def went_back(self, trial: str, number: int) -> None:
        self._population.went_back(trial, number)

    def resumed(self, trial: str, config: Mapping[str, Any]) -> None:
        self._population.run(trial)
        self._population.members[trial].config = config

    def choose(self, can_add: bool) -> Resume | Choice:
        first = self._population.least_trained()
        if can_add or first is None:
            return super().choose(can_add)
        trial, trained = first
        if self._synch and trained >= self._next_sync:
            return Choice.WAIT
        return Resume(
            trial, f"none that waits has come less far than {self._time_attr} {trained:g}"
        )

    def stalled(self) -> Sequence[Action]:
        members = self._population.members
        if not self._synch or not members:
            return ()
        return self._all_at_once(max(member.trained for member in members.values()))


class _Population:
    """All trials that are not over, in the order of their scores, and those that are paused in the
    order of their progress."""

    def __init__(self) -> None:
        self.members: dict[str, _Member] = {}
        self._ranked = Ranked()
        self._progress = Ranked()
        self._paused = Ranked()
        self._count = 0

    def add(self, trial: str, config: Mapping[str, Any]) -> None:
        self.members[trial] = _Member(self._count, config)
        self._progress.add((0.0, self._count))
        self._count += 1

    def remove(self, trial: str) -> None:
        if trial in self.members:
            self.run(trial)
            self._unrank(trial)
            member = self.members.pop(trial)
            self._progress.remove((member.trained, member.order))

    def train(self, trial: str, time: float) -> None:
        """Set the progress of a trial."""
        member = self.members[trial]
        self._progress.remove((member.trained, member.order))
        member.trained = time
        self._progress.add((time, member.order))

    def least_progress(self) -> float:
        """Return the least progress of all members."""
        found: float = self._progress.scores[0][0]
        return found

    def rank(self, trial: str, score: float, copyable: tuple[int, float] | None) -> None:
        """Set the trial's score, with the report that others can copy."""
        self._unrank(trial)
        member = self.members[trial]
        member.standing, member.copyable = score, copyable
        self._ranked.add((score, member.order, trial))

    def rank_by_checkpoint(self, trial: str) -> None:
        """Set the trial's score to that of its latest report with a checkpoint, which others can
        copy."""
        saved = self.members[trial].saved
        assert saved is not None
        self.rank(trial, saved[0], saved[1:])

    def _unrank(self, trial: str) -> None:
        member = self.members[trial]
        if member.standing is not None:
            self._ranked.remove((member.standing, member.order, trial))
            member.standing = member.copyable = None

    def _quantile(self, fraction: float) -> int:
        """How many are in the lower and in the upper one: as many, and none in both."""
        return min(math.ceil(len(self._ranked) * fraction), len(self._ranked) // 2)

    def is_low(self, trial: str, fraction: float) -> bool:
        """Return True if the trial is one of the worst."""
        member = self.members[trial]
        return member.standing is not None and self._ranked.below(
            (member.standing, member.order, trial)
        ) < self._quantile(fraction)

    def best(self, fraction: float) -> list[str]:
        """Return the trials of the upper quantile."""
        return [
            trial
            for *_, trial in self._ranked.scores[len(self._ranked) - self._quantile(fraction) :]
        ]

    def went_back(self, trial: str, number: int) -> None:
        """Drop the trial's reports after `number`."""
        member = self.members[trial]
        if member.saved is not None and member.saved[1] > number:
            member.saved = None
        if member.copyable is None or member.copyable[0] > number:
            self._unrank(trial)

    def pause(self, trial: str) -> None:
        """Let a trial wait for a slot, from its current progress; a trial that waits already is
        moved."""
        self.run(trial)
        member = self.members[trial]
        member.paused = (member.trained, member.order, trial)
        self._paused.add(member.paused)

    def run(self, trial: str) -> None:
        """Note that a trial does not wait any more."""
        member = self.members[trial]
        if member.paused is not None:
            self._paused.remove(member.paused)
            member.paused = None

    def least_trained(self) -> tuple[str, float] | None:
        """Return the paused trial with the least training, and its progress."""
        return (self._paused.scores[0][2], self._paused.scores[0][0]) if self._paused else None
