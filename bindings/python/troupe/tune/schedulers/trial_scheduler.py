"""The scheduler that stops nothing, and what all schedulers are."""

from __future__ import annotations

from collections.abc import Sequence

from troupe.tune._core.deciding import Action, Report, Scheduler

TrialScheduler = Scheduler


class FIFOScheduler(Scheduler):
    """Trials run in the order in which they come, each to its own end.

    What a sweep without `scheduler` has.

    TuneConfig(scheduler=FIFOScheduler())
    """

    def reported(self, report: Report) -> Sequence[Action]:
        return ()
