"""A job's command as the driver of a Ray cluster on its instances: Troupe by Ray's names, or Ray
itself (`troupe._ray_cluster`).

Rank 0 of the launch has the cluster started and runs the command on its node, in the job's
directory. The cluster's processes on each node are started in that directory there, with the job's
variables, so that tasks find the code's modules and `outputs/`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NoReturn

from troupe import _pickled, ray_compat, stand_ins
from troupe._cluster import session as _session
from troupe._ray_cluster import running, words
from troupe.azure import _mpi, _rank
from troupe.launch import _context


@dataclass(frozen=True)
class NodeStart:
    """Preparations of a node's actor before it starts the cluster there. As it travels."""

    job: _rank.JobStart
    launch: str
    epoch: int
    node: str
    node_count: int

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.azure_ray_node, (_pickled.fields_of(self),)

    def __call__(self) -> None:
        """Makes the job's directory, where this node has none yet, enters it, and sets the job's
        variables. Raises what JobStart.enter does."""
        place = SimpleNamespace(
            launch=self.launch, epoch=self.epoch, node=self.node, node_count=self.node_count
        )
        self.job.settle(self.job.enter(_session.current(), place, mounts=False), place)


@dataclass(frozen=True)
class RayStart:
    """The driver of such a job: the command, over a cluster of `cpus` on each node.

    As it travels.
    """

    job: _rank.JobStart
    cpus: int
    wishes: words.Wishes
    api: str

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.azure_ray, (self.job, self.cpus, self.wishes, self.api)

    def __call__(self) -> NoReturn:
        """Runs the command and leaves by SystemExit with its code.

        Raises RayProcessDiedError, what the job's directory does, and as `running.running`.
        """
        context, session = _context.current(), _session.current()
        folder = self.job.enter(session, context, mounts=False)  # tasks read inputs too
        command = self.job.settle(folder, context)

        def enter(share: words.Share) -> NodeStart:
            return NodeStart(
                self.job, context.launch, context.epoch, share.node, context.node_count
            )

        with running.running(self.wishes, api=self.api, cpus=self.cpus, enter=enter) as cluster:
            code = _mpi.run(
                [_rank.SHELL, "-c", command],
                folder / "code",
                of_command(os.environ, cluster.variables, troupe=self.api == words.TROUPE),
            )
            died = cluster.what_has_died() if code else None
            if died is not None:
                raise died
        _rank.leave_as("the command", code)


def of_command(
    now: Mapping[str, str], variables: Mapping[str, str], *, troupe: bool
) -> dict[str, str]:
    """The command's environment from rank 0's: a driver is no rank.

    `troupe`: every Python of it finds Troupe as `ray`. Pure.

    >>> of_command({"RANK": "0", "HOME": "/h"}, {"RAY_ADDRESS": "a:1"}, troupe=False)
    {'HOME': '/h', 'RAY_ADDRESS': 'a:1'}
    """
    found = words.environment(_mpi.without_ranks(now), variables)
    if troupe:
        found[stand_ins.VARIABLE] = ",".join(
            dict.fromkeys(
                [*filter(None, found.get(stand_ins.VARIABLE, "").split(",")), stand_ins.RAY]
            )
        )
        found["PYTHONPATH"] = os.pathsep.join(
            [ray_compat.FOLDER, *filter(None, [found.get("PYTHONPATH", "")])]
        )
    return found


@_pickled.maker("azure_ray")
def _azure_ray(job: Any, cpus: int, wishes: Any, api: str) -> Any:
    """Rebuild the driver of a command job over a Ray cluster."""
    return RayStart(job, cpus, wishes, api)


@_pickled.maker("azure_ray_node")
def _azure_ray_node(fields: Mapping[str, Any]) -> Any:
    """Rebuild the preparations of a node of such a cluster."""
    return _pickled.of_fields(NodeStart, fields)
