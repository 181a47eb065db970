"""`troupe stack`: where the ranks of a launch, an actor or a process of this host are just now."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from troupe.cli import _common, _stack_view, _targets

_WAIT_S = 120.0


@click.command()
@_targets.process_options
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
    if _targets.is_local(target, is_pid, address, token_file, cluster):
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
    from troupe._tracing import stacks as _stacks

    return {"rank": -1, "node": os.uname().nodename, **_stacks.read(int(target), native=native)}


def _remote(session: Any, target: str, rank: int, native: bool) -> list[dict[str, Any]]:
    from troupe._cluster import workers

    def read(node: str, wanted: dict[str, Any]) -> list[dict[str, Any]]:
        link = workers.link(session, node)
        _, _, text = link.request("ReadStacks", {**wanted, "native": native}, timeout=_WAIT_S)
        found: list[dict[str, Any]] = json.loads(text or b"[]")
        return found

    return _targets.read_processes(session, target, rank, read)
