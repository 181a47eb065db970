"""Pure.

The engine of a sweep: what each event means for its trials.

G1 A report is (trial, attempt, sequence), counted once. After a retry, what was reported beyond the
checkpoint that it goes on from counts no more. G2 A trial has one end, written once; whoever hears
of it does so after it is in the journal. G3 Whenever the engine ends, one that goes on from the
journal ends the sweep with as many trials, none lost and none twice. G4 A row of the journal begins
each engine's epoch; trials of an older epoch are in no table of this one. G5 A report and its
checkpoint are one row.
G6 A checkpoint from which a trial would go on stays, whoever's it is; one is dropped by a row, and
deleted after that. G7 A report is answered with the decision, once that is in the journal. Where
the trial only goes on, and no checkpoint is in it, the answer need not
   wait for that: were the row lost with the engine, so would be the trial's process, and the next
   engine knows of neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from troupe.train import _failures, _retention
from troupe.tune._core import events as ev
from troupe.tune._core.deciding import (
    Action,
    End,
    Exploit,
    Pause,
    Resume,
    Scheduler,
    Stop,
)
from troupe.tune._core.demand import Demand
from troupe.tune._core.ledger import (
    MISSING,
    Came,
    Ledger,
    end_row,
    instead_row,
    report_row,
    trial_row,
)
from troupe.tune._core.places import Place, Places, State
from troupe.tune._core.rules import Conditions, Rules
from troupe.tune._core.trial import Phase, Trial, filled

DURABLE = frozenset({"begin", "end", "want", "exploit", "pause", "fail", "hold", "leave"})
"""Kinds of rows that a power loss must not take; so is a report with a checkpoint."""
ALL_ALIKE = 3
"""After so many trials without the sweep's metric, and none with it, all others are taken to be
like them."""
STOPS_ALL = "the stop condition of the sweep holds"
LOST_IN_A_ROW_MAX = 5


@dataclass(slots=True)
class Decided:
    """Rows for the journal, all or none; then the effects, in their order.

    `durable`: whether the rows must survive a power loss.
    """

    rows: list[ev.Row] = field(default_factory=list)
    durable: bool = False
    effects: list[ev.Effect] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Halt:
    """The sweep ends here; a resumable one's trials go on when it is resumed. The rest: `Done`."""

    why: str
    resumable: bool
    error: str = ""
    unplaceable: bool = False


class SweepCore:
    """`name_of`: the id of the trial with that number, from 0.

    One call of `handle` at a time; none takes time that grows with the trials.
    """

    def __init__(
        self,
        rules: Rules,
        scheduler: Scheduler,
        conditions: Conditions | None = None,
        *,
        name_of: Callable[[int], str],
        uniform_shape: str | None = "",
    ) -> None:
        self.rules = rules
        self.ledger = Ledger(rules, scheduler, conditions or Conditions(), self._tell_searcher)
        self.places = Places()
        self._decided = Decided()
        self.demand = Demand(rules, self.ledger, self.places, name_of, uniform_shape)
        self._halt: Halt | None = None
        self._now = self._began = 0.0
        self._replaying = False
        self._lost = 0
        self._done = False

    def replay(self, rows: Iterable[ev.Row]) -> list[ev.TellSearcher]:
        """Takes over what the journal has, before anything is handled; the calls that make the
        searcher know it too."""
        self._replaying = True
        for row in rows:
            self.ledger.apply(row)
        self._replaying = False
        told = [each for each in self._take().effects if isinstance(each, ev.TellSearcher)]
        self.ledger.unpinned.clear()
        return told

    def handle(self, event: ev.Event, now: float) -> Decided:
        """Apply an event and return the resulting effects.

        `now`: of one clock that does not go back. Raises what the scheduler's or a stop condition's
        own code raises.
        """
        self._now = now
        if not self._done:
            getattr(self, f"_on_{type(event).__name__.lower()}")(event)
            self._settle()
        return self._take()

    def deadline(self) -> float | None:
        """When a Tick is to come, if nothing else does before; None: never."""
        times = [self.places.deadline()]
        if self.rules.time_budget_s is not None and self._halt is None:
            times.append(self._began + self.rules.time_budget_s - self.ledger.seconds)
        if self._halt is None and self.ledger.waiting:
            times += [
                at
                for name in self.ledger.waiting
                if (at := self.ledger.trials[name].retry_at) > self._now
            ]
        return min((each for each in times if each is not None), default=None)

    # Handlers of events.

    def _on_begun(self, event: ev.Begun) -> None:
        self._began = self._now
        over = self.ledger.over
        self._record(
            {
                "kind": "begin",
                "epoch": event.epoch,
                "host": event.host,
                "pid": event.pid,
                "wall": event.wall,
            }
        )
        for name in list(self.ledger.running):
            self._record({"kind": "interrupt", "trial": name})
        if event.lets_go:
            self._on_holdasked(ev.HoldAsked(False))
        if not event.unfinished:
            self._end_unstarted("its sweep was resumed without its unfinished trials")
        if event.errored:
            for trial in [
                each
                for each in self.ledger.trials.values()
                if each.end is End.FAILED and not each.replaced_by
            ]:
                self._record(
                    instead_row(self.demand.free_name(), trial, goes_on=event.errored == "resume")
                )
        if over and not self.ledger.waiting:
            self._halt = Halt(over, False)

    def _on_proposed(self, event: ev.Proposed) -> None:
        asked = self.demand.asked.pop(event.trial, None)
        if event.proposal is None:
            self.demand.on_nothing_proposed(asked)
        elif self._halt is None:
            self._record(trial_row(event.trial, event.proposal, event.shape))
            self._tell("added", event.trial)
        if event.finished and not self.ledger.exhausted:
            self._record({"kind": "exhausted"})

    def _on_granted(self, event: ev.Granted) -> None:
        self._lost = 0
        place = self.places.get(event.place)
        if place is not None and place.state is State.ASKED:
            self.places.granted(place, event.where)

    def _on_placelost(self, event: ev.PlaceLost) -> None:
        place = self.places.get(event.place)
        if place is None or place.state not in (State.ASKED, State.IDLE):
            return
        self.places.give_up(place)
        self._lost += 1
        if event.fatal or self._lost >= LOST_IN_A_ROW_MAX:
            self._stop_all(Halt("no place for a trial", True, event.why, event.fatal))

    def _on_reported(self, event: ev.Reported) -> None:
        trial = self.ledger.trials.get(event.trial)
        if trial is None or trial.phase is not Phase.RUNNING or trial.attempt != event.attempt:
            why = (
                trial.why
                if trial is not None and trial.why
                else self._halt.why
                if self._halt is not None
                else "this attempt is over"
            )
            self._leave(event.trial, event.attempt, why)
            return
        if event.sequence <= trial.sequence:  # already counted, and the decision holds
            self._effect(ev.Answer(event.trial, event.attempt, at_once=True))
            return
        if missing := self.rules.missing(event.metrics):
            self._failed(trial, ev.Failure(MISSING, missing, final=True))
            self._leave(trial.id, event.attempt, missing)
            return
        came = self._record(
            report_row(
                trial,
                event.sequence,
                filled(trial, event.metrics, event.elapsed_s),
                event.checkpoint,
                can_add=self.demand.can_add(),
            )
        )
        self.demand.on_told()
        self._tell("result", trial.id)
        if came.refused:
            self._failed(trial, ev.Failure("ReportError", came.refused, final=True))
        elif came.stops:
            self._end(trial, End.COMPLETED, "its stop condition holds")
        self._act(came.actions)
        self._retain(trial)
        if trial.phase is Phase.RUNNING:
            self._effect(ev.Answer(trial.id, event.attempt, at_once=not event.checkpoint))
        else:
            self._leave(trial.id, event.attempt, trial.why or trial.phase.value)
        if came.stops_all:
            self._stop_all(Halt(STOPS_ALL, False))

    def _on_exited(self, event: ev.Exited) -> None:
        trial, place = (
            self.ledger.trials.get(event.trial),
            self.places.of(event.trial, event.attempt),
        )
        if place is None or trial is None:
            return
        if self.rules.reuse and event.clean and self._halt is None:
            self.places.vacate(place)
        else:
            self._give_up(place)
        if trial.phase is not Phase.RUNNING or trial.attempt != event.attempt:
            return
        if event.failure is None and (silent := self.rules.silent(trial.last is not None)):
            self._failed(trial, ev.Failure(MISSING, silent, final=True))
        elif event.failure is None:
            self._end(trial, End.COMPLETED, "its function returned")
        else:
            self._failed(trial, event.failure)

    def _on_tick(self, event: ev.Tick) -> None:
        budget = self.rules.time_budget_s
        if (
            budget is not None
            and self._halt is None
            and self._now - self._began + self.ledger.seconds >= budget
        ):
            self._stop_all(Halt(f"time_budget_s={budget:g} is over", False))

    def _on_holdasked(self, event: ev.HoldAsked) -> None:
        if event.held != self.ledger.held:
            self._record({"kind": "hold", "held": event.held})

    def _on_stopasked(self, event: ev.StopAsked) -> None:
        self._stop_all(Halt(event.why, event.resumable))

    # Changes to trials.

    def _act(self, actions: Iterable[Action]) -> None:
        for action in actions:
            trial = self.ledger.trials[action.trial]
            if trial.phase is Phase.ENDED:
                continue
            if isinstance(action, Stop):
                self._end(trial, End.STOPPED, action.why)
            elif isinstance(action, Exploit) and trial.phase in (Phase.RUNNING, Phase.PAUSED):
                self._exploit(trial, action)
            elif isinstance(action, Pause) and trial.phase is Phase.RUNNING:
                self._pause(trial, action.why)
            else:
                raise ValueError(
                    f"{self.rules.scheduler_name} asks for {action!r}, but trial {trial.id} is "
                    f"{trial.phase.value}"
                )

    def _pause(self, trial: Trial, why: str) -> None:
        if self.ledger.scheduler.needs_checkpoints and trial.base is None:
            text = (
                f"{self.rules.scheduler_name} pauses trials and goes on from their checkpoints, "
                f"and trial {trial.id} has reported none: "
                "report(..., checkpoint=Checkpoint.from_directory(folder))"
            )
            self._end(
                trial,
                End.FAILED,
                "paused without a checkpoint",
                ev.Failure("NoCheckpoint", text, final=True),
            )
            self._halt = self._halt or Halt("trials without checkpoints", True, text)
            return
        self._record({"kind": "pause", "trial": trial.id, "why": why})
        self._tell("paused", trial.id, why)

    def _exploit(self, trial: Trial, action: Exploit) -> None:
        donor = self.ledger.trials[action.donor]
        found = [one.name for one in donor.kept if one.number == action.donor_report]
        if not found:
            raise ValueError(
                f"{self.rules.scheduler_name} wants trial {trial.id} to go on from report "
                f"{action.donor_report} of {donor.id}, of which "
                "there is no checkpoint; there are those of "
                f"{', '.join(str(one.number) for one in donor.kept) or 'none'}"
            )
        self._record(
            {
                "kind": "exploit",
                "trial": trial.id,
                "donor": donor.id,
                "checkpoint": found[-1],
                "number": action.donor_report,
                "config": dict(action.config),
                "why": action.why,
            }
        )
        self._tell("exploits", trial.id, action.why)

    def _failed(self, trial: Trial, failure: ev.Failure) -> None:
        limit = self.rules.max_failures
        again = not failure.counts or limit == -1 or trial.failures < limit
        if again and not failure.final and self._halt is None:
            self._heed(
                self._record(
                    {
                        "kind": "fail",
                        "trial": trial.id,
                        "attempt": trial.attempt,
                        "counts": failure.counts,
                        "error": {"kind": failure.kind, "text": failure.text},
                    }
                )
            )
            pause_s = _failures.pause_s(trial.fruitless)
            trial.retry_at = self._now + pause_s if pause_s else 0.0
            self._tell("error", trial.id, failure.text)
            return
        self._end(trial, End.FAILED, failure.kind, failure)
        if (
            failure.kind == MISSING
            and not self.ledger.metric_seen
            and self.ledger.metric_missing >= ALL_ALIKE
        ):
            self._stop_all(Halt("no trial reports the metric", True, failure.text))
        elif self.rules.fail_fast:
            self._stop_all(Halt(f"trial {trial.id} failed, and fail_fast is set", True))

    def _end(self, trial: Trial, end: End, why: str, failure: ev.Failure | None = None) -> None:
        place = self.places.of(trial.id, trial.attempt) if trial.phase is Phase.RUNNING else None
        if place is not None and place.state is State.BUSY:
            self.places.leave(place, self._now + self.rules.grace_s)
        came = self._record(end_row(trial.id, end, why, failure))
        self.demand.on_told()
        self._tell("ended", trial.id, failure.text if failure is not None else why)
        self._act(came.actions)
        self._heed(came)

    def _heed(self, came: Came) -> None:
        """Ends the sweep, once this event is handled, where a stop condition of all trials holds
        after a trial's failure or end."""
        if came.stops_all and self._halt is None:
            self._halt = Halt(STOPS_ALL, False)

    def _leave(self, trial: str, attempt: int, why: str) -> None:
        """Stop an attempt: its report raises, and its process has the grace for `finally`."""
        self._effect(ev.Answer(trial, attempt, why))
        place = self.places.of(trial, attempt)
        if place is not None and place.state is State.BUSY:
            self.places.leave(place, self._now + self.rules.grace_s)

    def _retain(self, trial: Trial) -> None:
        """Drops what `num_to_keep` says, except what somebody goes on from (G6)."""
        rules = self.rules
        for one in _retention.to_drop(
            trial.kept, rules.num_to_keep, rules.keep_attribute, rules.keep_order
        ):
            if not self.ledger.needed(trial, one.name):
                self._record({"kind": "drop", "trial": trial.id, "checkpoint": one.name})
                self._effect(ev.DropCheckpoint(trial.id, one.name))

    def _stop_all(self, halt: Halt) -> None:
        if self._halt is None:
            self._halt = halt
        self._wind_down()

    def _wind_down(self) -> None:
        assert self._halt is not None
        for name in list(self.ledger.running):
            trial = self.ledger.trials[name]
            if self._halt.resumable:
                place = self.places.of(name, trial.attempt)
                self._record({"kind": "interrupt", "trial": name})
                if place is not None and place.state is State.BUSY:
                    self.places.leave(place, self._now + self.rules.grace_s)
            else:
                self._end(trial, End.STOPPED, self._halt.why)
        if not self._halt.resumable:
            self._end_unstarted(self._halt.why)

    def _end_unstarted(self, why: str) -> None:
        for name in [*self.ledger.waiting, *self.ledger.paused]:
            if self.ledger.trials[name].phase is not Phase.ENDED:
                self._end(self.ledger.trials[name], End.STOPPED, why)

    # Assignment of free places.

    def _settle(self) -> None:
        for place in self.places.overdue(self._now):
            self._give_up(place)
        while self.ledger.unpinned:
            self._retain(self.ledger.trials[self.ledger.unpinned.pop()])
        if self._halt is None and not self.ledger.held:
            self._use_places()
        if self.ledger.held:
            for place in [*self.places.asked(), *self.places.idle()]:
                self._give_up(place)
        if self._halt is not None:  # a scheduler's own demand may have ended it just now
            self._wind_down()
            for place in [*self.places.asked(), *self.places.idle()]:
                self._give_up(place)
        self._finish_if_over()

    def _use_places(self) -> None:
        for place in self.places.idle():
            trial, why = self.demand.trial_for(place, self._now)
            if trial is None:
                continue
            if trial.phase is Phase.PAUSED:
                self._record({"kind": "want", "trial": trial.id, "why": why})
            self._start(trial, place)
        for name in self.demand.names_to_ask():
            self._effect(ev.AskSearcher(name))
        shapes, unused = self.demand.changes()
        for place in unused:
            self._give_up(place)
        for shape in shapes:
            self._effect(ev.AskPlace(self.places.ask(shape).number, shape))

    def _start(self, trial: Trial, place: Place) -> None:
        attempt = trial.attempt + 1
        self._record(
            {
                "kind": "start",
                "trial": trial.id,
                "attempt": attempt,
                "number": trial.number,
                "where": place.where,
                "base": None if trial.base is None else [trial.base.trial, trial.base.checkpoint],
            }
        )
        self.places.occupy(place, trial.id, attempt)
        self._effect(
            ev.Start(
                place.number,
                trial.id,
                attempt,
                trial.config,
                trial.base,
                trial.number,
                trial.checkpoints,
                tuple(one.name for one in trial.kept),
            )
        )
        self._tell("started", trial.id)

    def _finish_if_over(self) -> None:
        ledger, halt = self.ledger, self._halt
        if halt is None:
            if ledger.held:
                return
            if (
                ledger.paused
                and not ledger.running
                and not ledger.waiting
                and not self.demand.can_add()
            ):
                self._end_stall()
            if (
                ledger.running
                or ledger.waiting
                or ledger.paused
                or self.demand.asked
                or self.demand.can_propose()
            ):
                return
            error = (
                ""
                if self.demand.is_complete()
                else (
                    "the searcher proposes nothing while no trial runs, and does not say that it "
                    "has finished"
                )
            )
            halt = self._halt = Halt("all trials are over", False, error)
        for place in [*self.places.asked(), *self.places.idle()]:
            self._give_up(place)
        if self.places.count(State.BUSY) or self.places.count(State.LEAVING):
            return
        self._record(
            {
                "kind": "leave",
                "seconds": self._now - self._began,
                "over": "" if halt.resumable else halt.why,
            }
        )
        self._effect(ev.Done(halt.error, halt.resumable, halt.unplaceable))
        self._done = True

    def _end_stall(self) -> None:
        """Nothing runs or can be added: its scheduler decides about paused trials, or they are
        over."""
        scheduler = self.ledger.scheduler
        if isinstance(scheduler.choose(False), Resume):
            return
        self._act(self._record({"kind": "stalled"}).actions)
        if isinstance(scheduler.choose(False), Resume):
            self._use_places()
            return
        for name in list(self.ledger.paused):
            if self.ledger.trials[name].phase is Phase.PAUSED:
                self._end(
                    self.ledger.trials[name],
                    End.STOPPED,
                    "it was paused, and nothing runs that would decide about it",
                )

    def _give_up(self, place: Place) -> None:
        self.places.give_up(place)
        self._effect(ev.GiveUpPlace(place.number))

    # Results of events.

    def _record(self, row: ev.Row) -> Came:
        self._decided.rows.append(row)
        self._decided.durable = (
            self._decided.durable or row["kind"] in DURABLE or bool(row.get("checkpoint"))
        )
        return self.ledger.apply(row)

    def _effect(self, effect: ev.Effect) -> None:
        self._decided.effects.append(effect)

    def _tell(self, what: str, trial: str, detail: str = "") -> None:
        held = self.ledger.trials[trial]
        self._decided.effects.append(ev.Tell(what, trial, held.last, held.end, detail))

    def _tell_searcher(self, call: ev.TellSearcher) -> None:
        if call.call != "proposed" or self._replaying:  # the searcher knows its own proposals
            self._decided.effects.append(call)

    def _take(self) -> Decided:
        decided, self._decided = self._decided, Decided()
        return decided
