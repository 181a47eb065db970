"""The display of a sweep: rows that change while it runs, in a terminal or a notebook, and a line
at its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from troupe._cluster import live_output, status_lines
from troupe._tracing import record
from troupe.tune._core.deciding import WORST, End, Report
from troupe.tune._core.rules import lookup
from troupe.tune._core.trial import Trial

CONFIG_CHARS_MAX = 100


class Shown:
    """The display of one sweep; its methods are called by the engine's thread, and cost little.

    `total()`: how many trials are known by now; None: not known.
    """

    def __init__(
        self, name: str, path: str, metric: str | None, total: Callable[[], int | None]
    ) -> None:
        self._name, self._path, self._metric, self._total = name, path, metric, total
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._counts = {"running": 0, "paused": 0, "done": 0, "stopped": 0, "failed": 0}
        self._state: dict[str, str] = {}  # states of unfinished trials
        self._since_ns: dict[str, int] = {}  # when they came to be so
        self._best: tuple[float, str, Any, Mapping[str, Any]] | None = None

    def begin(self) -> None:
        """From now on there are rows, where rows are seen; elsewhere a line."""
        if live_output.sees_rows():
            live_output.row(("sweep", self), self._progress)
            live_output.row(("best", self), self._best_text)
        else:
            many = "" if (total := self._total()) is None else f" of {total} trials"
            status_lines.say(f"troupe.tune: sweep {self._name}{many}, in {self._path}")

    def end(self, how: str = "") -> None:
        """The rows go; a line says what came of it."""
        live_output.row(("sweep", self), None)
        live_output.row(("best", self), None)
        best = self._best_text()
        status_lines.say(
            "troupe.tune: "
            f"{self._progress()}{f' · {how}' if how else ''}{f' · {best}' if best else ''} · in "
            f"{self._path}"
        )

    def know(self, trials: Iterable[Trial]) -> None:
        """Add the trials that a resumed sweep already has."""
        for trial in trials:
            if trial.last is not None:
                self.reported(
                    trial.last,
                    lookup(trial.last.metrics, self._metric) if self._metric else None,
                    trial.config,
                )
            if trial.end is not None and not trial.replaced_by:
                self.ended(trial.id, trial.end)

    def moved(self, trial: str, state: str) -> None:
        """A trial is "running", "paused", or waits: "" ."""
        with self._lock:
            self._leave(trial)
            if state:
                self._state[trial] = state
                self._since_ns[trial] = record.now_ns()
                self._counts[state] += 1

    def ended(self, trial: str, end: End) -> None:
        """A trial is over."""
        with self._lock:
            self._leave(trial)
            self._counts["done"] += 1
            if end is not End.COMPLETED:
                self._counts["failed" if end is End.FAILED else "stopped"] += 1

    def reported(self, report: Report, value: Any, config: Mapping[str, Any]) -> None:
        """A trial's result; `value`: of the sweep's metric."""
        if report.score > (self._best[0] if self._best is not None else WORST):
            with self._lock:
                self._best = (report.score, report.trial, value, config)

    def _leave(self, trial: str) -> None:
        if state := self._state.pop(trial, ""):
            self._counts[state] -= 1
            name = f"{self._name} {trial}"
            since_ns = self._since_ns.pop(trial)
            if state == "running":
                record.add(record.Kind.TRIAL, name, since_ns)

    def _progress(self) -> str:
        with self._lock:
            counts = dict(self._counts)
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        done = counts.pop("done")
        parts = [
            f"{done}/{total} trials" if (total := self._total()) is not None else f"{done} trials"
        ]
        parts += [f"{count} {what}" for what, count in counts.items() if count]
        return f"sweep {self._name} · {' · '.join(parts)} · {minutes}:{seconds:02d}"

    def _best_text(self) -> str:
        with self._lock:
            if self._best is None:
                return ""
            _, trial, value, config = self._best
        text = " ".join(f"{name}={_short(each)}" for name, each in config.items())
        cut = text if len(text) <= CONFIG_CHARS_MAX else f"{text[:CONFIG_CHARS_MAX]}..."
        return f"best {self._metric}={_short(value)}  {cut}  ({trial})"


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
