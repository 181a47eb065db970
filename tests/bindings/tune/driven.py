"""A sweep without processes, for schedulers: slots, trials whose scores are a function of trial and
iteration, events in a random order.

It keeps the seam's promises and checks that the scheduler keeps its own: whom actions may name,
that every trial is over in the end, and that calls made again to another one of its kind bring it
to the same decisions.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from troupe.tune._core.deciding import (
    Action,
    Choice,
    End,
    Exploit,
    Mode,
    Pause,
    Report,
    Resume,
    Scheduler,
    Stop,
)


@dataclass
class Driven:
    """A simulated trial. `state`: new, running, paused, over."""

    config: Mapping[str, Any]
    state: str = "new"
    number: int = 0
    end: End | None = None
    why: str = ""
    scores: list[float] = field(default_factory=list)
    base: int = 0
    """The report whose checkpoint it goes on from after a pause."""
    saved: set[int] = field(default_factory=set)
    """Its own reports that have a checkpoint which others can copy."""


class Sweep:
    """`score(trial, number, config)`: of a report.

    `fails`: the chance that a report is a failure of the trial instead, its last. `saves(number)`:
    whether that report has a checkpoint; a trial that pauses goes on from its latest.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        configs: Sequence[Mapping[str, Any]],
        score: Callable[[str, int, Any], float],
        *,
        reports: int,
        slots: int,
        seed: int = 0,
        fails: float = 0.0,
        goes_back: float = 0.0,
        saves: Callable[[int], bool] = lambda number: True,
    ) -> None:
        self.scheduler, self.fresh = scheduler, copy.deepcopy(scheduler)
        self.saves = saves
        self.score, self.reports, self.slots, self.fails, self.goes_back = (
            score,
            reports,
            slots,
            fails,
            goes_back,
        )
        self.configs, self.generator = list(configs), random.Random(seed)
        self.trials: dict[str, Driven] = {}
        self.calls: list[tuple[str, tuple]] = []
        self.actions: list[Action] = []
        self.most_running = 0

    def told(self, name: str, *arguments: Any) -> Any:
        """A call that a journal would have."""
        self.calls.append((name, arguments))
        return getattr(self.scheduler, name)(*arguments)

    def run(self) -> Sweep:
        self.told("begin", "score", Mode.MAX)
        while True:
            self.fill()
            running = [trial for trial, each in self.trials.items() if each.state == "running"]
            self.most_running = max(self.most_running, len(running))
            if running:
                self.step(self.generator.choice(running))
                continue
            if not (
                paused := [trial for trial, each in self.trials.items() if each.state == "paused"]
            ):
                break
            self.carry_out(self.told("stalled"))
            if self.scheduler.choose(False) is Choice.WAIT:
                for trial in paused:
                    if self.trials[trial].state == "paused":
                        self.over(trial, End.STOPPED, "nothing else comes")
        assert all(each.state == "over" for each in self.trials.values()) and not self.configs
        return self

    def fill(self) -> None:
        while sum(each.state == "running" for each in self.trials.values()) < self.slots:
            chosen = self.scheduler.choose(bool(self.configs))
            assert chosen == self.scheduler.choose(bool(self.configs)), (
                "a question has changed the answer"
            )
            if isinstance(chosen, Resume):
                assert self.trials[chosen.trial].state == "paused"
                self.trials[chosen.trial].state = "running"
                self.told("resumed", chosen.trial, self.trials[chosen.trial].config)
            elif chosen is Choice.NEW and self.configs:
                trial = f"t{len(self.trials)}"
                self.trials[trial] = Driven(self.configs.pop(0), "running")
                self.told("added", trial, self.trials[trial].config)
            else:
                assert chosen is Choice.WAIT or not self.configs
                return

    def step(self, trial: str) -> None:
        each = self.trials[trial]
        if self.generator.random() < self.fails:
            self.over(trial, End.FAILED, "it failed")
            return
        if each.number >= self.reports:  # paused at its last report
            self.over(trial, End.COMPLETED, "its end")
            return
        if each.number > 1 and self.generator.random() < self.goes_back:
            self.back(trial, self.generator.randrange(each.number))
            return
        each.number += 1
        if self.saves(each.number):
            each.base = each.number
            each.saved.add(each.number)
        each.scores.append(self.score(trial, each.number, each.config))
        report = Report(
            trial,
            each.number,
            {"training_iteration": each.number, "score": each.scores[-1]},
            Mode.MAX.score(each.scores[-1]),
            checkpoint=self.saves(each.number),
            can_add=bool(self.configs),
        )
        self.carry_out(self.told("reported", report), trial)
        if each.state == "running" and each.number >= self.reports:
            self.over(trial, End.COMPLETED, "its end")

    def carry_out(self, actions: Sequence[Action], reporter: str = "") -> None:
        for action in list(actions):
            self.actions.append(action)
            each = self.trials[action.trial]
            assert (
                each.state == "paused"
                and not isinstance(action, Pause)
                or action.trial == reporter
                and each.state == "running"
            ), action
            assert action.why
            if isinstance(action, Stop):
                self.over(action.trial, End.STOPPED, action.why)
                continue
            each.state = "paused"
            if isinstance(action, Exploit):
                donor = self.trials[action.donor]
                assert donor.state != "over" and action.donor_report in donor.saved
                each.config, each.number, each.scores = (
                    action.config,
                    action.donor_report,
                    donor.scores[: action.donor_report],
                )
                each.base, each.saved = each.number, set()
            elif each.base != each.number:
                self.back(action.trial, each.base)

    def back(self, trial: str, number: int) -> None:
        """Return to the report of that number."""
        each = self.trials[trial]
        each.number = each.base = number
        each.saved = {one for one in each.saved if one <= number}
        del each.scores[number:]
        self.told("went_back", trial, number)

    def over(self, trial: str, end: End, why: str) -> None:
        each = self.trials[trial]
        each.state, each.end, each.why = "over", end, why
        self.carry_out(self.told("ended", trial, end))

    def replayed(self) -> Scheduler:
        """Another scheduler of the same kind that was told the same, as after a restart."""
        for name, arguments in self.calls:
            getattr(self.fresh, name)(*arguments)
        return self.fresh


def curves(seed: int, kinds: Sequence[Any] = ()) -> Callable[[str, int, Any], Any]:
    """Scores that grow, of trials of which some are better; a tenth of them one of `kinds`
    instead."""

    def score(trial: str, number: int, config: Any) -> Any:
        generator = random.Random(f"{seed} {trial} {number}")
        if kinds and generator.random() < 0.1:
            return generator.choice(kinds)
        return random.Random(f"{seed} {trial}").random() * number + generator.random()

    return score
