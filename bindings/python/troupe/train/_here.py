"""Functions for training code, wherever it runs: `report()`, `get_checkpoint()`, `get_context()`.

Who runs a training loop enters a Loop in the process, and what the loop says goes there: a worker
of a trainer has one, and so may whatever else runs code that reports.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from troupe import _pickled
from troupe._base import callbacks as _callbacks
from troupe.train import _metrics
from troupe.train._checkpoint import Checkpoint

if TYPE_CHECKING:
    from troupe.data import DataIterator


@dataclass(frozen=True)
class TrainContext:
    """The context of a worker: its rank and its run. Its methods have Ray's names."""

    world_rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    local_world_size: int = 1
    node_rank: int = 0
    name: str = ""
    path: str = ""
    resources: Mapping[str, float] = field(default_factory=dict)

    def get_world_rank(self) -> int:
        """Return this worker's rank among all workers, from 0."""
        return self.world_rank

    def get_world_size(self) -> int:
        """How many workers there are."""
        return self.world_size

    def get_local_rank(self) -> int:
        """Return this worker's rank among this node's workers, from 0."""
        return self.local_rank

    def get_local_world_size(self) -> int:
        """How many of them are on this node."""
        return self.local_world_size

    def get_node_rank(self) -> int:
        """Return the rank of this node among the nodes that have workers, from 0 in the order of
        ranks."""
        return self.node_rank

    def get_experiment_name(self) -> str:
        """The name of the run."""
        return self.name

    def get_trial_name(self) -> str:
        """The name of the run, which is one trial."""
        return self.name

    def get_trial_id(self) -> str:
        """The same: a run is found by its name."""
        return self.name

    def get_trial_dir(self) -> str:
        """The run's folder, where checkpoints and `progress.jsonl` are."""
        return self.path

    def get_trial_resources(self) -> dict[str, float]:
        """Return the resources that this worker holds."""
        return dict(self.resources)


class Loop(ABC):
    """The receiver of a training loop's reports in this process."""

    context: TrainContext
    shards: Mapping[str, DataIterator] = {}
    device_index: int | None = None

    @abstractmethod
    def report(
        self, metrics: dict[str, Any], checkpoint: Checkpoint | None, dir_name: str | None
    ) -> None:
        """See report()."""

    @abstractmethod
    def latest(self) -> Checkpoint | None:
        """See get_checkpoint()."""


_loop: Loop | None = None
_pid = 0
_at_its_end: list[Callable[[], Any]] = []


def enter(loop: Loop | None) -> None:
    """From now on this process trains, and reports there; None: not any more.

    What was to be done at the end of the one before is done.
    """
    global _loop, _pid
    actions = _at_its_end[:]
    _at_its_end.clear()
    if _pid == os.getpid():
        for action in actions:
            _callbacks.run("the end of a training", action)
    _loop, _pid = loop, os.getpid()


def at_its_end(action: Callable[[], Any]) -> None:
    """Calls it on the thread of what trains in this process now, once that has returned or
    raised."""
    _at_its_end.append(action)


def device_index() -> int | None:
    """The number of this worker's GPU, as it sees them; None: it has none, or is no worker."""
    return _loop.device_index if _loop is not None and _pid == os.getpid() else None


def is_entered() -> bool:
    """Return True if this process trains."""
    return _loop is not None and _pid == os.getpid()


def current(what: str) -> Loop:
    """The loop's. Raises RuntimeError where nothing trains; `what` is asked for."""
    if _loop is None:
        raise RuntimeError(
            f"{what} is for code that a trainer's workers or a sweep's trials run: "
            "TorchTrainer(train_loop_per_worker, ...).fit(), "
            "troupe.tune.Tuner(train, ...).fit()"
        )
    if _pid != os.getpid():
        raise RuntimeError(
            f"{what} was called in process {os.getpid()}, which the process that trains ({_pid}) "
            "has forked, a DataLoader's perhaps: "
            "it is for that one itself"
        )
    return _loop


def report(
    metrics: Mapping[str, Any],
    checkpoint: Checkpoint | None = None,
    checkpoint_dir_name: str | None = None,
) -> None:
    """Says how the training goes, and keeps a checkpoint.

    A barrier: returns once every worker has called it as often, and the checkpoint is whole on the
    disk of the run's folder. The metrics of rank 0 count. `checkpoint`: of one rank or of several,
    whose files become one folder (of files of one name the lowest rank's); the folder given is
    copied, and the caller's to remove. `checkpoint_dir_name`: of the kept folder, another one each
    time. Raises TypeError or ValueError for what are no metrics, FileNotFoundError or another
    OSError where the checkpoint cannot be kept, RuntimeError outside of a worker.

        report({"loss": loss}, checkpoint=Checkpoint.from_directory(folder) if rank == 0 else None)
    """
    loop = current("report()")
    if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
        raise TypeError(
            f"report(checkpoint={checkpoint!r}): a Checkpoint, as "
            "Checkpoint.from_directory(folder) makes one"
        )
    name = checkpoint_dir_name
    if name is not None and (
        not isinstance(name, str)
        or not name
        or "/" in name
        or name.startswith(".")
        or name.endswith(".new")
    ):
        raise ValueError(
            f"report(checkpoint_dir_name={name!r}): the name of a folder, without '/' and a dot in "
            "front"
        )
    loop.report(_metrics.check(metrics), checkpoint, name)


def get_checkpoint() -> Checkpoint | None:
    """The latest checkpoint of the run: what to go on from at the loop's beginning, then what
    `report` kept last. None: there is none.

    Raises RuntimeError outside of a worker.
    """
    return current("get_checkpoint()").latest()


def get_context() -> TrainContext:
    """Return this worker's context: its rank, the number of workers, its run. Raises RuntimeError
    outside of a worker.

    rank = get_context().get_world_rank()
    """
    return current("get_context()").context


def get_dataset_shard(dataset_name: str | None = None) -> DataIterator:
    """This worker's share of the trainer's dataset of that name (None: "train"): a
    troupe.data.DataIterator, of which each `for` is an epoch.

    Raises KeyError where the trainer was given none of that name, RuntimeError outside of a worker.

        for batch in get_dataset_shard("train").iter_torch_batches(batch_size=256): ...
    """
    shards = current("get_dataset_shard()").shards
    name = "train" if dataset_name is None else dataset_name
    if name not in shards:
        there = (
            f"its datasets are {', '.join(shards)}"
            if shards
            else "it was given none: TorchTrainer(..., datasets={...})"
        )
        raise KeyError(
            f"get_dataset_shard({name!r}): the trainer has no dataset of that name; {there}"
        )
    return shards[name]


_pickled.named_in(
    "troupe.train", TrainContext, get_checkpoint, get_context, get_dataset_shard, report
)
