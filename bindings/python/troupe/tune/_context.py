"""The trial that this process runs, and its sweep."""

from __future__ import annotations

from dataclasses import dataclass

from troupe import _pickled
from troupe.train import _here
from troupe.train._here import TrainContext


@dataclass(frozen=True)
class TuneContext(TrainContext):
    """The context of a trial. Its methods have Ray's names; it is the only rank of its group."""

    trial_id: str = ""
    trial_name: str = ""
    has_own_directory: bool = True

    def get_trial_id(self) -> str:
        """Return the id of this trial in its sweep."""
        return self.trial_id

    def get_trial_name(self) -> str:
        """Return the name under which people see the trial."""
        return self.trial_name or self.trial_id

    def get_trial_dir(self) -> str:
        """The trial's folder, and its working directory; one that is empty at its end is
        removed."""
        return self.path


def get_context() -> TrainContext:
    """Return the context of this trial: its id, name, folder and resources.

    Raises RuntimeError outside of a trial.

    folder = get_context().get_trial_dir()
    """
    return _here.get_context()


_pickled.named_in("troupe.tune", TuneContext, get_context)
