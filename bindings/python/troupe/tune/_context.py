"""Which trial this is, of what sweep."""

from __future__ import annotations

from dataclasses import dataclass

from troupe import _pickled
from troupe.train import _here
from troupe.train._here import TrainContext


@dataclass(frozen=True)
class TuneContext(TrainContext):
    """Of a trial. Its methods have Ray's names; it is one rank of one."""

    trial_id: str = ""
    trial_name: str = ""
    has_own_directory: bool = True

    def get_trial_id(self) -> str:
        """Of this trial in its sweep."""
        return self.trial_id

    def get_trial_name(self) -> str:
        """What the trial is called where people see it."""
        return self.trial_name or self.trial_id

    def get_trial_dir(self) -> str:
        """The trial's folder, and its working directory; one that is empty at its end is
        removed."""
        return self.path


def get_context() -> TrainContext:
    """Which trial this is: its id, name, folder and resources.

    Raises RuntimeError outside of a trial.

    folder = get_context().get_trial_dir()
    """
    return _here.get_context()


_pickled.named_in("troupe.tune", TuneContext, get_context)
