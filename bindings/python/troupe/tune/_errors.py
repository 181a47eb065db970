"""How a trial is stopped, and how a sweep fails."""

from __future__ import annotations

from troupe import _pickled
from troupe.exceptions import TroupeError


class TrialStopped(BaseException):
    """Raised by `report()` in a trial that is to end: its `finally` blocks run, and have 5 s; no
    `except Exception` takes it. The text says why."""


class TuneError(TroupeError):
    """A sweep could not go on, or, with `FailureConfig(fail_fast="raise")`, a trial of it
    failed."""


class TrialFailedError(TuneError):
    """The error of a failed trial: also an instance of the type its function raised, or of the
    error that says how its process ended; of neither where it did not report the metric the sweep
    needs. The text has the trial's traceback."""


_pickled.named_in("troupe.tune", TrialStopped, TuneError, TrialFailedError)
