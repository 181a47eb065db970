"""TorchTrainer: what it is given, checked."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from troupe import _pickled
from troupe._base.identity import new_id
from troupe.train import _config, _datasets, _restore
from troupe.train._checkpoint import Checkpoint
from troupe.train._config import (
    CheckpointConfig,
    FailureConfig,
    RunConfig,
    ScalingConfig,
    of_training,
)
from troupe.train._datasets import DataConfig
from troupe.train._result import Result


@dataclass(kw_only=True)
class TorchConfig:
    """The process group of the workers: `backend` "nccl" or "gloo", else by whether they have GPUs;
    `timeout_s` of its collectives."""

    backend: str | None = None
    init_method: str = "env"
    timeout_s: float = 1800

    def __post_init__(self) -> None:
        if self.backend is not None and not isinstance(self.backend, str):
            raise TypeError(
                f"TorchConfig(backend={self.backend!r}): 'nccl', 'gloo', or None for the one that "
                "fits"
            )
        if self.init_method not in ("env", "tcp"):
            raise ValueError(
                f"TorchConfig(init_method={self.init_method!r}): 'env' or 'tcp', which are one here"
            )
        if (
            isinstance(self.timeout_s, bool)
            or not isinstance(self.timeout_s, (int, float))
            or not self.timeout_s > 0
        ):
            raise ValueError(f"TorchConfig(timeout_s={self.timeout_s!r}): more than 0 seconds")


class TorchTrainer:
    """Trains with torch on workers that form one process group, and go on from a checkpoint after
    failures.

    `train_loop_per_worker`: run by each worker, with `train_loop_config` if it takes an argument;
    it reports by `troupe.train.report`. `scaling_config`, `run_config`, `torch_config`: see
    ScalingConfig, RunConfig, TorchConfig. `datasets`: of troupe.data, by name, of which each worker
    has its share by `get_dataset_shard(name)`; `dataset_config`: a DataConfig, which of them are
    shared out. `resume_from_checkpoint`: what `get_checkpoint()` gives at the beginning of a run
    that has none of its own yet. Raises TypeError or ValueError for what can never be right; starts
    nothing. As Ray's `ray.train.torch.TorchTrainer`.

        trainer = TorchTrainer(
            train_loop,
            train_loop_config={"lr": 1e-3},
            scaling_config=ScalingConfig(num_workers=4, use_gpu=True),
        )
        print(trainer.fit().metrics)
    """

    def __init__(
        self,
        train_loop_per_worker: Callable[..., Any],
        *,
        train_loop_config: Mapping[str, Any] | None = None,
        torch_config: TorchConfig | None = None,
        scaling_config: ScalingConfig | None = None,
        run_config: RunConfig | None = None,
        datasets: Mapping[str, Any] | None = None,
        dataset_config: Any = None,
        validation_config: Any = None,
        metadata: Mapping[str, Any] | None = None,
        resume_from_checkpoint: Checkpoint | None = None,
    ) -> None:
        for name, given, instead in (
            (
                "validation_config",
                validation_config,
                "train_loop_per_worker validates before it reports",
            ),
            ("metadata", metadata, "Checkpoint.set_metadata keeps it with a checkpoint"),
        ):
            if given:
                raise ValueError(f"TorchTrainer({name}=...) is not a part of Troupe: {instead}")
        self.run_config = _of(RunConfig, "run_config", of_training(run_config))
        self.scaling_config = _of(ScalingConfig, "scaling_config", scaling_config)
        self._torch_config = _of(TorchConfig, "torch_config", torch_config)
        if resume_from_checkpoint is not None and not isinstance(
            resume_from_checkpoint, Checkpoint
        ):
            raise TypeError(
                f"TorchTrainer(resume_from_checkpoint={resume_from_checkpoint!r}): a Checkpoint, "
                "as Checkpoint.from_directory(folder) makes one"
            )
        self._resume_from = resume_from_checkpoint
        self._datasets = _datasets.checked(
            datasets, _of(DataConfig, "dataset_config", dataset_config)
        )
        self._loop, self._config = train_loop_per_worker, train_loop_config
        self._arguments = _arguments(train_loop_per_worker, train_loop_config)

    def fit(self) -> Result:
        """Trains to the end of all workers' loops and returns the Result.

        Blocks; Ctrl-C ends the workers.

        Raises WorkerGroupError, a TrainingFailedError that is also an instance of what the worker
        raised, once workers have failed more often than `FailureConfig(max_failures)`;
        ControllerError, which is one too and a PlacementError, where the cluster has no room for
        all workers; LaunchError where the loop or its config cannot travel; OSError where the run's
        folder cannot be written, BlockingIOError where another process trains in it;
        FileNotFoundError where `resume_from_checkpoint` is not there.
        """
        from troupe.train import _fit  # brings along what actors need

        if self._resume_from is not None:
            with self._resume_from.as_directory():
                pass
        run = self.run_config
        name = run.name or f"train_{time.strftime('%Y-%m-%d_%H-%M-%S')}_{new_id()[:6]}"
        backend = self._torch_config.backend or ("nccl" if self.scaling_config.use_gpu else "gloo")
        plan = _fit.Plan(
            self._loop,
            self._arguments,
            self.scaling_config,
            run,
            backend,
            self._torch_config.timeout_s,
            self._resume_from,
            self._datasets,
            self._keep,
        )
        return _fit.train(plan, run.storage_path or _config.DEFAULT_STORAGE, name)

    @classmethod
    def can_restore(cls, path: str | os.PathLike[str], storage_filesystem: Any = None) -> bool:
        """Return True if the folder of a run, `storage_path/name`, has what `restore` needs.

        As Ray's.
        """
        return _restore.can_restore(_folder_of_run("can_restore", path, storage_filesystem))

    @classmethod
    def restore(
        cls,
        path: str | os.PathLike[str],
        train_loop_per_worker: Callable[..., Any] | None = None,
        train_loop_config: Mapping[str, Any] | None = None,
        *,
        torch_config: TorchConfig | None = None,
        scaling_config: ScalingConfig | None = None,
        datasets: Mapping[str, Any] | None = None,
        storage_filesystem: Any = None,
    ) -> TorchTrainer:
        """Make the trainer of a run again, from the run's folder.

        `fit()` then goes on from the latest checkpoint. As Ray's.

        What is given here takes the place of what the trainer had. Datasets are not kept: those of
        the run are given again.

        Args:
            path: the folder of the run, `storage_path/name`.

        Raises:
            ValueError: if the folder has no trainer, if a dataset of the run is not given, or if
            the loop or its config cannot be made again.
            TroupeError: if a file of the trainer is damaged. The error names it.
            PermissionError: if the loop or its config may be another user's file.
        """
        kept = _restore.read(_folder_of_run("restore", path, storage_filesystem))
        if missing := sorted(set(kept.datasets) - set(datasets or ())):
            raise ValueError(
                f"TorchTrainer.restore({str(kept.path)!r}): the run has datasets that are to be "
                "given again: "
                f"datasets={{{', '.join(f'{name!r}: ...' for name in missing)}}}"
            )
        run = RunConfig(
            name=kept.path.name,
            storage_path=kept.path.parent,
            worker_runtime_env=kept.worker_runtime_env,
            failure_config=_restore.made(FailureConfig, kept.failure),
            checkpoint_config=_restore.made(CheckpointConfig, kept.checkpoint),
        )
        split = [name for name in datasets or () if name in kept.split or name not in kept.datasets]
        return cls(
            train_loop_per_worker or kept.load("loop"),
            train_loop_config=kept.load("config")
            if train_loop_config is None
            else train_loop_config,
            torch_config=torch_config or _restore.made(TorchConfig, kept.torch),
            scaling_config=scaling_config or _restore.made(ScalingConfig, kept.scaling),
            run_config=run,
            datasets=datasets,
            dataset_config=DataConfig(datasets_to_split=split),
            resume_from_checkpoint=None
            if kept.resume_from is None
            else Checkpoint(kept.resume_from),
        )

    def _keep(self, folder: Path) -> None:
        run, fields_of = self.run_config, _restore.fields_of
        _restore.keep(
            folder,
            loop=self._loop,
            config=self._config,
            scaling=fields_of(self.scaling_config),
            failure=fields_of(run.failure_config),
            checkpoint=fields_of(run.checkpoint_config),
            torch=fields_of(self._torch_config),
            worker_runtime_env=run.worker_runtime_env,
            resume_from=self._resume_from and self._resume_from.path,
            datasets=sorted(self._datasets.by_name),
            split=sorted(self._datasets.split),
        )


def _folder_of_run(name: str, path: Any, storage_filesystem: Any) -> Path:
    if storage_filesystem is not None:
        raise ValueError(
            f"TorchTrainer.{name}(storage_filesystem=...) is not a part of Troupe: the path is a "
            "folder, of a mounted file system perhaps"
        )
    _config.check_place(None, path)
    return Path(os.path.abspath(os.path.expanduser(os.fspath(path))))


def _of(cls: type, name: str, given: Any) -> Any:
    if given is not None and not isinstance(given, cls):
        raise TypeError(f"TorchTrainer({name}={given!r}): a {cls.__name__}")
    return cls() if given is None else given


def _arguments(loop: Any, config: Any) -> tuple[Any, ...]:
    """Return the arguments of the loop: its config, or nothing."""
    if not callable(loop) or inspect.iscoroutinefunction(loop):
        raise TypeError(
            f"TorchTrainer(train_loop_per_worker={loop!r}): a function, which each worker runs"
        )
    if config is not None and not isinstance(config, Mapping):
        raise TypeError(
            f"TorchTrainer(train_loop_config={config!r}): a dict, the one argument of "
            "train_loop_per_worker"
        )
    try:
        signature = inspect.signature(loop)
    except ValueError:  # raised for a function of an extension
        return ({},) if config is None else (config,)
    for arguments in (({} if config is None else config,), ()):
        try:
            signature.bind(*arguments)
        except TypeError:
            continue
        return arguments
    raise ValueError(
        "train_loop_per_worker takes one argument, its config, or none: "
        f"{getattr(loop, '__name__', loop)}{signature}"
    )


_pickled.named_in("troupe.train.torch", TorchConfig, TorchTrainer)
