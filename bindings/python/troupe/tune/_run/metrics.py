"""Metrics of a sweep for the head's `/metrics`: its trials by state, their reports, what decisions
cost.

They are counted as a program's own metrics are (`troupe.util.metrics`), in the engine's process,
and reported by the same thread: the engine waits for nobody.
"""

from __future__ import annotations

from troupe.tune._core import events as ev
from troupe.tune._core.ledger import Ledger
from troupe.util.metrics import Counter, Gauge, Histogram

_DECISION_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 10)


class SweepMetrics:
    """Metrics of one sweep, by its name; its engine's thread."""

    def __init__(self, name: str) -> None:
        self._trials = Gauge("troupe_sweep_trials", "Trials of a sweep.", ("sweep", "state"))
        self._reports = Counter(
            "troupe_sweep_reports_total", "Reports of a sweep's trials.", ("sweep",)
        )
        self._decisions = Histogram(
            "troupe_sweep_decision_seconds",
            "Time that a sweep took to decide what an event means.",
            _DECISION_S,
            ("sweep",),
        )
        for each in (self._trials, self._reports, self._decisions):
            each.set_default_tags({"sweep": name})

    def decided(self, event: ev.Event, seconds: float) -> None:
        """Count one event of the sweep, which took so long."""
        try:
            self._decisions.observe(seconds)
            if isinstance(event, ev.Reported):
                self._reports.inc()
        except ValueError:
            pass  # the process has as many series as it may: the sweep goes on without

    def show(self, ledger: Ledger) -> None:
        """Take the numbers of trials as they are now."""
        there = {
            "waiting": len(ledger.waiting),
            "running": len(ledger.running),
            "paused": len(ledger.paused),
        }
        there["ended"] = len(ledger.trials) - sum(there.values())
        try:
            for state, count in there.items():
                self._trials.set(count, {"state": state})
        except ValueError:
            pass
