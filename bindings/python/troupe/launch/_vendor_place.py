"""The place of a launch under the vendors' names: which cluster, and GPUs or CPU ranks; both are
printed in one line on stderr.

The vendors' names are those of `serverless_gpu`, `databricks.air`, `pyspark.ml.torch` and
`azure.ai.ml`. Their programs name no cluster and take GPUs for granted. Launches under Troupe's own
names decide nothing here: what such a launch is not given is an error.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from troupe import exceptions
from troupe._cluster import (
    connect,
    home,
    infeasible,
    known_clusters,
    resources,
    session as _session,
    status_lines,
    workers,
)
from troupe.launch import _cpu_ranks, _submit

_told_lock = threading.Lock()
_told: set[str] = set()
"""What this process has said already."""


def place(options: Any, called: str) -> tuple[_session.Session, Any]:
    """Return the session of a launch with these LaunchOptions and the options as they are meant
    there. `called`: the function's name, for people.

    Blocks while an embedded cluster starts. Raises ConnectionError where several clusters could be
    meant, ValueError for a variable that cannot be read.
    """
    session, found = find_session(remote=options.remote)
    reason = without_gpus(session) if options.gpus else ""
    meaning = ""
    if reason:
        of_type = f", and gpu_type={options.gpu_type!r} is ignored" if options.gpu_type else ""
        meaning = (
            f"{reason}: gpus={options.ranks} of {called} means "
            f"{describe_ranks(session, options.ranks)}{of_type}"
        )
        options = on_cpus(options, session)
    tell(found, meaning, quiet=options.quiet)
    return session, options


def without_gpus(session: _session.Session) -> str:
    """Return why ranks that ask for GPUs are CPU ranks on this cluster; "": they get GPUs, or are
    refused. Raises ValueError for a variable that cannot be read."""
    return _cpu_ranks.reason(workers.node_infos(session))


def find_session(*, remote: bool) -> tuple[_session.Session, str]:
    """Return the session of a launch, and a sentence on how its cluster was found; "" where init(),
    TROUPE_ADDRESS, TROUPE_CLUSTER, `troupe cluster use` or `remote=False` says it.

    A cluster that another program has made for itself is not taken: it ends with that program.
    """
    if not remote or _session.current_or_none() is not None or known_clusters.choose() is not None:
        return _submit.session_for(remote), ""
    running = home.clusters(running_only=True)
    if len(running) > 1:
        raise exceptions.ConnectionError(
            "several clusters of this user run on this host; TROUPE_ADDRESS says which is meant: "
            + ", ".join(each.address or str(each.damage) for each in running)
        )
    if running:
        address = running[0].require_whole().address
        return connect.kept(
            address
        ), f"TROUPE_ADDRESS is not set: the cluster that runs on this host is used, {address}"
    return connect.embedded(), (
        "TROUPE_ADDRESS is not set and no cluster of this user runs on this host: one of this "
        "machine is started, "
        "which ends with this program"
    )


def find_known_session() -> tuple[_session.Session | None, str]:
    """Return what `find_session` does, where no cluster has to be started for that; else None and
    ""."""
    if (
        _session.current_or_none() is not None
        or known_clusters.choose() is not None
        or home.clusters(running_only=True)
    ):
        return find_session(remote=True)
    return connect.embedded_here(), ""


def on_cpus(options: Any, session: _session.Session) -> Any:
    """Return these LaunchOptions for ranks without GPUs, which know it and ask for no more CPUs
    than there are."""
    each = share_of_each(_cpus(session), options.ranks, options.cpus_per_rank)
    variables = {
        **(options.runtime_env.get("env_vars") or {}),
        **variables_of_ranks(each / options.cpus_per_rank if options.cpus_per_rank else 1.0),
    }
    return replace(
        options,
        gpus=False,
        gpu_type="",
        runtime_env={**options.runtime_env, "env_vars": variables},
        cpus_per_rank=each,
    )


def variables_of_ranks(share: float = 1.0) -> dict[str, str]:
    """Return what tells the processes of a launch that its ranks are CPU ranks, which get `share`
    of the CPUs that they ask for."""
    return {_cpu_ranks.VARIABLE: "1", resources.CPU_SHARE: f"{share:.15g}"}


def describe_ranks(session: _session.Session, ranks: int) -> str:
    """Return `8 processes without GPUs`, with the number of CPUs where these are fewer."""
    cpus = (
        float(len(os.sched_getaffinity(0))) if session.embedded is not None else sum(_cpus(session))
    )
    return f"{ranks} processes without GPUs" + (
        f" that share {cpus:.15g} CPU{'s' * (cpus != 1)}" if 0 < cpus < ranks else ""
    )


def share_of_each(cpus: Sequence[float], ranks: int, asked: float) -> float:
    """Return how many CPUs each rank may ask for so that all fit on nodes with so many CPUs:
    `asked`, or less. Pure.

    >>> share_of_each([4, 4], 8, 1), share_of_each([3, 5], 16, 1), share_of_each([2], 8, 1)
    (1, 0.5, 0.25)
    """
    return (
        asked
        if infeasible.room(cpus, asked) >= ranks
        else infeasible.largest_share(cpus, ranks, asked)
    )


def tell(*sentences: str, quiet: bool = False) -> None:
    """Say those of the sentences that this process has not said before, in one line."""
    with _told_lock:
        new = [each for each in sentences if each and each not in _told]
        _told.update(new)
    if new:
        status_lines.say(f"troupe: {'; '.join(new)}", quiet=quiet)


def _cpus(session: _session.Session) -> list[float]:
    return [
        resources.from_wire(node["resources"]).get("CPU", 0.0)
        for node in workers.node_infos(session)
        if node["state"] == "alive"
    ]
