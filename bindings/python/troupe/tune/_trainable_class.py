"""Trials as classes: Trainable, and how one runs."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from troupe import _pickled
from troupe.train import _here
from troupe.train._checkpoint import Checkpoint
from troupe.train._metrics import check

_DICT = ".of_dict.pkl"


class Trainable:
    """A trial as a class: `setup` once, then `step` again and again, each of which is one report,
    until `step` returns `done=True` or it is stopped.

    Override `setup(config)`, `step()`, and to be paused, retried or exploited
    `save_checkpoint(folder)` and `load_checkpoint(folder)`; `reset_config(new_config)` returns True
    where the instance may take another configuration (`reuse_actors=True`). As Ray's
    `tune.Trainable`.

        class Digits(tune.Trainable):
            def setup(self, config): self.model = Net(config["width"])
            def step(self): return {"acc": train_an_epoch(self.model)}
            def save_checkpoint(self, folder):
                torch.save(self.model.state_dict(), os.path.join(folder, "model.pt"))
            def load_checkpoint(self, folder):
                self.model.load_state_dict(torch.load(os.path.join(folder, "model.pt")))
    """

    def __init__(self, config: Mapping[str, Any] | None = None, **parameters: Any) -> None:
        self.config = dict(config or {})
        self._iteration = 0
        self.setup(self.config, **parameters)

    def setup(self, config: dict[str, Any]) -> None:
        """Called once, with the configuration, and what with_parameters gave."""

    def step(self) -> dict[str, Any]:
        """Run one iteration and return its metrics. `"done": True` among them means that it was the
        last."""
        raise NotImplementedError(
            f"{type(self).__name__} has no step(): a Trainable's step() does one iteration and "
            "returns its metrics"
        )

    def save_checkpoint(self, checkpoint_dir: str) -> str | dict[str, Any] | None:
        """Writes what `load_checkpoint` needs into the folder, or returns it as a dict."""
        raise NotImplementedError(
            f"{type(self).__name__} has no save_checkpoint(), and a checkpoint was asked for, by "
            "CheckpointConfig or by the scheduler"
        )

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Goes on from what was saved: the folder, or the dict."""
        raise NotImplementedError(
            f"{type(self).__name__} has no load_checkpoint(), and is to go on from a checkpoint"
        )

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Return True if this instance has taken over the configuration, and may continue as
        another trial; False unless overridden."""
        return False

    def cleanup(self) -> None:
        """Called at the trial's end."""

    @classmethod
    def default_resource_request(cls, config: dict[str, Any]) -> Any:
        """Return the resources of a trial with that configuration, as with_resources takes them;
        None for one CPU."""
        return None

    def train(self) -> dict[str, Any]:
        """Run one step and return its metrics with `training_iteration`."""
        metrics = check(self.step())
        self._iteration += 1
        metrics.setdefault("training_iteration", self._iteration)
        return metrics

    def stop(self) -> None:
        """The end: `cleanup`."""
        self.cleanup()

    @property
    def iteration(self) -> int:
        """How many steps it has done, those before the checkpoint that it goes on from among
        them."""
        return self._iteration

    training_iteration = iteration

    @property
    def trial_id(self) -> str:
        """The id of this trial."""
        return _here.get_context().get_trial_id()

    @property
    def trial_name(self) -> str:
        """The name of this trial."""
        return _here.get_context().get_trial_name()

    @property
    def logdir(self) -> str:
        """The trial's folder, made if it is not there."""
        folder = _here.get_context().get_trial_dir()
        os.makedirs(folder, exist_ok=True)
        return folder

    @property
    def trial_resources(self) -> dict[str, float]:
        """The resources that the trial holds."""
        return _here.get_context().get_trial_resources()


class ClassRun:
    """Runs a Trainable class as the function of a trial.

    `every`: a checkpoint after so many steps, 0: none; `at_end`: one after the last.
    """

    def __init__(self, cls: type[Trainable], every: int, at_end: bool) -> None:
        self._cls, self._every, self._at_end = cls, every, at_end
        self._kept: Trainable | None = None  # instance of the trial before in this process

    def __call__(self, config: dict[str, Any], **parameters: Any) -> None:
        running = self._taken_over(config) or self._cls(config, **parameters)
        if (checkpoint := _here.get_checkpoint()) is not None:
            _load(running, checkpoint)
        self._kept = running
        done = False
        try:
            while not done:
                metrics = running.train()
                done = bool(metrics.pop("done", False))
                due = (
                    self._every and running.iteration % self._every == 0 or (done and self._at_end)
                )
                with tempfile.TemporaryDirectory(prefix="checkpoint-") as folder:
                    _here.report(metrics, _saved(running, folder) if due else None)
        finally:
            if (
                not isinstance(running, Trainable)
                or type(running).reset_config is Trainable.reset_config
            ):
                self._kept = None
                running.stop()

    def _taken_over(self, config: dict[str, Any]) -> Trainable | None:
        kept, self._kept = self._kept, None
        if kept is None or not kept.reset_config(config):
            return None
        kept.config, kept._iteration = dict(config), 0
        return kept


def _saved(running: Trainable, folder: str) -> Checkpoint:
    given = running.save_checkpoint(folder)
    if isinstance(given, Mapping):
        Path(folder, _DICT).write_bytes(pickle.dumps(dict(given)))
    elif (
        isinstance(given, str)
        and os.path.abspath(given) != os.path.abspath(folder)
        and not os.path.abspath(given).startswith(os.path.abspath(folder) + "/")
    ):
        raise ValueError(
            f"{type(running).__name__}.save_checkpoint() returned {given!r}: its files belong into "
            "the folder that it was given"
        )
    checkpoint = Checkpoint(folder)
    checkpoint.update_metadata({"training_iteration": running.iteration})
    return checkpoint


def _load(running: Trainable, checkpoint: Checkpoint) -> None:
    with checkpoint.as_directory() as folder:
        path = Path(folder, _DICT)
        running.load_checkpoint(pickle.loads(path.read_bytes()) if path.exists() else folder)
    running._iteration = int(checkpoint.get_metadata().get("training_iteration", 0))


_pickled.named_in("troupe.tune", Trainable)
_pickled.named_in("troupe._pickled", ClassRun)
