"""`troupe stack`: where the ranks of a launch, an actor or a process of this host are just now."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from troupe import exceptions
from troupe.cli import _common, _stack_view

_WAIT_S = 120.0


@click.command()
@click.argument("target", metavar="LAUNCH|ACTOR|PID")
@click.option("--rank", type=click.IntRange(min=0), help="Only this rank.")
@click.option(
    "--pid",
    "is_pid",
    is_flag=True,
    help="TARGET is a process of this host, whatever else it may be.",
)
@click.option(
    "--all-threads", is_flag=True, help="Every thread, not only the one that runs the function."
)
@click.option(
    "--native/--python-only", default=True, help="C++ frames too (slower).  [default: native]"
)
@_common.cluster_options
def stack(
    target: str,
    rank: int | None,
    is_pid: bool,
    all_threads: bool,
    native: bool,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Print the Python and C++ stacks of a launch's ranks, of an actor, or of a process.

    TARGET is a launch's or an actor's id (a prefix will do), else the pid of a Python process of
    this host. Equal stacks are printed once; ranks that wait in a collective are said to.
    """
    if is_pid or (target.isdigit() and not _cluster_has(target, address, token_file, cluster)):
        processes = [_local(target, native)]
    else:
        with _common.session(address, token_file, cluster) as session:
            processes = _remote(session, target, -1 if rank is None else rank, native)
    if as_json:
        _common.echo_json(processes)
        return
    for line in _stack_view.lines(processes, all_threads=all_threads):
        _common.echo(line)
    if all("error" in each for each in processes):
        raise click.exceptions.Exit(1)


def _local(target: str, native: bool) -> dict[str, Any]:
    from troupe import _stacks

    if not target.isdigit() or not os.path.exists(f"/proc/{target}"):
        raise click.UsageError(f"there is no process {target} on this host")
    return {"rank": -1, "node": os.uname().nodename, **_stacks.read(int(target), native=native)}


def _cluster_has(
    target: str, address: str | None, token_file: str | None, cluster: str | None
) -> bool:
    """Whether digits are the start of an id of the cluster, if there is one."""
    if not os.path.exists(f"/proc/{target}"):
        return True  # no process: let the search among launches say what is wrong
    try:
        with _common.session(address, token_file, cluster) as session:
            return bool(_common.prefixed(target, _known(session)))
    except (exceptions.TroupeError, OSError, click.UsageError):
        return False


def _known(session: Any) -> dict[str, dict[str, Any]]:
    """Launches and actors by their ids."""
    launches = session.request("ListLaunches", {})[1]["launches"]
    actors = session.request("ListActors", {})[1]["actors"]
    return {each["launch"]: each for each in launches} | {each["actor"]: each for each in actors}


def _remote(session: Any, target: str, rank: int, native: bool) -> list[dict[str, Any]]:
    known = _known(session)
    going = "".join(
        f"\n  {each['launch'][:8]}  {each['name']}"
        for each in known.values()
        if "rank_infos" in each and each["state"] != "terminal"
    )
    info = known[
        _common.only_prefixed(
            "launch or actor",
            target,
            known,
            "troupe list launches, troupe list actors"
            + (f"\nlaunches that run:{going}" if going else ""),
        )
    ]
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
        each
        for node, name in nodes.items()
        for each in _of_node(session, node, name, wanted, native)
    ]
    if not processes:
        raise exceptions.TroupeError(
            f"nothing of {target} runs just now: it waits, starts or has ended\n"
            "  see: troupe status"
        )
    return sorted(processes, key=lambda each: each["rank"])


def _of_node(
    session: Any, node: str, name: str, wanted: dict[str, Any], native: bool
) -> list[dict[str, Any]]:
    """The stacks of one node; one entry with the error when it cannot be asked."""
    from troupe._cluster import workers

    try:
        link = workers.link(session, node)
        _, _, text = link.request("ReadStacks", {**wanted, "native": native}, timeout=_WAIT_S)
    except exceptions.TroupeError as error:
        return [{"rank": -1, "pid": 0, "node": name, "error": str(error)}]
    return [{**each, "node": name} for each in json.loads(text or b"[]")]
