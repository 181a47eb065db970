"""The workers of one attempt: placed all or none, one actor for each rank, and what is heard of
them."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Mapping, Sequence
from typing import Any

import troupe
from troupe import exceptions, state
from troupe._cluster import session as _session, status_lines
from troupe._process import store_host
from troupe.launch import _slow_paths
from troupe.train import _failures
from troupe.train._checkpoint import Checkpoint
from troupe.train._config import ScalingConfig
from troupe.train._here import TrainContext
from troupe.train._worker import TrainAttempt, TrainWorker
from troupe.util import (
    PlacementGroup,
    placement_group,
    placement_group_table,
    remove_placement_group,
)
from troupe.util.scheduling_strategies import PlacementGroupSchedulingStrategy

PATIENCE_S = 5.0
"""How long a symptom waits for its cause, and how long a group may wait for its place before that
is said."""
END_S = 60.0
"""For exit handlers of workers whose loops have returned."""


class WorkersFailed(Exception):
    """The failures of an attempt: rank -> exception, in the order in which they arrived."""

    def __init__(self, failed: dict[int, Exception]) -> None:
        super().__init__(failed)
        self.failed = failed


def ranks_of(nodes: Sequence[str]) -> list[tuple[int, int, int, int, int]]:
    """(bundle, node rank, local rank, local world size, rank) of each rank: those of a node follow
    each other, nodes as their first bundle does."""
    order = list(dict.fromkeys(nodes))
    sizes = {node: sum(each == node for each in nodes) for node in order}
    found: list[tuple[int, int, int, int, int]] = []
    for node_rank, node in enumerate(order):
        for local_rank, bundle in enumerate(
            bundle for bundle, each in enumerate(nodes) if each == node
        ):
            found.append((bundle, node_rank, local_rank, sizes[node], len(found)))
    return found


class Gang:
    """The workers of an attempt. Made by `place`, then `start`; `close` ends it in any state."""

    def __init__(
        self,
        scaling: ScalingConfig,
        name: str,
        path: str,
        runtime_env: Mapping[str, Any] | None = None,
    ) -> None:
        self._scaling, self._name, self._path = scaling, name, path
        self._runtime_env = runtime_env
        self._group: PlacementGroup | None = None
        self.workers: list[Any] = []
        self.hosts: dict[int, str] = {}
        self._nodes: list[str] = []  # by rank
        self._addresses: dict[str, str] = {}
        self._peers: list[str] = []  # all addresses of the workers' nodes
        self._news: queue.SimpleQueue[tuple[str, int, Any]] = queue.SimpleQueue()
        self._running = 0

    def place(self, *, wait_for_nodes: bool) -> None:
        """Reserves what all workers hold.

        Blocks until it is there. Raises PlacementError where the cluster has not as much, unless it
        is to wait.
        """
        scaling = self._scaling
        bundle = scaling.bundle()
        self._group = placement_group(
            [bundle] * scaling.num_workers,
            strategy=scaling.placement_strategy,
            bundle_label_selector=scaling.selectors(),
            infeasible="wait" if wait_for_nodes else "refuse",
        )
        ready = self._group.ready()
        if not troupe.wait([ready], timeout=PATIENCE_S)[0]:
            what = " + ".join(f"{amount:g} {name}" for name, amount in bundle.items())
            status_lines.say(
                f"troupe.train: run {self._name} waits for {scaling.num_workers} x ({what}), which "
                "others hold: "
                f"`troupe explain {self._group.id[:8]}` says who"
            )
        troupe.get(ready)
        places = placement_group_table(self._group)["bundles_to_node_id"]
        all_nodes = state.list_nodes()
        self._addresses = {
            node["node_id"]: node["address"].rpartition(":")[0].strip("[]") for node in all_nodes
        }
        self._make([places[index] for index in range(scaling.num_workers)], bundle)
        self._peers = store_host.addresses_of(
            node for node in all_nodes if node["node_id"] in self._nodes
        )

    def _make(self, nodes: list[str], bundle: dict[str, float]) -> None:
        known = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}
        options: dict[str, Any] = {
            known[name]: amount for name, amount in bundle.items() if name in known
        }
        options["resources"] = {
            name: amount for name, amount in bundle.items() if name not in known
        }
        if self._runtime_env:
            options["runtime_env"] = self._runtime_env
        worker = troupe.remote(TrainWorker).options(
            concurrency_groups={"control": 1}, **{"num_cpus": 0, **options}
        )
        for index, node_rank, local_rank, local_size, rank in ranks_of(nodes):
            context = TrainContext(
                rank,
                self._scaling.num_workers,
                local_rank,
                local_size,
                node_rank,
                self._name,
                self._path,
                bundle,
            )
            self._nodes.append(nodes[index])
            self.workers.append(
                worker.options(
                    scheduling_strategy=PlacementGroupSchedulingStrategy(self._group, index)
                ).remote(context)
            )

    def slow_paths(self) -> list[str]:
        """See `LaunchHandle.slow_paths`: of the nodes where the workers are."""
        return _slow_paths.of_nodes(
            _session.started(), set(self._nodes), gpus=bool(self._scaling.bundle().get("GPU"))
        )

    def start(
        self,
        payload: Any,
        *,
        backend: str,
        timeout_s: float,
        start: Checkpoint | None,
        staging: str,
        nonce: str,
        shards: list[dict[str, Any]],
    ) -> None:
        """Has all workers form their group and run the loop, each with its share of the datasets.

        Blocks until each is there. Raises WorkersFailed for those that are not.
        """
        about = self._all([worker.about.remote() for worker in self.workers])
        self.hosts = {rank: each["host"] for rank, each in enumerate(about)}
        one_host = len({each["boot_id"] for each in about}) == 1
        address = "127.0.0.1" if one_host else self._addresses[self._nodes[0]]
        (port,) = self._all([self.workers[0].serve_store.remote(address, self._peers)])
        devices = {
            rank: _in_order(
                [
                    gpu
                    for other, each in enumerate(about)
                    if self._nodes[other] == node
                    for gpu in each["gpus"]
                ]
            )
            for rank, node in enumerate(self._nodes)
        }
        attempt = TrainAttempt(
            address, port, one_host, backend, timeout_s, start, staging, nonce, devices
        )
        for rank, worker in enumerate(self.workers):
            self._hear(
                "returned",
                rank,
                worker.run.remote(
                    payload, attempt, self._addresses[self._nodes[rank]], shards[rank]
                ),
            )
            self.answer(rank, None)
        self._running = len(self.workers)

    def _all(self, refs: list[Any]) -> list[Any]:
        failed: dict[int, Exception] = {}
        found = []
        for rank, ref in enumerate(refs):
            try:
                found.append(troupe.get(ref))
            except exceptions.TroupeError as error:
                failed[rank] = error
        if failed:
            raise WorkersFailed(failed)
        return found

    def answer(self, rank: int, answer: tuple[Checkpoint | None, Exception | None] | None) -> None:
        """Lets the rank's report return, or raise, and waits for its next one; does not block."""
        self._hear("reported", rank, self.workers[rank].next.remote(answer))

    def _hear(self, kind: str, rank: int, ref: Any) -> None:
        ref.future().add_done_callback(lambda _: self._news.put((kind, rank, ref)))

    def event(self, timeout: float | None) -> tuple[str, int, Any] | None:
        """The next ("reported", rank, TrainReport) or ("returned", rank, value); None: there was
        none for `timeout` seconds. Raises WorkersFailed, once it is known whose failure is the
        cause, or no longer to be waited for."""
        try:
            kind, rank, value, error = self._next(timeout)
        except queue.Empty:
            return None
        if error is None:
            return kind, rank, value
        raise WorkersFailed(self._others({rank: error}))

    def _others(self, failed: dict[int, Exception]) -> dict[int, Exception]:
        """With what else failed: what is known already, and where there are symptoms alone what
        comes within PATIENCE_S."""
        with contextlib.suppress(queue.Empty):
            while len(failed) < self._running:
                _, rank, _, error = self._next(0.0 if _failures.is_decided(failed) else PATIENCE_S)
                if error is not None:
                    failed.setdefault(rank, error)
        return failed

    def _next(self, timeout: float | None) -> tuple[str, int, Any, Exception | None]:
        while True:
            kind, rank, ref = (
                self._news.get(timeout=timeout) if timeout != 0.0 else self._news.get_nowait()
            )
            try:
                value = troupe.get(ref)
            except exceptions.TroupeError as error:
                return kind, rank, None, error
            if (
                kind == "returned" or value is not None
            ):  # else its loop is over, which "returned" says
                return kind, rank, value, None

    def finish(self) -> None:
        """All loops have returned: the workers end as programs do, exit handlers and all, within
        END_S."""
        leaving = [worker.__ray_terminate__.remote() for worker in self.workers]
        troupe.wait(leaving, num_returns=len(leaving), timeout=END_S)
        ended = [
            worker.__ray_ready__.remote() for worker in self.workers
        ]  # an error, once the process is gone
        troupe.wait(ended, num_returns=len(ended), timeout=END_S)

    def close(self) -> None:
        """Nothing of it is left."""
        for worker in self.workers:
            with contextlib.suppress(exceptions.TroupeError):
                troupe.kill(worker)
        if self._group is not None:
            with contextlib.suppress(exceptions.TroupeError):
                remove_placement_group(self._group)


def _in_order(gpus: list[Any]) -> list[Any]:
    """Each once."""
    return sorted(set(gpus), key=lambda each: (isinstance(each, str), each))
