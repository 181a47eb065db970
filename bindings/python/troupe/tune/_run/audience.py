"""Who hears of a sweep beside its engine: callbacks, on a thread of their own, which no trial waits for (G11)."""
from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from troupe import _callbacks
from troupe._cluster import status_lines
from troupe.train._checkpoint import Checkpoint
from troupe.tune._callback import TrialView
from troupe.tune._core.deciding import End

CALLS_MAX = 10_000
DRAIN_S = 60.0
"""For what callbacks have still to hear when the sweep is over."""


@dataclass(frozen=True)
class News:
    """What happened to a trial. `what`: as in events.Tell."""

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
    """The callbacks of a sweep, `name`. `hear` never blocks; `close` waits for what was heard, DRAIN_S at most."""

    def __init__(self, name: str, callbacks: Sequence[Any], **setup: Any) -> None:
        self._name, self._callbacks = name, list(callbacks)
        self._news: queue.Queue[News | None] = queue.Queue(CALLS_MAX)
        self._missed = self._iteration = 0
        self._trials: list[TrialView] = []
        self._by_id: dict[str, TrialView] = {}
        self._setup = setup
        self._thread = threading.Thread(target=self._run, name="troupe-callbacks", daemon=True)
        self._thread.start()

    def hear(self, news: News) -> None:
        """It is told to the callbacks, in its turn."""
        try:
            self._news.put_nowait(news)
        except queue.Full:
            self._missed += 1

    def close(self) -> None:
        """The sweep is over."""
        try:
            self._news.put(None, timeout=DRAIN_S)
            self._thread.join(DRAIN_S)
        except queue.Full:
            pass
        if self._missed:
            status_lines.say(f"troupe.tune: sweep {self._name}: callbacks were {CALLS_MAX:,} calls behind and missed {self._missed:,}")
        if self._thread.is_alive():
            status_lines.say(f"troupe.tune: sweep {self._name}: callbacks have not come to an end within {DRAIN_S:g} s, with about "
                             f"{self._news.qsize():,} calls to come: they are left")

    def _run(self) -> None:
        self._each("setup", **self._setup)
        while (news := self._news.get()) is not None:
            self._tell(news)
        self._each("on_experiment_end", trials=self._trials)

    def _tell(self, news: News) -> None:
        trial = self._by_id.get(news.trial)
        if trial is None:
            trial = self._by_id[news.trial] = TrialView(news.trial, news.name, news.config, news.path)
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
            trial.status = "ERROR" if news.end is End.FAILED else "TERMINATED"
            trial.error = news.detail if news.end is End.FAILED else ""
            self._each("on_trial_error" if news.end is End.FAILED else "on_trial_complete", **common, trial=trial)

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
            if (call := getattr(callback, method, None)) is not None:
                _callbacks.run(f"{type(callback).__name__}.{method}()", lambda call=call: call(**arguments))
