"""How a trial is stopped, and how a sweep fails."""
from __future__ import annotations

from troupe import _pickled
from troupe.exceptions import TroupeError


class TrialStopped(BaseException):
    """Raised by `report()` in a trial that is to end: its `finally` blocks run, and have 5 s; no `except Exception` takes it. The text says why."""


class TuneError(TroupeError):
    """A sweep could not go on, or, with `FailureConfig(fail_fast="raise")`, a trial of it failed."""


class TrialFailedError(TuneError):
    """What a trial of a sweep failed of, where it raised nothing itself: its process ended, or it did not report what the sweep asks for."""


_pickled.named_in("troupe.tune", TrialStopped, TuneError, TrialFailedError)
