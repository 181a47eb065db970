"""The parts of a tracked launch on each of its nodes: MLflow's system metrics, and a loopback proxy
where the store is the caller's own."""

from __future__ import annotations

import contextlib
import importlib
import os
import threading
from collections.abc import Callable
from typing import Any

from troupe import _pickled, exceptions
from troupe._base import calls as _calls
from troupe._tracking import loopback, runs

AGAIN_S = 60.0
LAST_S = 5.0
CARRY_S = 90.0  # longer than the tracker waits for the caller
_THREAD = "SystemMetricsMonitor"  # as MLflow calls it


class NodeMetrics:
    """The SystemMetricsMonitor of a node and a launch, on threads of this process.

    It is made anew where it has given up: a server that was away for a while, or a run that
    somebody has ended too early.
    """

    def __init__(self, run: str, node: str, uri: str, say: Callable[[str], None]) -> None:
        self._run, self._node, self._uri, self._say = run, node, uri, say
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._live, name="troupe-node-metrics", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Blocks until the last samples were sent, LAST_S at most."""
        self._over.set()
        self._thread.join(LAST_S)

    def _live(self) -> None:
        try:
            runs.impatient(
                local=bool(os.environ.get("MLFLOW_TRACKING_TOKEN"))
                and self._uri.startswith("http://127.0.0.1:")
            )
            # Must not give all nodes one name
            os.environ.pop("MLFLOW_SYSTEM_METRICS_NODE_ID", None)
            monitor = self._started()
            while not self._over.wait(AGAIN_S):
                if not any(each.name == _THREAD for each in threading.enumerate()):
                    monitor.finish()
                    with contextlib.suppress(Exception):
                        runs.client(self._uri).update_run(self._run, status="RUNNING")
                        monitor = self._started()
            monitor.finish()
        except ImportError as error:
            self._say(
                f"no system metrics of node {self._node}: {error}\n  pip install psutil "
                "nvidia-ml-py there"
            )
        except Exception as error:  # never a failure of the launch
            self._say(f"no system metrics of node {self._node}: {runs.words_of(error)}")

    def _started(self) -> Any:
        from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

        monitor = SystemMetricsMonitor(
            self._run, node_id=self._node, resume_logging=True, tracking_uri=self._uri
        )
        monitor.collect_metrics()  # a first sample at once: launches may be short
        monitor.publish_metrics(monitor.aggregate_metrics())
        monitor.start()
        return monitor


class NodeTracker:
    """The tracking actor of a node other than the tracker's own, which ends with the tracker."""

    def __init__(self, tracker: Any, node_name: str, token: str | None) -> None:
        self._tracker, self._name = tracker, node_name
        self._metrics: NodeMetrics | None = None
        self._door = loopback.Loopback(self._carry, token) if token else None
        threading.Thread(target=_load, name="troupe-load", daemon=True).start()

    def uri(self) -> str:
        """Return the address of the loopback proxy; "" if there is none."""
        return self._door.uri if self._door is not None else ""

    def measure(self, run: str, uri: str) -> None:
        """Begins with system metrics. Returns at once."""
        if self._metrics is None:
            if self._door is not None:
                os.environ["MLFLOW_TRACKING_TOKEN"] = self._door.token
            self._metrics = NodeMetrics(run, self._name, self.uri() or uri, self._say)

    def stop(self) -> None:
        """The launch has ended: the last samples are sent."""
        if self._metrics is not None:
            self._metrics.stop()

    def _say(self, text: str) -> None:
        self._tracker.failed.remote(text)

    def _carry(self, method: str, path: str, kind: str, body: bytes) -> loopback.Answer:
        try:
            status, kind, content = _calls.get(
                self._tracker.carry.remote(method, path, kind, body), CARRY_S
            )
        except exceptions.TroupeError as error:
            return (
                503,
                "application/json",
                loopback.problem(
                    "TEMPORARILY_UNAVAILABLE", f"the launch's tracker is away: {error}"
                ),
            )
        return status, kind, content


def _load() -> None:
    """Import modules that take seconds, before they are needed. A missing one is reported when it
    is used."""
    with contextlib.suppress(Exception):
        importlib.import_module("mlflow.system_metrics.system_metrics_monitor")


_pickled.named_in("troupe._pickled", NodeTracker)
