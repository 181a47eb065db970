"""`troupe.tune.report` in a process of a command job that is a trial of a sweep."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any, Self

from troupe.train import _here, _metrics
from troupe.train._checkpoint import Checkpoint
from troupe.tune._context import TuneContext
from troupe.tune._errors import TrialStopped


class JobLoop(_here.Loop):
    """`ask`: reports, and gives why the trial is to end; `is_first`: whether this process of the
    job reports."""

    def __init__(self, ask: Callable[[dict[str, Any]], str], is_first: Callable[[], bool]) -> None:
        self._ask, self._is_first = ask, is_first
        self.context = TuneContext()

    def report(
        self, metrics: dict[str, Any], checkpoint: Checkpoint | None, dir_name: str | None
    ) -> None:
        """See Loop. Raises TrialStopped where the trial is to end, ValueError for a checkpoint."""
        if checkpoint is not None:
            raise ValueError(
                "report(checkpoint=...) in a command job: it keeps files in its outputs, "
                "${{outputs.NAME}} or the folder outputs/"
            )
        if not self._is_first():
            return
        with _NoSignal() as told:
            stop = self._ask(_metrics.plain(metrics))
            if stop:
                # The exception that ends the job: `finally` blocks of the program have the time
                # until SIGKILL
                told.ignored = True
        if stop:
            raise TrialStopped(stop)

    def latest(self) -> Checkpoint | None:
        """See Loop: a job has none."""
        return None


class _NoSignal:
    """A context: SIGTERM, where the program has no handler of its own, waits until it is left, and
    is ignored for good if `ignored`."""

    def __init__(self) -> None:
        self.ignored = False
        self._came = False
        self._changes = False

    def __enter__(self) -> Self:
        self._changes = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        )
        if self._changes:
            signal.signal(signal.SIGTERM, self._note)
        return self

    def _note(self, *_: object) -> None:
        self._came = True

    def __exit__(self, *_: object) -> None:
        if self._changes and self.ignored:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        elif self._changes:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            if self._came:
                signal.raise_signal(signal.SIGTERM)
