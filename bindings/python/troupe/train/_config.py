"""Configuration of a training: number and size of the workers, where its results are stored, how
failures count, which checkpoints stay."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from troupe import _pickled
from troupe._base import strategies as _strategies
from troupe._cluster import selectors

DEFAULT_STORAGE = "~/troupe_results"


def refuse(config: Any, words: Mapping[str, str]) -> None:
    """Raises ValueError for a field of Ray's that is set and means nothing here, with what to do
    instead."""
    for name, instead in words.items():
        if getattr(config, name):
            raise ValueError(
                f"{type(config).__name__}({name}={getattr(config, name)!r}) is not a part of "
                f"Troupe: {instead}"
            )


def check_place(name: Any, storage_path: Any) -> None:
    """Raises ValueError or TypeError for what cannot be the name and the place of a run's
    folder."""
    if name is not None and (
        not isinstance(name, str) or not name or "/" in name or name.startswith(".")
    ):
        raise ValueError(
            f"RunConfig(name={name!r}): the name of a folder, without '/' and a dot in front"
        )
    if storage_path is not None and not isinstance(storage_path, (str, os.PathLike)):
        raise TypeError(f"RunConfig(storage_path={storage_path!r}): the path of a folder")
    if "://" in str(storage_path or ""):
        raise ValueError(
            f"RunConfig(storage_path={str(storage_path)!r}): a folder, not a URI: mount it, and "
            "give its path"
        )


def is_count(value: Any, least: int) -> bool:
    """Return True if `value` is a whole number of at least `least`."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


@dataclass(kw_only=True)
class ScalingConfig:
    """How many workers, and what each holds.

    `num_workers`: processes, each a rank, all started before any of them trains. `use_gpu`: one GPU
    for each. `resources_per_worker`: amounts of each, `{"CPU": 2, "GPU": 1}`; else one GPU with
    `use_gpu`, one CPU without. `placement_strategy`: as of placement groups. `accelerator_type`:
    the type of GPU that its node must have. `label_selector`: of the node of each worker, one for
    all or a list. Raises ValueError or TypeError for what can never be right.

        ScalingConfig(num_workers=8, use_gpu=True)
    """

    num_workers: int = 1
    use_gpu: bool = False
    resources_per_worker: Mapping[str, float] | None = None
    placement_strategy: str = "PACK"
    accelerator_type: str | None = None
    label_selector: Mapping[str, str] | Sequence[Mapping[str, str]] | None = None
    trainer_resources: Mapping[str, float] | None = None
    use_tpu: bool = False
    topology: str | None = None

    def __post_init__(self) -> None:
        refuse(
            self,
            {
                "trainer_resources": "nothing but the workers holds resources",
                "use_tpu": "Troupe knows no TPUs",
                "topology": "label_selector= says which nodes",
            },
        )
        if isinstance(self.num_workers, (tuple, list)):
            raise TypeError(
                f"ScalingConfig(num_workers={self.num_workers!r}): a fixed number of workers, not "
                "a range"
            )
        if not is_count(self.num_workers, 1):
            kind = ValueError if is_count(self.num_workers, -1 << 62) else TypeError
            raise kind(
                f"ScalingConfig(num_workers={self.num_workers!r}): a whole number of at least 1"
            )
        if not isinstance(self.use_gpu, bool):
            raise TypeError(f"ScalingConfig(use_gpu={self.use_gpu!r}): True or False")
        _strategies.check(self.placement_strategy)
        self._check_resources()
        if (
            isinstance(self.label_selector, Sequence)
            and len(self.label_selector) != self.num_workers
        ):
            raise ValueError(
                f"ScalingConfig(label_selector=...): {len(self.label_selector)} selectors for "
                f"{self.num_workers} workers: one for "
                "each, or one dict for all"
            )

    def _check_resources(self) -> None:
        given = self.resources_per_worker
        if given is None:
            return
        if not isinstance(given, Mapping):
            raise TypeError(
                f"ScalingConfig(resources_per_worker={given!r}): a dict of amounts, {{'CPU': 2}}"
            )
        for name, amount in given.items():
            if (
                not isinstance(name, str)
                or isinstance(amount, bool)
                or not isinstance(amount, (int, float))
                or not amount >= 0
            ):
                raise ValueError(
                    f"ScalingConfig(resources_per_worker={dict(given)!r}): {name!r}: {amount!r} is "
                    "no amount of a resource"
                )
        if self.use_gpu and not given.get("GPU", 1):
            raise ValueError(
                f"ScalingConfig(use_gpu=True, resources_per_worker={dict(given)!r}): no GPU is "
                "asked for"
            )
        if not self.use_gpu and given.get("GPU"):
            raise ValueError(
                f"ScalingConfig(resources_per_worker={dict(given)!r}): use_gpu=True goes with a GPU"
            )

    def bundle(self) -> dict[str, float]:
        """Return the resources that each worker holds."""
        held = {
            name: amount for name, amount in (self.resources_per_worker or {}).items() if amount
        }
        if self.use_gpu:
            held.setdefault("GPU", 1)
        return held or {"CPU": 1}

    def selectors(self) -> list[dict[str, str]] | None:
        """Return the label selector for each worker's node; None for any node."""
        given = self.label_selector
        each = (
            [dict(one) for one in given]
            if isinstance(given, Sequence)
            else [dict(given or {})] * self.num_workers
        )
        if self.accelerator_type:
            each = [{**one, selectors.GPU_TYPE: self.accelerator_type} for one in each]
        return each if any(each) else None


@dataclass(kw_only=True)
class FailureConfig:
    """How often all workers are started again, from the latest checkpoint, after a failure of one:
    `max_failures` times, -1 for any number."""

    max_failures: int = 0
    fail_fast: bool | str = False

    def __post_init__(self) -> None:
        refuse(
            self,
            {"fail_fast": "max_failures=0, the default, ends the training at its first failure"},
        )
        if not is_count(self.max_failures, -1):
            raise ValueError(
                f"FailureConfig(max_failures={self.max_failures!r}): a whole number, -1 for any "
                "number of failures"
            )


@dataclass(kw_only=True)
class CheckpointConfig:
    """The rule for which checkpoints stay: the latest, and the best `num_to_keep` by
    `checkpoint_score_attribute`, a key of the metrics (`"val/loss"` for one inside), or the latest
    ones without it. None: all. A checkpoint without a number there counts as worse than all others.
    """

    num_to_keep: int | None = None
    checkpoint_score_attribute: str | None = None
    checkpoint_score_order: str = "max"
    checkpoint_frequency: int = 0
    checkpoint_at_end: bool | None = None

    def __post_init__(self) -> None:
        refuse(
            self,
            {
                "checkpoint_frequency": "the training loop reports a checkpoint when it has one",
                "checkpoint_at_end": "the training loop reports its last checkpoint itself",
            },
        )
        if self.num_to_keep is not None and not is_count(self.num_to_keep, 1):
            raise ValueError(
                f"CheckpointConfig(num_to_keep={self.num_to_keep!r}): a whole number of at least "
                "1, or None for all"
            )
        if self.checkpoint_score_attribute is not None and not isinstance(
            self.checkpoint_score_attribute, str
        ):
            raise TypeError(
                "CheckpointConfig(checkpoint_score_attribute="
                f"{self.checkpoint_score_attribute!r}): "
                "a key of the metrics"
            )
        if self.checkpoint_score_order not in ("max", "min"):
            raise ValueError(
                f"CheckpointConfig(checkpoint_score_order={self.checkpoint_score_order!r}): 'max' "
                "or 'min'"
            )


@dataclass(kw_only=True)
class RunConfig:
    """The name of a run and the place of its results: the folder `storage_path/name`.

    `name`: one that is there already is gone on with, from its latest checkpoint; without one the
    run has a new name. `storage_path`: ~/troupe_results unless given; of workers on several hosts a
    folder that all of them see. `worker_runtime_env`: the workers' runtime_env. `verbose` is taken
    and means nothing.
    """

    name: str | None = None
    storage_path: str | os.PathLike[str] | None = None
    failure_config: FailureConfig | None = None
    checkpoint_config: CheckpointConfig | None = None
    worker_runtime_env: Mapping[str, Any] | None = None
    verbose: object = None
    storage_filesystem: None = None
    callbacks: None = None
    logging_config: None = None
    sync_config: None = None
    stop: None = None
    progress_reporter: None = None
    log_to_file: bool | None = None

    def __post_init__(self) -> None:
        refuse(
            self,
            {
                "storage_filesystem": "storage_path= is a folder, of a mounted file system perhaps",
                "callbacks": "the training loop calls what it needs",
                "logging_config": "`troupe logs` has what the workers print",
                "sync_config": "storage_path= is the one place of a run's files",
                "stop": "the training loop ends when it returns",
                "progress_reporter": "what the workers print is shown as it comes",
                "log_to_file": "`troupe logs` has what the workers print",
            },
        )
        self.failure_config = self._of(FailureConfig, "failure_config")
        self.checkpoint_config = self._of(CheckpointConfig, "checkpoint_config")
        check_place(self.name, self.storage_path)

    def _of(self, cls: type, name: str) -> Any:
        given = getattr(self, name)
        if given is not None and not isinstance(given, cls):
            raise TypeError(f"RunConfig({name}={given!r}): a {cls.__name__}")
        return cls() if given is None else given


def of_training(given: Any) -> Any:
    """A RunConfig of sweeps, which programs have that take it from `ray.air`, as the one of
    trainings; all else as it is. Raises ValueError where it says what is of sweeps alone."""
    kind = type(given)
    if (kind.__module__, kind.__qualname__) != ("troupe.tune", "RunConfig"):
        return given
    known = {each.name for each in fields(RunConfig)}
    said = {
        each.name: value
        for each in fields(given)
        if each.name in known and (value := getattr(given, each.name)) not in (None, False)
    }
    return RunConfig(**{**said, "failure_config": FailureConfig(**vars(given.failure_config))})


_pickled.named_in("troupe.train", ScalingConfig, FailureConfig, CheckpointConfig, RunConfig)
