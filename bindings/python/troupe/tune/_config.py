"""Configuration of a sweep: which trials and how many, how failures count, which checkpoints stay,
where it is stored."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from troupe import _pickled
from troupe.train import _config as _train
from troupe.train._config import DEFAULT_STORAGE, is_count, refuse

if TYPE_CHECKING:
    import datetime
    from collections.abc import Mapping

    from troupe.tune._core import deciding
    from troupe.tune._core.deciding import Scheduler
    from troupe.tune.search.basic_variant import BasicVariantGenerator
    from troupe.tune.search.searcher import Searcher
    from troupe.tune.stopper import Stopper

    SearchAlgorithm = deciding.Searcher | Searcher | BasicVariantGenerator
    Stop = (
        Stopper
        | Mapping[str, float]
        | Callable[[str, dict[str, Any]], bool]
        | list[Stopper | Mapping[str, float] | Callable[[str, dict[str, Any]], bool]]
    )

__all__ = ["DEFAULT_STORAGE", "CheckpointConfig", "FailureConfig", "RunConfig", "TuneConfig"]


@dataclass(kw_only=True)
class TuneConfig:
    """The choice of trials, and their number.

    `metric`, `mode` ("max" or "min"): what is compared; asked for by `get_best_result` too.
    `num_samples`: how many configurations, of a grid how many times each; -1: until something stops
    the sweep. `search_alg`: who proposes them; random and grid without one. `scheduler`: who stops
    them early; none without one. `max_concurrent_trials`: beside what there is room for.
    `time_budget_s`: the sweep is over then. `reuse_actors`: a process takes one trial after the
    other, where a trial left it as it was. `trial_name_creator`, `trial_dirname_creator`: of a
    trial, with `trial_id` and `config`, its name where people see it and that of its folder.
    `chdir_to_trial_dir`: whether that folder is its working directory; None: unless
    TROUPE_CHDIR_TO_TRIAL_DIR=0 is set, or RAY_CHDIR_TO_TRIAL_DIR=0. Raises ValueError or TypeError
    for what can never be right.
    """

    metric: str | None = None
    mode: str | None = None
    search_alg: SearchAlgorithm | None = None
    scheduler: Scheduler | None = None
    num_samples: int = 1
    max_concurrent_trials: int | None = None
    time_budget_s: float | datetime.timedelta | None = None
    reuse_actors: bool = False
    trial_name_creator: Callable[[Any], str] | None = None
    trial_dirname_creator: Callable[[Any], str] | None = None
    chdir_to_trial_dir: bool | None = None

    def __post_init__(self) -> None:
        if self.metric is not None and not isinstance(self.metric, str):
            raise TypeError(f"TuneConfig(metric={self.metric!r}): a key of what the trials report")
        if self.mode not in (None, "max", "min"):
            raise ValueError(f"TuneConfig(mode={self.mode!r}): 'max' or 'min'")
        if not is_count(self.num_samples, 1) and self.num_samples != -1:
            raise ValueError(
                f"TuneConfig(num_samples={self.num_samples!r}): a whole number of at least 1, or "
                "-1: until something stops the sweep"
            )
        if self.max_concurrent_trials is not None and not is_count(self.max_concurrent_trials, 0):
            raise ValueError(
                f"TuneConfig(max_concurrent_trials={self.max_concurrent_trials!r}): a whole number "
                "of at least 1, or None"
            )
        self.max_concurrent_trials = self.max_concurrent_trials or None  # 0 is Ray's word for none
        if self.time_budget_s is not None:
            seconds = (
                self.time_budget_s.total_seconds()
                if hasattr(self.time_budget_s, "total_seconds")
                else self.time_budget_s
            )
            if (
                isinstance(seconds, bool)
                or not isinstance(seconds, (int, float))
                or not seconds > 0
            ):
                raise ValueError(
                    f"TuneConfig(time_budget_s={self.time_budget_s!r}): more than 0 seconds, or a "
                    "timedelta"
                )
            self.time_budget_s = float(seconds)


@dataclass(kw_only=True)
class FailureConfig:
    """How often a trial that fails is started again, from its latest checkpoint: `max_failures`
    times, -1 for any number. A lost node does not count.

    `fail_fast`: whether the first trial that has failed for good ends the sweep; "raise": `fit()`
    raises its error then.
    """

    max_failures: int = 0
    fail_fast: bool | str = False

    def __post_init__(self) -> None:
        if not is_count(self.max_failures, -1):
            raise ValueError(
                f"FailureConfig(max_failures={self.max_failures!r}): a whole number, -1 for any "
                "number of failures"
            )
        if self.fail_fast not in (True, False, "raise"):
            raise ValueError(f"FailureConfig(fail_fast={self.fail_fast!r}): True, False or 'raise'")
        if self.fail_fast and self.max_failures:
            raise ValueError(
                f"FailureConfig(max_failures={self.max_failures}, fail_fast={self.fail_fast!r}): "
                "what ends the sweep is not tried again"
            )


@dataclass(kw_only=True)
class CheckpointConfig(_train.CheckpointConfig):
    """The rule for which checkpoints of each trial stay: see `troupe.train.CheckpointConfig`;
    checkpoints that a trial continues from always stay.

    Of a Trainable class: `checkpoint_frequency`: one after so many steps, 0: none;
    `checkpoint_at_end`: one after the last.
    """

    checkpoint_frequency: int = 0
    checkpoint_at_end: bool | None = None

    def __post_init__(self) -> None:
        frequency, at_end = self.checkpoint_frequency, self.checkpoint_at_end
        self.checkpoint_frequency, self.checkpoint_at_end = 0, None
        super().__post_init__()
        self.checkpoint_frequency, self.checkpoint_at_end = frequency, at_end
        if not is_count(frequency, 0):
            raise ValueError(
                f"CheckpointConfig(checkpoint_frequency={frequency!r}): a whole number of steps, 0 "
                "for none"
            )


@dataclass(kw_only=True)
class RunConfig:
    """The name of a sweep and the folder it is stored in, `storage_path/name`.

    `name`: of its own, else one is made. `storage_path`: ~/troupe_results unless given; of a
    cluster of several hosts a folder that all of them see. `stop`: when a trial has done enough: a
    dict of metrics and the numbers from which on (`>=`), a function of (trial_id, result), or a
    Stopper. `verbose`: 0: nothing is shown of the sweep itself. `callbacks`: told of what happens,
    see Callback.
    """

    name: str | None = None
    storage_path: str | os.PathLike[str] | None = None
    failure_config: FailureConfig | None = None
    checkpoint_config: CheckpointConfig | None = None
    stop: Stop | None = None
    callbacks: Sequence[Any] | None = None
    verbose: int | None = None
    log_to_file: bool = False
    sync_config: None = None
    progress_reporter: None = None
    storage_filesystem: None = None

    def __post_init__(self) -> None:
        refuse(
            self,
            {
                "storage_filesystem": "storage_path= is a folder, of a mounted file system perhaps",
                "sync_config": "storage_path= is the one place of a sweep's files",
                "progress_reporter": "verbose=0 shows nothing, and callbacks hear of everything",
                "log_to_file": "`troupe logs` has what the trials print",
            },
        )
        self.failure_config = self._of(FailureConfig, "failure_config")
        self.checkpoint_config = self._of(CheckpointConfig, "checkpoint_config")
        _train.check_place(self.name, self.storage_path)
        if self.stop is not None:
            from troupe.tune import stopper

            stopper.made(self.stop)  # raises TypeError for what is none

    def _of(self, cls: type, name: str) -> Any:
        given = getattr(self, name)
        if given is not None and not isinstance(given, cls):
            if isinstance(
                given, getattr(_train, cls.__name__)
            ):  # keys of troupe.train, which Ray's programs import for them
                return cls(**{field: getattr(given, field) for field in given.__dataclass_fields__})
            raise TypeError(f"RunConfig({name}={given!r}): a {cls.__name__}")
        return cls() if given is None else given


_pickled.named_in("troupe.tune", TuneConfig, FailureConfig, CheckpointConfig, RunConfig)
