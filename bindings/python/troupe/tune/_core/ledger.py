"""Pure.

A sweep as its journal's rows make it: applying a row is the only way in which anything of it
changes.

A live engine applies each row as it makes it; a resumed one applies those of the journal, and then
knows what the former one knew. With a row the scheduler, the searcher and the stop conditions get
the calls that go with it, both times the same. What they answer matters the first time alone, since
what came of it are rows too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from troupe.tune._core.deciding import Action, End, Proposal, Report, ReportError, Scheduler
from troupe.tune._core.events import Base, Failure, Row, TellSearcher
from troupe.tune._core.rules import Conditions, Rules
from troupe.tune._core.trial import Phase, Saved, Trial, time_of


@dataclass(frozen=True, slots=True)
class Came:
    """The result of a row: the scheduler's actions, whether a stop condition holds, for the trial
    or for all."""

    actions: Sequence[Action] = ()
    stops: bool = False
    stops_all: bool = False
    refused: str = ""
    """Why nobody can decide upon this report."""


NOTHING = Came()


class Ledger:
    """`told`: takes the searcher's calls, in their order."""

    def __init__(
        self,
        rules: Rules,
        scheduler: Scheduler,
        conditions: Conditions,
        told: Callable[[TellSearcher], None],
    ) -> None:
        self.rules, self.scheduler, self.conditions = rules, scheduler, conditions
        self._told = told
        self.trials: dict[str, Trial] = {}
        self.epoch = 0
        self.pins: dict[tuple[str, str], int] = {}
        """(trial, checkpoint) -> how many trials of others go on from it."""
        self.unpinned: list[str] = []
        """Trials that had a checkpoint pinned, and have it no more; whoever looks at them takes
        them out."""
        self.waiting: dict[str, None] = {}
        """Trials that wait for a place, in their order."""
        self.paused: dict[str, None] = {}
        self.running: dict[str, None] = {}
        self._in_phase = {
            Phase.WAITING: self.waiting,
            Phase.PAUSED: self.paused,
            Phase.RUNNING: self.running,
        }
        self.proposed = 0
        self.metric_seen = False
        self.metric_missing = 0
        self.exhausted = False
        """Whether the searcher will propose no more."""
        self.seconds = 0.0
        """Of all engines before this one."""
        self.over = ""
        self.held = False
        """Whether nothing is started, as a person wants it."""

    def apply(self, row: Row) -> Came:
        """Makes the row's change. Raises what the scheduler's or a condition's own code raises."""
        found: Came | None = getattr(self, f"_on_{row['kind']}")(row)
        return found or NOTHING

    def _on_begin(self, row: Row) -> None:
        self.epoch = row["epoch"]
        self.over = ""

    def _on_trial(self, row: Row) -> None:
        trial = Trial(row["trial"], row["config"], row["shape"])
        self.trials[trial.id] = trial
        self.waiting[trial.id] = None
        if row.get("instead"):
            self._replace(self.trials[row["instead"]], trial, row["goes_on"])
        else:
            self.proposed += 1
        self.scheduler.added(trial.id, trial.config)
        self._told(TellSearcher("proposed", (trial.id, Proposal(trial.config, row["extra"]))))

    def _on_hold(self, row: Row) -> None:
        self.held = row["held"]

    def _on_exhausted(self, row: Row) -> None:
        self.exhausted = True

    def _on_start(self, row: Row) -> None:
        trial = self.trials[row["trial"]]
        self._move(trial, Phase.RUNNING)
        trial.attempt, trial.sequence, trial.why, trial.where = (
            row["attempt"],
            0,
            "",
            row.get("where", {}),
        )
        if trial.again:
            trial.again = False
            self.scheduler.resumed(trial.id, trial.config)

    def _on_report(self, row: Row) -> Came:
        trial = self.trials[row["trial"]]
        metrics = row["metrics"]
        trial.sequence, trial.number = row["sequence"], row["number"]
        trial.seconds, trial.fruitless = time_of(metrics), 0
        report = Report(
            trial.id,
            trial.number,
            metrics,
            self.rules.score(metrics),
            bool(row["checkpoint"]),
            row["can_add"],
        )
        trial.last = report
        self.metric_seen = True
        if row["checkpoint"]:
            trial.checkpoints = max(trial.checkpoints, row["begun"])
            trial.kept.append(Saved(row["checkpoint"], row["begun"], metrics, trial.number))
            self._rest_on(trial, Base(trial.id, row["checkpoint"], trial.number))
        self._told(TellSearcher("reported", (report,)))
        try:
            stops, stops_all = self.conditions.stops(trial.id, metrics), self.conditions.stops_all()
            return Came(self.scheduler.reported(report), stops, stops_all)
        except ReportError as error:
            return Came(refused=str(error))

    def _on_drop(self, row: Row) -> None:
        trial = self.trials[row["trial"]]
        trial.kept = [one for one in trial.kept if one.name != row["checkpoint"]]

    def _on_pause(self, row: Row) -> None:
        trial = self.trials[row["trial"]]
        self._move(trial, Phase.PAUSED)
        trial.why = row["why"]
        self._go_back(trial)

    def _on_want(self, row: Row) -> None:
        """A paused trial is wanted again."""
        trial = self.trials[row["trial"]]
        self._move(trial, Phase.WAITING)
        trial.again = True

    def _on_exploit(self, row: Row) -> None:
        trial, donor = self.trials[row["trial"]], self.trials[row["donor"]]
        self._move(trial, Phase.PAUSED)
        trial.config, trial.why = row["config"], row["why"]
        trial.number = row["number"]
        trial.seconds = time_of(
            next(one.metrics for one in donor.kept if one.name == row["checkpoint"])
        )
        self._rest_on(trial, Base(donor.id, row["checkpoint"], row["number"]))

    def _on_fail(self, row: Row) -> Came:
        """An attempt has failed, and there will be another one."""
        trial = self.trials[row["trial"]]
        trial.failures += bool(row["counts"])
        trial.fruitless += 1
        self._move(trial, Phase.WAITING)
        self._go_back(trial)
        return Came(stops_all=self.conditions.stops_all())

    def _on_interrupt(self, row: Row) -> None:
        """An attempt has ended with its engine, which is no failure."""
        trial = self.trials[row["trial"]]
        self._move(trial, Phase.WAITING)
        self._go_back(trial)

    def _on_end(self, row: Row) -> Came:
        trial = self.trials[row["trial"]]
        self._move(trial, Phase.ENDED)
        trial.end, trial.why, trial.again = End(row["end"]), row["why"], False
        if row.get("error"):
            error = row["error"]
            trial.failure = Failure(
                error["kind"],
                error["text"],
                pickled=error.get("pickled", ""),
                raised=error.get("raised"),
            )
            self.metric_missing += row["error"]["kind"] == MISSING
        self._rest_on(trial, None)
        actions = self.scheduler.ended(trial.id, trial.end)
        self._told(TellSearcher("ended", (trial.id, trial.end, trial.last)))
        return Came(actions, stops_all=self.conditions.stops_all())

    def _on_stalled(self, row: Row) -> Came:
        return Came(self.scheduler.stalled())

    def _on_leave(self, row: Row) -> None:
        """The engine ends here; `over`: for good, and why."""
        self.seconds += row["seconds"]
        self.over = row["over"]

    def _move(self, trial: Trial, phase: Phase) -> None:
        if trial.phase in self._in_phase:
            del self._in_phase[trial.phase][trial.id]
        trial.phase = phase
        if phase in self._in_phase:
            self._in_phase[phase][trial.id] = None

    def _go_back(self, trial: Trial) -> None:
        """Drop the trial's reports after its base."""
        number = trial.base.number if trial.base is not None else 0
        if trial.number == number:
            return
        trial.number, trial.seconds, trial.last = number, trial.seconds_of_base, trial.last_of_base
        self.scheduler.went_back(trial.id, number)

    def _replace(self, failed: Trial, trial: Trial, goes_on: bool) -> None:
        """The trial is tried in place of one that failed; from the latest checkpoint of that, or
        from the beginning."""
        failed.replaced_by = trial.id
        if goes_on and failed.kept:
            latest = failed.kept[-1]
            trial.number, trial.seconds = latest.number, time_of(latest.metrics)
            self._rest_on(trial, Base(failed.id, latest.name, latest.number))

    def _rest_on(self, trial: Trial, base: Base | None) -> None:
        """Set the base of the trial's next attempt; a checkpoint of another trial is pinned as long
        as it is the base (G6)."""
        was, trial.base = trial.base, base
        trial.seconds_of_base, trial.last_of_base = trial.seconds, trial.last
        if was is not None and was.trial != trial.id:
            pin = (was.trial, was.checkpoint)
            self.pins[pin] -= 1
            if not self.pins[pin]:
                del self.pins[pin]
                self.unpinned.append(was.trial)
        if base is not None and base.trial != trial.id:
            pin = (base.trial, base.checkpoint)
            self.pins[pin] = self.pins.get(pin, 0) + 1

    def needed(self, trial: Trial, checkpoint: str) -> bool:
        """Return True if a checkpoint must stay whatever its score: another trial continues from
        it, or this one would."""
        own = (
            trial.base is not None
            and trial.base.trial == trial.id
            and trial.base.checkpoint == checkpoint
        )
        return own or (trial.id, checkpoint) in self.pins


MISSING = "MetricMissing"
"""The kind of failure of a trial that does not report the sweep's metric."""


def trial_row(trial: str, proposal: Proposal, shape: str) -> Row:
    """A new trial."""
    return {
        "kind": "trial",
        "trial": trial,
        "config": dict(proposal.config),
        "extra": dict(proposal.extra),
        "shape": shape,
    }


def instead_row(trial: str, failed: Trial, *, goes_on: bool) -> Row:
    """A new trial, in place of one that failed."""
    return {
        "kind": "trial",
        "trial": trial,
        "config": dict(failed.config),
        "extra": {},
        "shape": failed.shape,
        "instead": failed.id,
        "goes_on": goes_on,
    }


def report_row(
    trial: Trial, sequence: int, metrics: Mapping[str, Any], checkpoint: str, *, can_add: bool
) -> Row:
    """The next report of a trial."""
    return {
        "kind": "report",
        "trial": trial.id,
        "attempt": trial.attempt,
        "sequence": sequence,
        "number": trial.number + 1,
        "metrics": metrics,
        "checkpoint": checkpoint,
        "can_add": can_add,
        "begun": trial.checkpoints + 1 if checkpoint else trial.checkpoints,
    }


def end_row(trial: str, end: End, why: str, failure: Failure | None = None) -> Row:
    """A trial's end, which is written once (G2)."""
    row: Row = {"kind": "end", "trial": trial, "end": end.value, "why": why}
    if failure is not None:
        row["error"] = {"kind": failure.kind, "text": failure.text, "raised": failure.raised}
    return row
