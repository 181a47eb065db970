"""Targets of commands that read processes: an id means a launch, an actor, or a process of this
host."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

from troupe import exceptions
from troupe._cluster import view
from troupe.cli import _common

NODES_AT_ONCE = 64


def process_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command its TARGET, --rank and --pid."""
    for option in (
        click.option(
            "--pid",
            "is_pid",
            is_flag=True,
            help="TARGET is a process of this host, whatever else it may be.",
        ),
        click.option("--rank", type=click.IntRange(min=0), help="Only this rank."),
        click.argument("target", metavar="LAUNCH|ACTOR|PID"),
    ):
        command = option(command)
    return command


def is_local(
    target: str, is_pid: bool, address: str | None, token_file: str | None, cluster: str | None
) -> bool:
    """Return True if TARGET is the pid of a process of this host: it is said to be, or digits that
    begin no id of the cluster.

    Raises:
        click.UsageError: It is said to be one, and there is no such process.
    """
    if not is_pid and not (
        target.isdigit() and not _cluster_has(target, address, token_file, cluster)
    ):
        return False
    if not target.isdigit() or not os.path.exists(f"/proc/{target}"):
        raise click.UsageError(f"there is no process {target} on this host")
    return True


def _cluster_has(
    target: str, address: str | None, token_file: str | None, cluster: str | None
) -> bool:
    """Return True if the digits are the start of an id of the cluster, if there is one."""
    if not os.path.exists(f"/proc/{target}"):
        return True  # no process: let the search among launches say what is wrong
    try:
        with _common.session(address, token_file, cluster) as session:
            return bool(_common.prefixed(target, _known(session, target)))
    except (exceptions.TroupeError, OSError, click.UsageError):
        return False


def _known(session: Any, target: str) -> dict[str, dict[str, Any]]:
    """Return launches and actors by their ids: of the launches those that are not over, and those
    whose id begins with `target`."""
    launches = [*view.open_launches(session), *view.find_launches(session, target)]
    actors = session.request("ListActors", {})[1]["actors"]
    return {each["launch"]: each for each in launches} | {each["actor"]: each for each in actors}


def _info(session: Any, target: str) -> dict[str, Any]:
    """Return the head's information on the launch or the actor whose id begins with `target`; a
    usage error if there is none."""
    known = _known(session, target)
    going = "".join(
        f"\n  {each['launch'][:8]}  {each['name']}"
        for each in known.values()
        if "rank_infos" in each and each["state"] != "terminal"
    )
    return known[
        _common.only_prefixed(
            "launch or actor",
            target,
            known,
            "troupe list launches, troupe list actors"
            + (f"\nlaunches that run:{going}" if going else ""),
        )
    ]


def named(session: Any, target: str) -> dict[str, str]:
    """Return the launch or the actor whose id begins with `target`, as `{"launch": id}` or
    `{"actor": id}`.

    Raises:
        click.UsageError: There is none, or there are several.
    """
    info = _info(session, target)
    kind = "launch" if "rank_infos" in info else "actor"
    return {kind: info[kind]}


def read_processes(
    session: Any,
    target: str,
    rank: int,
    read: Callable[[str, dict[str, Any]], list[dict[str, Any]]],
) -> list[dict[str, Any]]:
    """Return what `read` gives for the processes of a launch (of one rank, or of all: -1) or an
    actor, sorted by rank, each with the name of its node.

    Args:
        session: The session with the head.
        target: The beginning of an id.
        rank: A rank of the launch, or -1.
        read: Called with a node's id and the fields that name the processes; raises TroupeError
            where the node cannot be asked, which becomes an entry with the error.

    Raises:
        click.UsageError: There is none such, or it has no processes any more.
        TroupeError: Nothing of it runs just now.
    """
    info = _info(session, target)
    is_launch = "rank_infos" in info
    if is_launch and rank >= info["ranks"]:
        raise click.UsageError(f"launch {target} has ranks 0 to {info['ranks'] - 1}, not {rank}")
    if is_launch and info["state"] == "terminal":
        raise click.UsageError(f"launch {target} has ended: it has no processes")
    wanted = {"launch": info["launch"], "rank": rank} if is_launch else {"actor": info["actor"]}
    nodes = (
        {
            each["node"]: each["node_name"]
            for each in info["rank_infos"]
            if rank in (-1, each["rank"])
        }
        if is_launch
        else {info["node"]: info["node_name"]}
    )
    processes = [
        {**each, "node": name} for found, name in _each_node(nodes, wanted, read) for each in found
    ]
    if not processes:
        raise exceptions.TroupeError(
            f"nothing of {target} runs just now: it waits, starts or has ended\n"
            "  see: troupe status"
        )
    return sorted(processes, key=lambda each: each["rank"])


def _each_node(
    nodes: dict[str, str],
    wanted: dict[str, Any],
    read: Callable[[str, dict[str, Any]], list[dict[str, Any]]],
) -> list[tuple[list[dict[str, Any]], str]]:
    """Return the answers of the nodes' workers, all asked at once."""
    import concurrent.futures

    def ask(node: str) -> list[dict[str, Any]]:
        try:
            return read(node, wanted)
        except exceptions.TroupeError as error:
            return [{"rank": -1, "pid": 0, "error": str(error)}]

    with concurrent.futures.ThreadPoolExecutor(NODES_AT_ONCE) as pool:
        return list(zip(pool.map(ask, nodes), nodes.values(), strict=True))
