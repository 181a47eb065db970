"""Callbacks: what hears of a sweep while it runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from troupe import _pickled
from troupe.train._checkpoint import Checkpoint


@dataclass(eq=False)
class TrialView:
    """A trial as callbacks see it.

    `status`: PENDING, RUNNING, PAUSED, TERMINATED or ERROR, as in Ray; `stopped`: why it was ended
    early, if it was.
    """

    trial_id: str
    trial_name: str
    config: Mapping[str, Any]
    path: str
    status: str = "PENDING"
    last_result: dict[str, Any] = field(default_factory=dict)
    checkpoint: Checkpoint | None = None
    error: str = ""
    stopped: str = ""

    @property
    def local_path(self) -> str:
        """The trial's folder, which is there if something was written there."""
        return self.path

    logdir = local_path

    @property
    def evaluated_params(self) -> Mapping[str, Any]:
        """The configuration, as Ray's loggers ask for it."""
        return self.config

    def init_local_path(self) -> None:
        """Makes the trial's folder. Raises OSError where that cannot be."""
        os.makedirs(self.path, exist_ok=True)

    def __str__(self) -> str:
        return self.trial_name


class Callback:
    """Hears of a sweep: override what matters.

    For `RunConfig(callbacks=[...])`. As Ray's `tune.Callback`.

    It is called on a thread of its own, one call at a time, after what it hears of is in the
    journal. What it raises is said on stderr, the first time, and ends nothing. A callback that is
    10,000 calls behind misses some, and how many is said. `trials`: all that have been made, the
    same list each time.

        class Prints(tune.Callback):
            def on_trial_result(self, iteration, trials, trial, result, **info):
                print(trial, result["acc"])
    """

    def setup(
        self,
        stop: object = None,
        num_samples: int | None = None,
        total_num_samples: int | None = None,
        **info: object,
    ) -> None:
        """Before all other calls."""

    def on_step_begin(self, iteration: int, trials: Sequence[TrialView], **info: object) -> None:
        """Before a result is handed on."""

    def on_step_end(self, iteration: int, trials: Sequence[TrialView], **info: object) -> None:
        """After a result was handed on."""

    def on_trial_start(
        self, iteration: int, trials: Sequence[TrialView], trial: TrialView, **info: object
    ) -> None:
        """A trial runs for the first time, or again."""

    def on_trial_restore(
        self, iteration: int, trials: Sequence[TrialView], trial: TrialView, **info: object
    ) -> None:
        """A trial goes on from a checkpoint."""

    def on_trial_save(
        self, iteration: int, trials: Sequence[TrialView], trial: TrialView, **info: object
    ) -> None:
        """A checkpoint of a trial is kept."""

    def on_trial_result(
        self,
        iteration: int,
        trials: Sequence[TrialView],
        trial: TrialView,
        result: dict[str, Any],
        **info: object,
    ) -> None:
        """A trial has reported."""

    def on_trial_complete(
        self, iteration: int, trials: Sequence[TrialView], trial: TrialView, **info: object
    ) -> None:
        """A trial is over, by itself or stopped."""

    def on_trial_recover(
        self, iteration: int, trials: Sequence[TrialView], trial: TrialView, **info: object
    ) -> None:
        """A trial has failed and will be tried again."""

    def on_trial_error(
        self, iteration: int, trials: Sequence[TrialView], trial: TrialView, **info: object
    ) -> None:
        """A trial has failed for good."""

    def on_checkpoint(
        self,
        iteration: int,
        trials: Sequence[TrialView],
        trial: TrialView,
        checkpoint: Checkpoint,
        **info: object,
    ) -> None:
        """A checkpoint of a trial is kept."""

    def on_experiment_end(self, trials: Sequence[TrialView], **info: object) -> None:
        """The sweep is over, or ends here."""

    def get_state(self) -> dict[str, Any] | None:
        """Ray's; not asked for: a callback that keeps something across restarts keeps it itself."""
        return None

    def set_state(self, state: dict[str, Any]) -> None:
        """Ray's; see get_state."""


@dataclass
class SweepSeen:
    """The sweep that callbacks hear of.

    `outcome`: once it is over: "finished", "failed", or "stopped": it can be gone on with.
    """

    name: str
    path: str
    metric: str | None = None
    mode: str | None = None
    total: int | None = None
    quiet: bool = False
    outcome: str = ""


class SweepLogger(Callback):
    """A callback that knows which sweep it is of, and has a thread of its own, for it may wait for
    a server."""

    def belongs_to(self, sweep: SweepSeen) -> None:
        """Before all other calls, on the thread of `fit`, which must not wait."""

    def caught_up(self) -> None:
        """Nothing more waits to be heard now: what was put aside can be written together."""


_pickled.named_in("troupe.tune", Callback, TrialView)
