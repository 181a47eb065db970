"""A world for the core of sweeps without processes, files and clocks: places, trials, a disk of
checkpoints, a journal, crashes between every two effects.

What happens next is drawn from a seed. The scheduler's decisions are a function of the calls that
it has had, as the seam asks, so that one that is made again from the journal can be compared with
the one that was there.
"""

from __future__ import annotations

import copy
import random
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from troupe.tune._core import events as ev
from troupe.tune._core.deciding import (
    Action,
    Choice,
    End,
    Exploit,
    Pause,
    Proposal,
    Report,
    ReportError,
    Resume,
    Scheduler,
    Searcher,
    Stop,
)
from troupe.tune._core.rules import Rules
from troupe.tune._core.sweep import SweepCore


class Listed(Searcher):
    """So many trials, proposed in order."""

    def __init__(self, trials: int) -> None:
        self.trials, self.made = trials, 0

    def propose(self, trial: str) -> Proposal | None:
        if self.finished():
            return None
        self.made += 1
        return Proposal({"x": self.made})

    def proposed(self, trial: str, proposal: Proposal) -> None:
        self.made += 1

    def finished(self) -> bool:
        return self.made >= self.trials


class Moody(Scheduler):
    """Stops, pauses, exploits and goes on by a digest of its calls so far."""

    needs_checkpoints = True

    def __init__(self, seed: int) -> None:
        self.calls: list[tuple] = []
        self._digest = zlib.crc32(str(seed).encode())
        self._paused: list[str] = []
        self._ended: set[str] = set()
        self._checkpoints: dict[str, int] = {}

    def _call(self, *call: Any) -> int:
        self.calls.append(call)
        self._digest = zlib.crc32(repr(call).encode(), self._digest)
        return self._digest >> 4

    def added(self, trial: str, config: Mapping[str, Any]) -> None:
        self._call("added", trial, dict(config))

    def reported(self, report: Report) -> Sequence[Action]:
        draw = (
            self._call(
                "reported",
                report.trial,
                report.number,
                report.score,
                report.checkpoint,
                report.can_add,
            )
            % 20
        )
        if report.checkpoint:
            self._checkpoints[report.trial] = report.number
        if draw == 19 and report.number == 2:
            raise ReportError("nobody can decide upon it")
        found: list[Action] = []
        if self._paused and draw in (5, 6):
            found.append(Stop(self._paused.pop(0), "paused long enough"))
        if draw == 0:
            found.append(Stop(report.trial, "bad"))
        elif draw in (1, 2, 3) and report.trial in self._checkpoints:
            self._paused.append(report.trial)
            found.append(Pause(report.trial, "rung"))
        elif draw == 4 and self._checkpoints:
            donor = sorted(self._checkpoints)[self._digest % len(self._checkpoints)]
            copier = (
                self._paused[0] if self._paused and self._digest % 2 else report.trial
            )  # a trial that may be paused already
            if copier not in self._paused:
                self._paused.append(copier)
            found.append(
                Exploit(
                    copier, donor, self._checkpoints[donor], {"x": self._digest % 100}, "better"
                )
            )
        return found

    def ended(self, trial: str, end: End) -> Sequence[Action]:
        self._ended.add(trial)
        if trial in self._paused:
            self._paused.remove(trial)
        draw = self._call("ended", trial, end.value) % 8
        return [Stop(self._paused.pop(), "with it")] if draw == 0 and self._paused else []

    def went_back(self, trial: str, number: int) -> None:
        self._call("went_back", trial, number)

    def resumed(self, trial: str, config: Mapping[str, Any]) -> None:
        self._call("resumed", trial, dict(config))
        if trial in self._paused:
            self._paused.remove(trial)

    def stalled(self) -> Sequence[Action]:
        self._call("stalled")
        return [Stop(self._paused.pop(0), "stalled")] if self._paused and self._digest % 2 else []

    def choose(self, can_add: bool) -> Resume | Choice:
        if self._paused and self._digest % 3 == 0:
            return Resume(self._paused[0])
        return Choice.NEW if can_add else Choice.WAIT


class Broken(AssertionError):
    """A promise of the core does not hold."""


class World:
    """`crash_at`: the step, counted over commits and effects, at which the engine ends; -1:
    never."""

    def __init__(
        self,
        seed: int,
        *,
        trials: int = 8,
        slots: int = 3,
        steps: int = 6,
        crashes: Sequence[int] = (),
        rules: Rules | None = None,
        shapes: Sequence[str] = ("",),
    ) -> None:
        self.draw = random.Random(seed)
        self.seed, self.trials, self.slots, self.steps = seed, trials, slots, steps
        self.rules = rules or Rules(
            metric="m", max_failures=3, num_to_keep=1, scheduler_name="Moody", may_be_silent=True
        )
        self.crashes, self.shapes = set(crashes), list(shapes)
        self.count = 0
        self.journal: list[ev.Row] = []
        self.disk: set[tuple[str, str]] = set()
        self.now = 0.0
        self.engines = 0
        self.done: ev.Done | None = None
        self.heard: dict[str, int] = {}
        self._begin()

    def _begin(self) -> None:
        self.engines += 1
        self.searcher, self.scheduler = Listed(self.trials), Moody(self.seed)
        self.core = SweepCore(
            self.rules,
            self.scheduler,
            name_of=lambda number: f"t{number:03d}",
            uniform_shape="" if len(self.shapes) == 1 else None,
        )
        for told in self.core.replay(copy.deepcopy(self.journal)):
            getattr(self.searcher, told.call)(*told.arguments)
        self.asked: list[int] = []
        self.shape_of: dict[int, str] = {}
        self.processes: dict[int, dict[str, Any] | None] = {}  # place -> what runs in it
        self.news: list[ev.Event] = [
            ev.Begun(self.core.ledger.epoch + 1, "here", self.engines, self.now)
        ]

    def run(self, most: int = 20_000) -> ev.Done:
        for _ in range(most):
            if self.done is not None:
                return self.done
            try:
                self._step()
            except _Crash:
                self._begin()
        raise Broken(
            f"seed {self.seed}: it does not end: {self.core.ledger.running} "
            f"{self.core.ledger.waiting} {self.core.ledger.paused}"
        )

    def _passes(self) -> None:
        self.count += 1
        if self.count in self.crashes:
            raise _Crash

    def _step(self) -> None:
        event = self.news.pop(0) if self.news else self._happens()
        self.now += self.draw.random()
        decided = self.core.handle(event, self.now)
        at_once = [each for each in decided.effects if isinstance(each, ev.Answer) and each.at_once]
        for effect in at_once:
            if effect.stop or any(
                row.get("checkpoint") for row in decided.rows if row["kind"] == "report"
            ):
                raise Broken(f"G7, seed {self.seed}: {effect} before {decided.rows} are written")
            self._passes()
            self._carry_out(effect)
        self._passes()  # before the commit
        before = len(self.journal)
        self.journal += copy.deepcopy(decided.rows)
        self._check_rows(before)
        for effect in decided.effects:
            if effect not in at_once:
                self._passes()
                self._carry_out(effect)
        self._check_bases()

    def _happens(self) -> ev.Event:
        deadline = self.core.deadline()
        running = [place for place, process in self.processes.items() if process is not None]
        free = self.slots - len(self.processes)
        could = (["grant"] * bool(self.asked and free > 0)) + ["trial"] * (3 * bool(running))
        if not could or (deadline is not None and self.now >= deadline):
            if deadline is None:
                raise Broken(f"seed {self.seed}: nothing can happen any more")
            self.now = max(self.now, deadline)
            return ev.Tick()
        if self.draw.choice(could) == "grant":
            place = self.asked.pop(0)
            if self.draw.random() < 0.03:
                return ev.PlaceLost(place, "lost on the way")
            self.processes[place] = None
            return ev.Granted(place)
        return self._of_trial(self.draw.choice(running))

    def _of_trial(self, place: int) -> ev.Event:
        process = self.processes[place]
        assert process is not None
        start: ev.Start = process["start"]
        draw = self.draw.random()
        if process["stopped"] or draw < 0.06 or process["number"] >= self.steps:
            self.processes[place] = {**process, "gone": True}
            if draw < 0.03 and not process["stopped"]:
                return ev.Exited(
                    start.trial, start.attempt, ev.Failure("NodeLost", "gone", counts=False)
                )
            if draw < 0.06 and not process["stopped"]:
                return ev.Exited(start.trial, start.attempt, ev.Failure("ValueError", "bad"))
            return ev.Exited(start.trial, start.attempt)
        if process["waits"]:  # a report that is sent twice is answered twice, and counted once
            again = process["waits"]
            process["waits"] = None
            return again
        process["number"] += 1
        process["sequence"] += 1
        name = ""
        if self.draw.random() < 0.6:
            name = f"checkpoint_{process['checkpoints']:06d}"
            process["checkpoints"] += 1
            if (start.trial, name) in self.disk:
                raise Broken(f"seed {self.seed}: {start.trial} has a {name} already")
            self.disk.add((start.trial, name))
        event = ev.Reported(
            start.trial, start.attempt, process["sequence"], {"m": self.draw.random()}, name, 1.0
        )
        process["waits"] = event if self.draw.random() < 0.05 else None
        return event

    def _start(self, effect: ev.Start, place: str, trial: str) -> None:
        if (
            place not in self.processes
            or (self.processes[place] or {"gone": True})["gone"] is False
        ):
            raise Broken(
                f"seed {self.seed}: {trial} starts in place {place}, which is "
                f"{self.processes.get(place)}"
            )
        if self.shape_of[place] != self.core.ledger.trials[trial].shape:
            raise Broken(
                f"seed {self.seed}: {trial} starts in a place of the shape {self.shape_of[place]!r}"
            )
        if effect.base is not None and (effect.base.trial, effect.base.checkpoint) not in self.disk:
            raise Broken(
                f"G6, seed {self.seed}: {trial} is to go on from {effect.base}, which is not there"
            )
        self.disk -= {
            each for each in self.disk if each[0] == trial and each[1] not in effect.kept
        }  # as a trial's process cleans up
        self.processes[place] = {
            "start": effect,
            "number": effect.number,
            "sequence": 0,
            "checkpoints": effect.checkpoints,
            "stopped": False,
            "gone": False,
            "waits": None,
        }

    def _carry_out(self, effect: ev.Effect) -> None:
        match effect:
            case ev.AskPlace(place, shape):
                self.asked.append(place)
                self.shape_of[place] = shape
            case ev.GiveUpPlace(place):
                self.processes.pop(place, None)
                if place in self.asked:
                    self.asked.remove(place)
            case ev.Start(place, trial):
                self._start(effect, place, trial)
            case ev.Answer(trial, attempt, stop):
                for process in self.processes.values():
                    if (
                        process is not None
                        and process["start"].trial == trial
                        and process["start"].attempt == attempt
                        and stop
                    ):
                        process["stopped"] = True
            case ev.DropCheckpoint(trial, name):
                if not any(
                    row["kind"] == "drop" and (row["trial"], row["checkpoint"]) == (trial, name)
                    for row in self.journal
                ):
                    raise Broken(
                        f"G6, seed {self.seed}: {trial}/{name} is deleted before the journal says "
                        "so"
                    )
                self.disk.discard((trial, name))
            case ev.AskSearcher(trial):
                proposal = self.searcher.propose(trial)
                self.news.append(
                    ev.Proposed(
                        trial,
                        proposal,
                        self.searcher.finished(),
                        self.shapes[int(trial[1:]) % len(self.shapes)],
                    )
                )
            case ev.TellSearcher(call, arguments):
                getattr(self.searcher, call)(*arguments)
            case ev.Tell("ended", trial):
                self.heard[trial] = self.heard.get(trial, 0) + 1
                if not any(row["kind"] == "end" and row["trial"] == trial for row in self.journal):
                    raise Broken(
                        f"G2, seed {self.seed}: the end of {trial} is told before the journal has "
                        "it"
                    )
            case ev.Done():
                self.done = effect

    def _check_rows(self, before: int) -> None:
        """G1 and G2, of the rows from `before` on."""
        for place, row in enumerate(self.journal[before:], before):
            trial = row.get("trial")
            if row["kind"] == "report":
                key = (trial, row["attempt"], row["sequence"])
                if any(
                    each["kind"] == "report"
                    and (each["trial"], each["attempt"], each["sequence"]) == key
                    for each in self.journal[:place]
                ):
                    raise Broken(f"G1, seed {self.seed}: {key} is counted twice")
            if trial is not None and row["kind"] not in ("drop",):
                if any(
                    each["kind"] == "end" and each["trial"] == trial
                    for each in self.journal[:place]
                ):
                    raise Broken(f"G2, seed {self.seed}: {row} after the end of {trial}")

    def _check_bases(self) -> None:
        """G6: what a trial would go on from is there."""
        for trial in self.core.ledger.trials.values():
            if (
                trial.base is not None
                and (trial.base.trial, trial.base.checkpoint) not in self.disk
            ):
                raise Broken(
                    f"G6, seed {self.seed}: {trial.id} rests on {trial.base}, which is not there"
                )


class _Crash(Exception):
    pass
