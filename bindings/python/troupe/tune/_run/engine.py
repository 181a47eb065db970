"""The engine of a sweep: takes what happens to the core, commits its rows, carries out its effects. One thread, that of `fit()`."""
from __future__ import annotations

import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from troupe._cluster import signals, status_lines
from troupe._code import capture
from troupe.tune._context import TuneContext
from troupe.tune._core import events as ev
from troupe.tune._core.deciding import Scheduler, Searcher
from troupe.tune._core.rules import Conditions, Rules
from troupe.tune._core.sweep import SweepCore
from troupe.tune._journal import values
from troupe.tune._run.folder import SweepFolder
from troupe.tune._run.places import TrialPlaces

LATE_S = 60.0
"""How long nothing is heard, while no trial runs, before that is said."""


@dataclass(frozen=True)
class Plan:
    """What is run, checked. `options_of`, `resources_of`: of a shape. `shape_of`: of a configuration; None: of all the same, which is ""."""

    name: str
    function: bytes
    parameters: Mapping[str, Any]
    rules: Rules
    scheduler: Scheduler
    searcher: Searcher
    conditions: Conditions
    options_of: Callable[[str], Mapping[str, Any]]
    resources_of: Callable[[str], Mapping[str, float]]
    shape_of: Callable[[Mapping[str, Any]], str] | None
    trial_name: str
    sweep_id: str
    hears: Callable[[ev.Tell, "Engine"], None] = lambda told, engine: None


class Engine:
    """Of one call of `fit()`. `core` has the trials, during and after it."""

    def __init__(self, plan: Plan, folder: SweepFolder) -> None:
        self._plan, self._folder = plan, folder
        self.core = SweepCore(plan.rules, plan.scheduler, plan.conditions, name_of=lambda number: f"{plan.sweep_id}_{number:05d}",
                              uniform_shape="" if plan.shape_of is None else None)
        self._places = TrialPlaces(plan.trial_name, plan.function, plan.parameters, plan.options_of)
        self._news: deque[ev.Event] = deque()
        self.where: dict[str, Mapping[str, Any]] = {}
        """trial -> where it ran last."""
        self.done: ev.Done | None = None

    def run(self) -> ev.Done:
        """Runs the sweep to its end. Blocks. Raises what the scheduler's, the searcher's or a stop condition's own code raises, OSError and
        sqlite3.Error where the journal cannot be written; no trial is left then."""
        try:
            for told in self.core.replay(self._folder.journal.read()):
                self._tell_searcher(told)
            self._take([ev.Begun(self.core.ledger.epoch + 1, socket.gethostname(), os.getpid(), time.time())])
            while self.done is None:
                self._take(self._wait())
            return self.done
        finally:
            self._places.close()

    def stop(self, why: str, *, resumable: bool = True) -> None:
        """Asks the sweep to end; from the thread of `run`, or a signal's handler on it."""
        self._news.append(ev.StopAsked(why, resumable))

    def folder_of(self, trial: str) -> Path:
        """Where a trial's checkpoints are."""
        return self._folder.path / self.name_of(trial)

    def name_of(self, trial: str) -> str:
        """What a trial is called where people see it."""
        return f"{self._plan.trial_name}_{trial}"

    def _wait(self) -> list[ev.Event]:
        deadline = self.core.deadline()
        timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not self._places.waits:
            threading.Event().wait(signals.at_most(timeout if timeout is not None else LATE_S))
        found = self._places.events(timeout)
        if deadline is not None and time.monotonic() >= deadline:
            found.append(ev.Tick())
        return found

    def _take(self, events: list[ev.Event]) -> None:
        """Handles these events and whatever follows from them at once, each batch with one commit."""
        self._news.extend(events)
        while self._news and self.done is None:
            rows: list[ev.Row] = []
            effects: list[ev.Effect] = []
            durable = False
            now = time.monotonic()
            while self._news:
                decided = self.core.handle(self._news.popleft(), now)
                rows += decided.rows
                effects += decided.effects
                durable = durable or decided.durable
            if rows:
                self._folder.journal.append(rows, durable=durable)
            for effect in effects:
                self._carry_out(effect)

    def _carry_out(self, effect: ev.Effect) -> None:
        match effect:
            case ev.Answer(trial, attempt, stop):
                self._places.answer(trial, attempt, stop)
            case ev.Tell():
                self._plan.hears(effect, self)
            case ev.TellSearcher():
                self._tell_searcher(effect)
            case ev.AskPlace(place, shape):
                if (event := self._places.ask(place, shape)) is not None:
                    self._news.append(event)
            case ev.GiveUpPlace(place):
                self._places.give_up(place)
            case ev.Start():
                self._start(effect)
            case ev.AskSearcher(trial):
                self._news.append(self._propose(trial))
            case ev.DropCheckpoint(trial, checkpoint):
                self._folder.drop(self.name_of(trial), checkpoint)
            case ev.Done():
                self.done = effect

    def _start(self, start: ev.Start) -> None:
        plan, trial = self._plan, start.trial
        self.where[trial] = self._places.about(start.place)
        context = TuneContext(name=plan.name, path=str(self.folder_of(trial)), trial_id=trial, trial_name=self.name_of(trial),
                              resources=plan.resources_of(self.core.ledger.trials[trial].shape))
        config = capture.dumps(None, (dict(start.config),), {}, what=f"the configuration of trial {trial}")
        base = str(self.folder_of(start.base.trial) / start.base.checkpoint) if start.base is not None else ""
        self._places.start(start.place, trial, start.attempt, config, context, base, start.checkpoints, start.kept)

    def _propose(self, trial: str) -> ev.Proposed:
        searcher = self._plan.searcher
        proposal = searcher.propose(trial)
        if proposal is None:
            return ev.Proposed(trial, None, searcher.finished())
        proposal = type(proposal)(values.plain_scalars(proposal.config), proposal.extra)
        shape = "" if self._plan.shape_of is None else self._plan.shape_of(proposal.config)
        return ev.Proposed(trial, proposal, searcher.finished(), shape)

    def _tell_searcher(self, call: ev.TellSearcher) -> None:
        getattr(self._plan.searcher, call.call)(*call.arguments)


def say(name: str, text: str) -> None:
    """A line of the sweep's own."""
    status_lines.say(f"troupe.tune: sweep {name}: {text}")
