"""Listeners of a sweep beside its engine: callbacks, on threads of their own, which no trial waits
for (G11)."""

from __future__ import annotations

import collections
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from troupe._base import callbacks as _callbacks
from troupe._cluster import status_lines
from troupe.train._checkpoint import Checkpoint
from troupe.tune._callback import SweepLogger, SweepSeen, TrialView
from troupe.tune._core.deciding import End

CALLS_MAX = 10_000
DRAIN_S = 60.0
"""For what callbacks have still to hear when the sweep is over."""


@dataclass(frozen=True)
class News:
    """An event of a trial. `what`: as in events.Tell."""

    what: str
    trial: str
    name: str
    path: str
    config: Any
    metrics: dict[str, Any] | None = None
    checkpoint: str = ""
    end: End | None = None
    detail: str = ""


class Audience:
    """The callbacks of a sweep: those of the user's on one thread, in their order, and each
    SweepLogger, which may wait for a server, on one of its own. `setup`: arguments of their
    `setup`."""

    def __init__(self, sweep: SweepSeen, callbacks: Sequence[Any], **setup: Any) -> None:
        self._sweep = sweep
        loggers = [each for each in callbacks if isinstance(each, SweepLogger)]
        others = [each for each in callbacks if each not in loggers]
        self._threads = [
            Listeners(sweep, group, setup)
            for group in ([others] if others else []) + [[each] for each in loggers]
        ]
        for each in loggers:
            each.belongs_to(sweep)

    def begin(self) -> None:
        """From now on they hear."""
        for each in self._threads:
            each.begin()

    def hear(self, news: News) -> None:
        """Pass an event on to the callbacks, in its turn. Never blocks."""
        for each in self._threads:
            each.hear(news)

    def close(self, outcome: str) -> None:
        """The sweep is over, or is left: waits until all has been told, DRAIN_S at most."""
        self._sweep.outcome = outcome
        deadline = time.monotonic() + DRAIN_S
        for each in self._threads:
            each.end(deadline)
        for each in self._threads:
            each.close(deadline)


class Listeners:
    """Callbacks on one thread.

    What one of them raises is said once for each of its methods, and counted from then on.
    """

    def __init__(self, sweep: SweepSeen, callbacks: Sequence[Any], setup: dict[str, Any]) -> None:
        self._sweep, self._callbacks, self._setup = sweep, list(callbacks), setup
        self._news: queue.Queue[News | None] = queue.Queue(CALLS_MAX)
        self._missed = self._iteration = 0
        self._raised: collections.Counter[str] = collections.Counter()  # by callback and method
        self._trials: list[TrialView] = []
        self._by_id: dict[str, TrialView] = {}
        self._thread = threading.Thread(target=self._run, name="troupe-callbacks", daemon=True)

    def begin(self) -> None:
        """See Audience."""
        self._thread.start()

    def hear(self, news: News) -> None:
        """See Audience."""
        try:
            self._news.put_nowait(news)
        except queue.Full:
            self._missed += 1

    def end(self, deadline: float) -> None:
        """Nothing more comes."""
        try:
            self._news.put(None, timeout=max(0.0, deadline - time.monotonic()))
        except queue.Full:
            pass

    def close(self, deadline: float) -> None:
        """Waits for the end of what was told, and says what of it did not arrive."""
        self._thread.join(max(0.0, deadline - time.monotonic()))
        who = ", ".join(sorted({type(each).__name__ for each in self._callbacks}))
        for what, count in self._raised.items():
            if count > 1:
                self._say(f"{what} raised {count:,} times in all")
        if self._missed:
            self._say(
                f"callbacks ({who}) were {CALLS_MAX:,} calls behind and missed {self._missed:,}"
            )
        if self._thread.is_alive():
            self._say(
                f"callbacks ({who}) have not come to an end within {DRAIN_S:g} s, with about "
                f"{self._news.qsize():,} calls to come: they are left"
            )

    def _say(self, text: str) -> None:
        status_lines.say(f"troupe.tune: sweep {self._sweep.name}: {text}")

    def _run(self) -> None:
        self._each("setup", **self._setup)
        loggers = [each for each in self._callbacks if isinstance(each, SweepLogger)]
        while True:
            if loggers and self._news.empty():
                self._each("caught_up")
            if (news := self._news.get()) is None:
                break
            self._tell(news)
        self._each("on_experiment_end", trials=self._trials)

    def _tell(self, news: News) -> None:
        trial = self._by_id.get(news.trial)
        if trial is None:
            trial = self._by_id[news.trial] = TrialView(
                news.trial, news.name, news.config, news.path
            )
            self._trials.append(trial)
        trial.config = news.config
        common: dict[str, Any] = {"iteration": self._iteration, "trials": self._trials}
        if news.what == "started":
            trial.status = "RUNNING"
            self._each("on_trial_start", **common, trial=trial)
            if news.checkpoint:
                self._each("on_trial_restore", **common, trial=trial)
        elif news.what == "result":
            self._result(trial, news, common)
        elif news.what in ("paused", "exploits"):
            trial.status = "PAUSED"
        elif news.what == "error":
            trial.status, trial.error = "PENDING", news.detail
            self._each("on_trial_recover", **common, trial=trial)
        elif news.what == "ended":
            failed = news.end is End.FAILED
            trial.status = "ERROR" if failed else "TERMINATED"
            trial.error = news.detail if failed else ""
            trial.stopped = news.detail if news.end is End.STOPPED else ""
            self._each("on_trial_error" if failed else "on_trial_complete", **common, trial=trial)

    def _result(self, trial: TrialView, news: News, common: dict[str, Any]) -> None:
        trial.last_result = news.metrics or {}
        self._each("on_step_begin", **common)
        self._each("on_trial_result", **common, trial=trial, result=trial.last_result)
        if news.checkpoint:
            trial.checkpoint = Checkpoint(news.checkpoint)
            self._each("on_checkpoint", **common, trial=trial, checkpoint=trial.checkpoint)
            self._each("on_trial_save", **common, trial=trial)
        self._each("on_step_end", **common)
        self._iteration += 1

    def _each(self, method: str, **arguments: Any) -> None:
        for callback in self._callbacks:
            if (call := getattr(callback, method, None)) is None:
                continue
            try:
                call(**arguments)
            except BaseException as error:  # raised by a callback of the user's
                what = f"{type(callback).__name__}.{method}()"
                self._raised[what] += 1
                if self._raised[what] == 1:
                    _callbacks.report(what, error)
