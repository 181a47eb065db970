"""RayMetricsMonitor: what the nodes of a launch are doing, while it runs."""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from typing import Any

from troupe._base import visible as _visible
from troupe._cluster import status_lines
from troupe._tracking import rank as _rank
from troupe.serverless_gpu._node_samples import NodeSampler

_ANSWER_S = 30.0
_BATCH_MAX = 1000  # metrics that MLflow takes in one request


class RayMetricsMonitor:
    """Samples what nodes are doing, GPUs included, every `sampling_interval` seconds, and logs it
    to an MLflow run.

    `remote=True`, in the driver of a `@ray_launch`: of every node of the launch, by an actor
    without resources on each; else of this process's node. The run is `mlflow_run_id`, the caller's
    active run, that of the launch, or that of MLFLOW_RUN_ID, as it is when `start()` is called;
    without one, or without mlflow, samples are only kept: `latest()`. Keys:
    `system/NODE/cpu_utilization_percentage` and so on; with `remote=True`
    `system/ADDRESS/ray_node_ID/...`, beside those that a launch's run has of each node anyway
    (docs/guides/mlflow.md). What fails is said once on stderr and never fails the caller. View: the
    nodes of the caller's session at `start()`. Any thread may call it.

        with RayMetricsMonitor(remote=True) as monitor:
            train()
            print(monitor.latest())
    """

    def __init__(
        self,
        remote: bool = False,
        sampling_interval: float = 10.0,
        mlflow_run_id: str | None = None,
    ) -> None:
        if (
            isinstance(sampling_interval, bool)
            or not isinstance(sampling_interval, (int, float))
            or not sampling_interval > 0
        ):
            raise ValueError(
                f"sampling_interval must be more than 0 seconds, not {sampling_interval!r}"
            )
        self._remote = bool(remote)
        self._interval_s = float(sampling_interval)
        self._run_id = mlflow_run_id
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._samplers: dict[str, Any] = {}
        self._latest: dict[str, dict[str, float]] = {}
        self._step = 0
        self._told: set[str] = set()
        self._places: dict[str, str] = {}  # metric prefix of a node, by its name
        self._active = ""
        self._client: Any = None
        self._looked = False

    def start(self) -> RayMetricsMonitor:
        """Begins to sample, at once and then every interval.

        Idempotent while it runs. Blocks until the actors are asked for.

        Raises ConnectionError with `remote=True` outside of a session.
        """
        with self._lock:
            if self._thread is not None:
                return self
            self._stop.clear()
            here = os.uname().nodename
            self._samplers, self._places = (
                _actors_on_all_nodes() if self._remote else ({here: NodeSampler()}, {here: here})
            )
            self._active, self._looked = self._run_id or _active_run(), False
            self._thread = threading.Thread(target=self._run, name="troupe-metrics", daemon=True)
            self._thread.start()
        return self

    def stop(self) -> None:
        """Takes a last sample, and ends sampling and its actors. Idempotent."""
        with self._lock:
            thread, self._thread = self._thread, None
            if thread is None:
                return
            self._stop.set()
            thread.join()
            if self._remote:
                import troupe

                for sampler in self._samplers.values():
                    troupe.kill(sampler)
            self._samplers = {}

    shutdown = stop

    def latest(self) -> dict[str, dict[str, float]]:
        """The latest sample of each node: {node's name: {metric: value}}."""
        return {node: dict(sample) for node, sample in self._latest.items()}

    def __enter__(self) -> RayMetricsMonitor:
        return self.start()

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def _run(self) -> None:
        while True:
            last = self._stop.wait(0 if self._step == 0 else self._interval_s)
            try:
                self._take()
            except (
                Exception
            ) as error:  # a cluster that is gone, a tracking server that is down: training goes on
                self._warn("sampling", error)
            if last:
                return

    def _take(self) -> None:
        if self._remote:
            import troupe

            asked = {node: sampler.sample.remote() for node, sampler in self._samplers.items()}
            taken = {}
            for node, ref in asked.items():
                try:
                    taken[node] = troupe.get(ref, timeout=_ANSWER_S)
                except Exception as error:
                    self._warn(f"node {node}", error)
        else:
            taken = {node: sampler.sample() for node, sampler in self._samplers.items()}
        self._step += 1
        self._latest = taken
        if not self._looked:  # on this thread, for importing MLflow takes seconds
            self._looked = True
            self._client, self._active = self._tracking()
        if self._client is not None:
            self._log(taken)

    def _tracking(self) -> tuple[Any, str]:
        """(MLflow's client, the run), or (None, "") where there is nothing to log to."""
        try:
            run = self._active or _rank.run_id() or os.environ.get("MLFLOW_RUN_ID", "")
            return (importlib.import_module("mlflow").MlflowClient(), run) if run else (None, "")
        except Exception as error:
            self._warn("MLflow", error)
            return None, ""

    def _log(self, taken: dict[str, dict[str, float]]) -> None:
        entities = importlib.import_module("mlflow.entities")
        now = time.time_ns() // 1_000_000
        metrics = [
            entities.Metric(f"system/{self._places[node]}/{name}", value, now, self._step)
            for node, sample in taken.items()
            for name, value in sample.items()
        ]
        try:
            for begin in range(0, len(metrics), _BATCH_MAX):
                self._client.log_batch(self._active, metrics=metrics[begin : begin + _BATCH_MAX])
        except Exception as error:
            self._warn("MLflow", error)

    def _warn(self, what: str, error: Exception) -> None:
        if what not in self._told:
            self._told.add(what)
            status_lines.say(
                _visible.name(
                    f"troupe: RayMetricsMonitor: {what}: {type(error).__name__}: {error}; samples "
                    "of it are left out"
                )
            )


def _active_run() -> str:
    """Return the run id of this thread's active run; "" if there is none."""
    active = getattr(sys.modules.get("mlflow"), "active_run", None)
    try:
        run = active() if active is not None else None
        return str(run.info.run_id) if run is not None else ""
    except Exception:  # a module of this name that is none of MLflow's
        return ""


def _actors_on_all_nodes() -> tuple[dict[str, Any], dict[str, str]]:
    """An actor on each node that is alive, and how the keys of its metrics begin, by the node's
    name."""
    import troupe
    from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    sampler = troupe.remote(NodeSampler)
    alive = [node for node in troupe.nodes() if node["Alive"]]
    actors = {
        node["NodeName"]: sampler.options(
            num_cpus=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
        ).remote()
        for node in alive
    }
    return actors, {
        node["NodeName"]: f"{node['NodeManagerAddress']}/ray_node_{node['NodeID']}"
        for node in alive
    }
