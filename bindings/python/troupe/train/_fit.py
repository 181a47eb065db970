"""`fit()`: attempts at a training, each a gang of workers, until one ends well or failures are too
many."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import troupe
from troupe import exceptions
from troupe._base import visible as _visible
from troupe._cluster import status_lines
from troupe._code import capture
from troupe.train import _failures, _retention
from troupe.train._checkpoint import Checkpoint
from troupe.train._config import RunConfig, ScalingConfig
from troupe.train._datasets import Datasets
from troupe.train._errors import ControllerError, WorkerGroupError
from troupe.train._gang import Gang, WorkersFailed
from troupe.train._reports import Barrier, Round, Uneven
from troupe.train._result import Result
from troupe.train._run_folder import RunFolder

LATE_S = 60.0
"""How long nothing is heard of any rank, while some wait for others in a report, before that is
said."""


@dataclass(frozen=True)
class Plan:
    """The checked plan of a training."""

    loop: Callable[..., Any]
    arguments: tuple[Any, ...]
    scaling: ScalingConfig
    run: RunConfig
    backend: str
    timeout_s: float
    resume_from: Checkpoint | None
    datasets: Datasets
    keep: Callable[[Path], None]
    """Keeps the trainer in the run's folder"""


class Training:
    """A call of `fit()`, in the run's folder."""

    def __init__(self, plan: Plan, folder: RunFolder) -> None:
        self._plan, self._folder = plan, folder
        self._metrics: dict[str, Any] | None = None
        self._reported = False  # in this attempt
        self._shown: dict[str, Any] = {}  # metrics of checkpoints, as they were reported

    def run(self) -> Result:
        """Trains. Blocks. Raises what fit() does."""
        payload = troupe.put(
            capture.dumps(self._plan.loop, self._plan.arguments, {}, what="train_loop_per_worker")
        )
        self._plan.keep(self._folder.path)
        limit = self._plan.run.failure_config.max_failures  # type: ignore[union-attr]
        failures = fruitless = 0
        while True:
            gang = Gang(
                self._plan.scaling,
                self._folder.name,
                str(self._folder.path),
                self._plan.run.worker_runtime_env,
            )
            try:
                value = self._attempt(gang, payload, failures)
                gang.finish()
                return self._result(value)
            except WorkersFailed as end:
                failures += 1
                fruitless = 0 if self._reported else fruitless + 1
                if not _failures.may_restart(failures, limit):
                    raise self._error(end.failed, gang, failures) from None
                self._say_restart(end.failed, failures, limit)
            finally:
                gang.close()
            if pause := _failures.pause_s(fruitless):
                threading.Event().wait(pause)

    def _attempt(self, gang: Gang, payload: Any, failures: int) -> Any:
        """Rank 0's value. Raises WorkersFailed, ControllerError."""
        plan, folder, self._reported = self._plan, self._folder, False
        staging = folder.restarted()
        start = folder.latest() or plan.resume_from
        try:
            gang.place(wait_for_nodes=failures > 0)
        except exceptions.PlacementError as error:
            cpus = "\n  ScalingConfig(use_gpu=False) trains on CPUs" if plan.scaling.use_gpu else ""
            raise exceptions.with_type_of(
                ControllerError,
                error,
                f"run {folder.name}: {plan.scaling.num_workers} workers cannot be placed: "
                f"{error}{cpus}",
                controller_failure=error,
            ) from error
        gang.start(
            payload,
            backend=plan.backend,
            timeout_s=plan.timeout_s,
            start=start,
            staging=str(staging),
            nonce=folder.nonce,
            shards=plan.datasets.shards(plan.scaling.num_workers),
        )
        if not failures:
            nodes = len(set(gang.hosts.values()))
            status_lines.say(
                f"troupe.train: run {folder.name}: {plan.scaling.num_workers} workers on {nodes} "
                f"host{'s' if nodes > 1 else ''}, in "
                f"{folder.path}{f', from {start.path}' if start else ''}"
            )
            if slow := gang.slow_paths():
                status_lines.say(
                    "\n  ".join(
                        [
                            f"troupe.train: run {folder.name}: slow network:",
                            *map(_visible.name, slow),
                        ]
                    )
                )
        return self._follow(gang, staging)

    def _follow(self, gang: Gang, staging: Path) -> Any:
        world = self._plan.scaling.num_workers
        barrier, first, said = Barrier(world), None, ""
        while True:
            event = gang.event(LATE_S if barrier.waits() != said else None)
            if event is None:
                said = barrier.waits()
                status_lines.say(
                    f"troupe.train: run {self._folder.name}: nothing is heard for {LATE_S:g} s: "
                    f"{said}; `troupe list actors` and "
                    "`troupe stack ACTOR` show where a worker is"
                )
                continue
            kind, rank, value = event
            try:
                if kind == "returned":
                    first = value if rank == 0 else first
                    if barrier.returned(rank):
                        return first
                elif (done := barrier.reported(rank, value)) is not None:
                    answer = self._commit(done, staging)
                    for each in range(world):
                        gang.answer(each, answer)
            except Uneven as error:
                raise WorkersFailed({error.rank: RuntimeError(str(error))}) from None

    def _commit(self, done: Round, staging: Path) -> tuple[Checkpoint | None, Exception | None]:
        """The answer to all ranks: the checkpoint that is kept now, or what stood in its way."""
        folder, config = self._folder, self._plan.run.checkpoint_config
        assert config is not None
        try:
            kept = folder.commit(
                done.metrics, [staging / part for part in done.parts], done.dir_name
            )
            self._metrics, self._reported = dict(done.metrics), True
            if kept is None:
                return None, None
            self._shown[kept.name] = done.metrics
            for one in _retention.to_drop(
                folder.kept,
                config.num_to_keep,
                config.checkpoint_score_attribute,
                config.checkpoint_score_order,
            ):
                folder.drop(one)
                self._shown.pop(one.name, None)
            return folder.checkpoint(kept), None
        except OSError as error:
            return None, error

    def _result(self, value: Any) -> Result:
        folder = self._folder
        best = [
            (folder.checkpoint(one), self._shown.get(one.name, one.metrics)) for one in folder.kept
        ]
        latest = folder.latest() or self._plan.resume_from
        metrics = (
            self._metrics
            if self._metrics is not None or not folder.kept
            else dict(folder.kept[-1].metrics)
        )
        return Result(
            metrics=metrics,
            checkpoint=latest,
            path=str(folder.path),
            best_checkpoints=best,
            return_value=value,
        )

    def _error(self, failed: dict[int, Exception], gang: Gang, attempts: int) -> Exception:
        latest, cause = self._folder.latest(), _failures.cause_of(failed)
        text = _failures.text_of(
            failed,
            hosts=gang.hosts,
            world_size=self._plan.scaling.num_workers,
            attempts=attempts,
            path=str(self._folder.path),
            checkpoint=None if latest is None else Path(latest.path).name,
            max_failures=self._plan.run.failure_config.max_failures,  # type: ignore[union-attr]
        )
        error = failed[cause]
        origin = error.cause if isinstance(error, exceptions.TaskError) else error
        return exceptions.with_type_of(
            WorkerGroupError,
            origin if isinstance(origin, BaseException) else error,
            text,
            worker_failures=dict(sorted(failed.items())),
            rank=cause,
            path=str(self._folder.path),
        )

    def _say_restart(self, failed: dict[int, Exception], failures: int, limit: int) -> None:
        latest, cause = self._folder.latest(), _failures.cause_of(failed)
        status_lines.say(
            f"troupe.train: run {self._folder.name}: rank {cause}: "
            f"{_failures.first_line(failed[cause])}\n"
            f"troupe.train: all {self._plan.scaling.num_workers} workers are started again from "
            f"{Path(latest.path).name if latest else 'the beginning'} (failure "
            f"{failures}{f' of {limit}' if limit >= 0 else ''})"
        )


def train(plan: Plan, storage: str, name: str) -> Result:
    """See Training.run; opens and closes the run's folder. Raises what RunFolder does."""
    folder = RunFolder(storage, name)
    with contextlib.closing(folder):
        return Training(plan, folder).run()
