"""How a training fails."""
from __future__ import annotations

from collections.abc import Mapping

from troupe import _pickled
from troupe.exceptions import TroupeError


class TrainingFailedError(TroupeError):
    """A training failed: WorkerGroupError where a worker did, else ControllerError."""


class WorkerGroupError(TrainingFailedError):
    """A worker failed more often than `max_failures`. Also an instance of what the first of them raised.

    Fields: `worker_failures` (rank -> exception, of all that failed), `rank` (whose failure is the cause), `path` (the run's folder).
    """

    worker_failures: Mapping[int, Exception] = {}
    rank: int = -1
    path: str = ""


class ControllerError(TrainingFailedError):
    """The workers could not be started. Also an instance of the reason, which is `controller_failure`."""

    controller_failure: Exception | None = None


_pickled.named_in("troupe.train", TrainingFailedError, WorkerGroupError, ControllerError)
