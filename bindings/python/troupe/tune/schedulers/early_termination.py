"""The three policies of early termination of Azure ML's sweep jobs.

One report of the metric is one interval.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from troupe.tune._core.deciding import WORST, Action, End, Mode, Report, Scheduler, Stop
from troupe.tune._core.ranked import Ranked
from troupe.tune.schedulers import _said


class EarlyTerminationPolicy(Scheduler):
    """The base of the policies: they look at the reports whose number is a multiple of
    `evaluation_interval`, from `delay_evaluation` on."""

    def __init__(self, *, delay_evaluation: int = 0, evaluation_interval: int = 0) -> None:
        self._name = type(self).__name__
        self.delay_evaluation = _said.count(f"{self._name}: delay_evaluation", delay_evaluation, 0)
        self.evaluation_interval = _said.count(
            f"{self._name}: evaluation_interval", evaluation_interval, 0
        )
        self._at: dict[int, Ranked] = {}  # compared values, by the number of the report
        self._of: dict[str, dict[int, Any]] = {}  # values there of a trial that may go back, or end
        self._negated = False

    def __repr__(self) -> str:
        said = {
            name: value
            for name, value in vars(self).items()
            if not name.startswith("_") and name not in ("metric", "mode")
        }
        return f"{self._name}({', '.join(f'{name}={value!r}' for name, value in said.items())})"

    def begin(self, metric: str, mode: Mode) -> None:
        self.metric, self._negated = metric, mode is Mode.MIN

    def reported(self, report: Report) -> Sequence[Action]:
        if self._looks_at(report.number):
            self._record(report.trial, report.number, self._compared(report))
            if why := self._verdict(report, self._at[report.number]):
                return (Stop(report.trial, f"{self._name} at report {report.number}: {why}"),)
        elif self._needs_all:
            self._compared(report)
        return ()

    _needs_all = False

    def _looks_at(self, number: int) -> bool:
        return number >= self.delay_evaluation and number % (self.evaluation_interval or 1) == 0

    def _record(self, trial: str, number: int, value: float) -> None:
        self._at.setdefault(number, Ranked()).add(value)
        self._of.setdefault(trial, {})[number] = value

    def _take_back(self, trial: str, after: int) -> None:
        """Remove the trial's records of later reports."""
        records = self._of.get(trial, {})
        for number in [each for each in records if each > after]:
            self._at[number].remove(records.pop(number))

    def _compared(self, report: Report) -> float:
        """Return the value that other trials are compared with."""
        return report.score

    @abstractmethod
    def _verdict(self, report: Report, ranked: Ranked) -> str | None:
        """Why the trial ends; None: it goes on.

        `ranked`: what all that have come so far have recorded here, its own included.
        """

    def ended(self, trial: str, end: End) -> Sequence[Action]:
        self._of.pop(trial, None)
        return ()

    def went_back(self, trial: str, number: int) -> None:
        self._take_back(trial, number)


class BanditPolicy(EarlyTerminationPolicy):
    """A trial ends where it is worse than the best of all trials at the same report by more than
    the slack.

    With B the best, to be maximized: below B - slack_amount, or below B / (1 + slack_factor), which
    for a B below 0 is B - |B| * slack_factor / (1 + slack_factor); to be minimized: above B +
    slack_amount, or above B + |B| * slack_factor. One of the two is to be said. Raises ValueError.

        BanditPolicy(slack_factor=0.1, evaluation_interval=1, delay_evaluation=5)
    """

    def __init__(
        self,
        *,
        delay_evaluation: int = 0,
        evaluation_interval: int = 0,
        slack_amount: float = 0,
        slack_factor: float = 0,
    ) -> None:
        super().__init__(delay_evaluation=delay_evaluation, evaluation_interval=evaluation_interval)
        self.slack_amount = _said.number("BanditPolicy: slack_amount", slack_amount or 0, least=0)
        self.slack_factor = _said.number("BanditPolicy: slack_factor", slack_factor or 0, least=0)
        if self.slack_amount and self.slack_factor:
            raise ValueError(
                f"BanditPolicy has slack_amount={slack_amount} and slack_factor={slack_factor}: "
                "say one of them"
            )

    def _verdict(self, report: Report, ranked: Ranked) -> str | None:
        best = ranked.scores[-1]
        if best == WORST:
            return None
        slack = self.slack_amount
        if self.slack_factor:
            slack = abs(best) * (
                self.slack_factor if self._negated else self.slack_factor / (1 + self.slack_factor)
            )
        if not report.score < best - slack:
            return None
        return (
            f"{self.metric} is {_said.shown(report.score, self._negated)}, the best "
            f"{_said.shown(best, self._negated)}, "
            f"and it may be {'above' if self._negated else 'below'} that by {slack:g}"
        )


class MedianStoppingPolicy(EarlyTerminationPolicy):
    """A trial ends at report N where its best so far is worse than the median of all trials'
    averages over their reports 1 to N.

    MedianStoppingPolicy(evaluation_interval=1, delay_evaluation=5)
    """

    _needs_all = True

    def __init__(self, *, delay_evaluation: int = 0, evaluation_interval: int = 1) -> None:
        super().__init__(delay_evaluation=delay_evaluation, evaluation_interval=evaluation_interval)
        self._sums: dict[
            str, list[tuple[float, float, float]]
        ] = {}  # sum, least and best after each report of a trial that is not over

    def _compared(self, report: Report) -> float:
        sums = self._sums.setdefault(report.trial, [(0.0, report.score, report.score)])
        total, least, best = sums[-1]
        sums.append((total + report.score, min(least, report.score), max(best, report.score)))
        total, least, best = sums[-1]
        return WORST if least == WORST else min(max(total / (len(sums) - 1), least), best)

    def _verdict(self, report: Report, ranked: Ranked) -> str | None:
        best, median = self._sums[report.trial][-1][2], ranked.quantile(0.5)
        if median is None or not best < median:
            return None
        return (
            f"its best {self.metric} is {_said.shown(best, self._negated)}, and the median of "
            f"{len(ranked)} averages is "
            f"{_said.shown(median, self._negated)}"
        )

    def ended(self, trial: str, end: End) -> Sequence[Action]:
        self._sums.pop(trial, None)
        return super().ended(trial, end)

    def went_back(self, trial: str, number: int) -> None:
        super().went_back(trial, number)
        del self._sums.get(trial, [])[number + 1 :]


class TruncationSelectionPolicy(EarlyTerminationPolicy):
    """A trial ends where it is among the worst `truncation_percentage` of those trials that run,
    each as it was at the same report.

    Of n trials these are the worst n * truncation_percentage / 100, rounded down, and of equal ones
    none. Raises ValueError.

        TruncationSelectionPolicy(
            truncation_percentage=20, evaluation_interval=1, delay_evaluation=5)
    """

    def __init__(
        self,
        *,
        delay_evaluation: int = 0,
        evaluation_interval: int = 0,
        truncation_percentage: int = 0,
    ) -> None:
        super().__init__(delay_evaluation=delay_evaluation, evaluation_interval=evaluation_interval)
        self.truncation_percentage = _said.count(
            "TruncationSelectionPolicy: truncation_percentage", truncation_percentage, 1
        )
        if truncation_percentage > 99:
            raise ValueError(
                "TruncationSelectionPolicy: truncation_percentage must be 1 to 99, not "
                f"{truncation_percentage}"
            )

    def _verdict(self, report: Report, ranked: Ranked) -> str | None:
        worst, not_better = (
            len(ranked) * self.truncation_percentage // 100,
            len(ranked) - ranked.above(report.score) - 1,
        )
        if not not_better < worst:
            return None
        return (
            f"{self.metric} is {_said.shown(report.score, self._negated)}, one of the worst "
            f"{worst} of {len(ranked)}"
        )

    def ended(self, trial: str, end: End) -> Sequence[Action]:
        self._take_back(trial, 0)
        return super().ended(trial, end)
