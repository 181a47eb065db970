"""The engine of a sweep: takes what happens to the core, commits its rows, carries out its effects.

One thread, that of `fit()`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import os
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from troupe._cluster import status_lines
from troupe._code import capture
from troupe.tune import _resources
from troupe.tune._context import TuneContext
from troupe.tune._core import events as ev
from troupe.tune._core.deciding import WORST, Scheduler, Searcher
from troupe.tune._core.rules import Conditions, Rules, lookup
from troupe.tune._core.sweep import SweepCore
from troupe.tune._core.trial import Trial
from troupe.tune._journal import table
from troupe.tune._results import shown
from troupe.tune._run import asking
from troupe.tune._run.asks import Asks
from troupe.tune._run.audience import Audience, News
from troupe.tune._run.changes import Changes
from troupe.tune._run.folder import SweepFolder
from troupe.tune._run.metrics import SweepMetrics
from troupe.tune._run.places import TrialPlaces
from troupe.tune._run.shown import Shown
from troupe.tune._run.waits import Interrupted, Waits

SEARCHER_PATIENCE_S = 300.0
"""How long one of the last calls of the searcher may take, once the sweep is over."""


@dataclass(frozen=True)
class Plan:
    """The checked plan of a run.

    `shape_of`: what a trial holds, by its configuration; None: all of them hold `shape`.
    """

    name: str
    function: bytes
    parameters: Mapping[str, Any]
    rules: Rules
    scheduler: Scheduler
    searcher: Searcher
    conditions: Conditions
    shape_of: Callable[[Mapping[str, Any]], str] | None
    shape: str
    trial_name: str
    sweep_id: str
    audience: Audience | None = None
    shown: Shown | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the trials' processes, beside what they hold."""
    has_directories: bool = True
    """Whether each trial's working directory is its folder."""


class Engine:
    """The engine of one call of `fit()`. `core` has the trials, during and after it."""

    def __init__(self, plan: Plan, folder: SweepFolder) -> None:
        self._plan, self._folder = plan, folder
        self.core = SweepCore(
            plan.rules,
            plan.scheduler,
            plan.conditions,
            name_of=lambda number: f"{plan.sweep_id}_{number:05d}",
            uniform_shape=plan.shape if plan.shape_of is None else None,
        )
        self._waits = Waits()
        self._places = TrialPlaces(
            plan.trial_name, plan.function, plan.parameters, self._waits, plan.options
        )
        self._searcher = asking.asked(plan.searcher, self._waits)
        self._news: deque[ev.Event] = deque()
        self._changes: Changes | None = None
        self._best_score = WORST
        self._metrics = SweepMetrics(plan.name)
        self.done: ev.Done | None = None
        self.interrupted = False

    def run(self, *, unfinished: bool = True, errored: str = "", lets_go: bool = True) -> ev.Done:
        """Runs the sweep to its end.

        Blocks. Raises what the scheduler's, the searcher's or a stop condition's own code raises,
        OSError where the journal cannot be written; KeyboardInterrupt at once where Ctrl-C comes a
        second time. No trial is left then.
        """
        with self._interrupts():
            return self._run(unfinished, errored, lets_go)

    def _run(self, unfinished: bool, errored: str, lets_go: bool) -> ev.Done:
        try:
            with _without_collection():
                for told in self.core.replay(self._folder.journal.read()):
                    self._searcher.tell(told)
            if self._plan.shown is not None:
                self._plan.shown.know(self.core.ledger.trials.values())
            self._take(
                [
                    ev.Begun(
                        self.core.ledger.epoch + 1,
                        socket.gethostname(),
                        os.getpid(),
                        time.time(),
                        unfinished,
                        errored,
                        lets_go,
                    )
                ]
            )
            while self.done is None:
                self._take(self._wait())
            self._finish_searcher(self.done)
            return self.done
        finally:
            self._places.close()
            self._searcher.close()

    def _finish_searcher(self, done: ev.Done) -> None:
        """Let the searcher hear how the last trials ended, which its own study or model may be kept
        for. One Ctrl-C stops the wait."""
        left, patience_s = 1, self._plan.rules.grace_s if done.resumable else SEARCHER_PATIENCE_S
        with contextlib.suppress(Interrupted), self._waits.interrupted_by_signals():
            left = self._searcher.finish(patience_s)
        if left and not done.resumable:  # a resumed sweep tells the searcher everything again
            say(
                self._plan.name,
                f"the searcher did not hear the end of all trials: {left:,} calls of "
                f"{type(self._plan.searcher).__name__} were given up after "
                f"{patience_s:g} s, or by Ctrl-C; the sweep's results are complete",
            )

    def stop(self, why: str, *, resumable: bool = True) -> None:
        """Asks the sweep to end; from the thread of `run`, or a signal's handler on it."""
        self._news.append(ev.StopAsked(why, resumable))

    def listen(self, asks: Asks) -> None:
        """Takes what others ask for, from any thread, as events of its own."""
        asks.arm(self._waits)
        self._changes = asks.changes

    @contextlib.contextmanager
    def _interrupts(self) -> Iterator[None]:
        """Ctrl-C asks the sweep to end, so that it can be gone on with; again, it ends at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def asked(number: int, frame: Any) -> None:
            if self.interrupted:
                raise KeyboardInterrupt
            self.interrupted = True
            say(
                self._plan.name,
                f"stopping, {self._plan.rules.grace_s:g} s; Ctrl-C again ends it now",
            )
            self.stop("Ctrl-C")
            if self._waits.interruptible:
                raise Interrupted

        before = signal.signal(signal.SIGINT, asked)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def folder_of(self, trial: str) -> Path:
        """Return the folder of a trial's checkpoints."""
        return self._folder.path / self.name_of(trial)

    def name_of(self, trial: str) -> str:
        """Return the name under which people see a trial."""
        return f"{self._plan.trial_name}_{trial}"

    def _wait(self) -> list[ev.Event]:
        deadline = self.core.deadline()
        timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
        found = [
            self._shaped(each) if isinstance(each, ev.Proposed) else each
            for each in self._waits.events(timeout)
        ]
        if deadline is not None and time.monotonic() >= deadline:
            found.append(ev.Tick())
        return found

    def _take(self, events: list[ev.Event]) -> None:
        """Handles these events and whatever follows from them at once, each batch with one
        commit."""
        self._news.extend(events)
        while self._news and self.done is None:
            rows: list[ev.Row] = []
            effects: list[ev.Effect] = []
            durable = False
            now = time.monotonic()
            while self._news:
                event, began = self._news.popleft(), time.perf_counter()
                decided = self.core.handle(event, now)
                self._metrics.decided(event, time.perf_counter() - began)
                rows += decided.rows
                effects += decided.effects
                durable = durable or decided.durable
            at_once = [each for each in effects if isinstance(each, ev.Answer) and each.at_once]
            for answer in at_once:
                self._carry_out(answer)
            if rows:
                self._folder.journal.append(rows, durable=durable)
            for effect in effects:
                if effect not in at_once:
                    self._carry_out(effect)
        self._metrics.show(self.core.ledger)

    def _carry_out(self, effect: ev.Effect) -> None:
        match effect:
            case ev.Answer(trial, attempt, stop):
                self._places.answer(trial, attempt, stop)
            case ev.Tell():
                self._tell(effect)
            case ev.TellSearcher():
                self._searcher.tell(effect)
            case ev.AskPlace(place, shape):
                if (event := self._places.ask(place, shape)) is not None:
                    self._news.append(event)
            case ev.GiveUpPlace(place):
                self._places.give_up(place)
            case ev.Start():
                self._start(effect)
            case ev.AskSearcher(trial):
                if (answer := self._searcher.ask(trial)) is not None:
                    self._news.append(self._shaped(answer))
            case ev.DropCheckpoint(trial, checkpoint):
                self._folder.drop(self.name_of(trial), checkpoint)
            case ev.Done():
                self.done = effect

    def _note_change(self, changes: Changes, told: ev.Tell, trial: Trial) -> None:
        metric = self._plan.rules.metric
        found = lookup(trial.last.metrics, metric) if trial.last is not None and metric else None
        value = float(found) if isinstance(found, (int, float)) else None
        if told.what in ("started", "paused", "exploits", "error", "ended"):
            changes.note(table.row(trial, value, metric))
        elif told.report is not None and told.report.score > self._best_score:
            self._best_score = told.report.score
            number, config = table.number_of(trial.id), table.words(trial.config)
            changes.note([f"best so far: {metric}={found} ({number}: {config})"])

    def _tell(self, told: ev.Tell) -> None:
        plan, trial = self._plan, self.core.ledger.trials[told.trial]
        if self._changes is not None:
            self._note_change(self._changes, told, trial)
        if plan.shown is not None:
            if told.what == "ended" and told.end is not None:
                plan.shown.ended(told.trial, told.end)
            elif told.what == "result" and told.report is not None:
                plan.shown.reported(
                    told.report,
                    lookup(told.report.metrics, plan.rules.metric) if plan.rules.metric else None,
                    trial.config,
                )
            elif told.what in ("started", "paused", "exploits", "error"):
                plan.shown.moved(
                    told.trial, {"started": "running", "error": ""}.get(told.what, "paused")
                )
        if plan.audience is not None:
            metrics, checkpoint = None, ""
            if told.what == "result" and told.report is not None:
                metrics = shown(
                    told.report.metrics,
                    trial=trial.id,
                    config=trial.config,
                    where=trial.where,
                    done=told.end is not None,
                )
                checkpoint = (
                    str(self.folder_of(trial.id) / trial.kept[-1].name)
                    if told.report.checkpoint and trial.kept
                    else ""
                )
            elif told.what == "started" and trial.base is not None:
                checkpoint = trial.base.checkpoint
            plan.audience.hear(
                News(
                    told.what,
                    trial.id,
                    self.name_of(trial.id),
                    str(self.folder_of(trial.id)),
                    trial.config,
                    metrics,
                    checkpoint,
                    told.end,
                    told.detail,
                )
            )

    def _start(self, start: ev.Start) -> None:
        plan, trial = self._plan, start.trial
        context = TuneContext(
            name=plan.name,
            path=str(self.folder_of(trial)),
            trial_id=trial,
            trial_name=self.name_of(trial),
            has_own_directory=plan.has_directories,
            resources=_resources.held_by(self.core.ledger.trials[trial].shape),
        )
        config = capture.dumps(
            None, (dict(start.config),), {}, what=f"the configuration of trial {trial}"
        )
        base = (
            str(self.folder_of(start.base.trial) / start.base.checkpoint)
            if start.base is not None
            else ""
        )
        self._places.start(
            start.place, trial, start.attempt, config, context, base, start.checkpoints, start.kept
        )

    def _shaped(self, answer: ev.Proposed) -> ev.Proposed:
        """With what its trial is to hold."""
        if answer.proposal is None:
            return answer
        shape_of = self._plan.shape_of
        return dataclasses.replace(
            answer, shape=self._plan.shape if shape_of is None else shape_of(answer.proposal.config)
        )


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """While many objects come to stay, looking for garbage among them again and again takes a third
    of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def say(name: str, text: str) -> None:
    """A line of the sweep's own."""
    status_lines.say(f"troupe.tune: sweep {name}: {text}")
