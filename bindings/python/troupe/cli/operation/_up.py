"""`troupe up` and `troupe down`: nodes on hosts that ssh reaches."""

from __future__ import annotations

import ipaddress
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from troupe import exceptions
from troupe._cluster import home, node_start, session as _session
from troupe._provision import attempts, connections, hosts_file, ssh_lines
from troupe._provision.attempts import Outcome
from troupe._provision.hosts import Host
from troupe.cli import _common, _tables

_TOKEN_MARGIN_S = 300


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False))
@click.argument("names", metavar="[HOST]...", nargs=-1)
@click.option(
    "--at-least",
    type=click.IntRange(min=1),
    metavar="N",
    help="Succeed if N hosts are up.  [default: all]",
)
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Time that each host has for its node to join.",
)
@click.option(
    "--dry-run", is_flag=True, help="Print the command line for each host, and start nothing."
)
@_common.cluster_options
def up(
    file: str,
    names: tuple[str, ...],
    at_least: int | None,
    wait_s: float,
    dry_run: bool,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Start a node on each host of FILE by ssh, or only on the HOSTs that are named.

    FILE is YAML (its name ends in .yml or .yaml), or a hostfile with lines like `node-a slots=8`.
    Hosts that are up already stay as they are. A node ends with its ssh connection: by `troupe
    down`, or when the host cannot be reached any more.

    The exit code is 0 if all hosts are up, or as many as --at-least says; else 1.
    """
    read = hosts_file.read(file)
    chosen = _chosen(read.hosts, names, file)
    if at_least is not None and at_least > len(chosen):
        raise click.UsageError(f"--at-least {at_least}: {file} has {len(chosen)} hosts")
    choice = _common.which_cluster(address, cluster)
    reached = read.address or choice.address
    _check_reachable(reached, chosen, file)
    if dry_run:
        for host in chosen:
            _common.echo_line(shlex.join(ssh_lines.client_line(host, reached)))
        return
    connections.require_ssh()
    _common.interrupt_at_signals()
    shown: list[Outcome] = []
    with (
        _common.session(address, token_file, cluster) as session,
        _token(session, int(wait_s) + _TOKEN_MARGIN_S, file) as token,
    ):
        cluster_id = node_start.cluster_of_sound_token(token) or ""
        folder = connections.folder_of(cluster_id)
        try:
            with connections.locked(folder):
                _bring_up(folder, chosen, reached, token, wait_s, shown)
        except KeyboardInterrupt:
            _report(cluster_id, chosen, shown, as_json=as_json)
            raise
    _report(cluster_id, chosen, shown, as_json=as_json)
    came = sum(not each.cause for each in shown)
    if came < (at_least if at_least is not None else len(chosen)):
        sys.exit(1)


def _chosen(hosts: Sequence[Host], names: Sequence[str], file: str) -> list[Host]:
    """Return the hosts that are named, all where none is. A usage error names unknown ones."""
    unknown = [name for name in names if not any(name in (each.host, each.name) for each in hosts)]
    if unknown:
        raise click.UsageError(f"{file} has no host {', '.join(map(repr, unknown))}")
    return [each for each in hosts if not names or each.host in names or each.name in names]


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_reachable(address: str, hosts: Sequence[Host], file: str) -> None:
    """Raise UsageError for an address of the head that no other host reaches."""
    local = address.startswith("unix:") or _is_loopback(home.host_and_port(address)[0])
    away = [each.shown for each in hosts if not _is_loopback(each.host)]
    if address.startswith("unix:") or (local and away):
        raise click.UsageError(
            f"the head is at {address}, where {away[0] if away else 'a host'} does not reach it\n"
            "  start it with an address of this host: troupe start --head --listen 10.0.0.1\n"
            f"  or say in {file} how hosts reach it, as address: 10.0.0.1:6400"
        )


@contextmanager
def _token(session: _session.Session, ttl_s: int, file: str) -> Iterator[str]:
    """Give a join token for this command, revoked at its end."""
    note = f"troupe up {Path(file).name}"[:80]
    fields = {"role": "worker", "ttl_s": ttl_s, "single_use": False, "note": note, "user": ""}
    made = session.request("CreateToken", fields)[1]
    try:
        yield made["token"]
    finally:
        session.request("RevokeToken", {"id": made["id"]})


def _bring_up(
    folder: Path,
    hosts: Sequence[Host],
    address: str,
    token: str,
    wait_s: float,
    shown: list[Outcome],
) -> None:
    """Bring the hosts up that are not, and put the outcomes of all into `shown`."""
    known = connections.known(folder)
    missing, unfinished = [], []
    for host in hosts:
        found = known.get(host.folder_name)
        alive = found is not None and found.is_alive()
        if found is not None and alive and found.record.node:
            shown.append(Outcome(host, node=found.record.node, was_up=True))
            continue
        missing.append(host)
        # The process that started it was killed before the node had joined
        if found is not None and alive:
            unfinished.append(found)
    connections.end(unfinished, connections.KILL_GRACE_S)
    attempts.Attempts(folder, address, token, wait_s).run(missing, shown.append)


def _state(outcome: Outcome) -> str:
    if outcome.cause:
        return "failed"
    return "was up" if outcome.was_up else "up"


def _report(
    cluster_id: str, hosts: Sequence[Host], outcomes: Sequence[Outcome], *, as_json: bool
) -> None:
    """Print what became of each host, in the file's order; causes of failures on stderr."""
    by_key = {each.host.key: each for each in outcomes}
    ordered = [by_key[each.key] for each in hosts if each.key in by_key]
    came = sum(not each.cause for each in ordered)
    if as_json:
        rows = [
            {
                "host": each.host.shown,
                "node": each.node,
                "state": _state(each),
                "cause": each.cause,
                "seconds": each.seconds,
            }
            for each in ordered
        ]
        _common.echo_json({"cluster_id": cluster_id, "hosts": rows, "up": came, "of": len(hosts)})
        return
    _tables.show(
        ["HOST", "NODE", "STATE", "TIME"],
        [
            [
                each.host.shown,
                each.node,
                _state(each),
                f"{each.seconds:.1f} s" if not each.was_up else "",
            ]
            for each in ordered
        ],
    )
    for each in ordered:
        if each.cause:
            _common.echo(f"{each.host.shown}: {each.cause}", err=True)
    _common.echo_line(f"{came} of {len(hosts)} hosts are up in cluster {cluster_id[:8]}")


@click.command()
@click.argument("names", metavar="[HOST]...", nargs=-1)
@click.option("--cluster", metavar="ID", help="Which cluster (a prefix of its id will do).")
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="Time that nodes have to end; after that their connections are cut.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def down(names: tuple[str, ...], cluster: str | None, wait_s: float, as_json: bool) -> None:
    """End the nodes that `troupe up` started, or only those of the HOSTs.

    They are those of this TROUPE_HOME. What runs there ends, as by `troupe stop`; the head and
    other nodes go on. The exit code is 1 if a node did not answer, so that its connection was cut.
    """
    cluster_id = _with_connections(cluster)
    alive: list[connections.Connection] = []
    cut_off: list[connections.Connection] = []
    if cluster_id:
        folder = connections.folder_of(cluster_id)
        with connections.locked(folder):
            for each in connections.known(folder).values():
                wanted = not names or {each.record.host, each.record.node} & set(names)
                if each.is_alive() and wanted:
                    alive.append(each)
                elif not each.is_alive():
                    each.forget()
            cut_off = connections.end(alive, wait_s)
    rows: list[dict[str, Any]] = [
        {
            "host": each.record.shown,
            "node": each.record.node,
            "state": "cut off" if each in cut_off else "ended",
        }
        for each in alive
    ]
    if as_json:
        _common.echo_json({"cluster_id": cluster_id, "hosts": rows})
    elif rows:
        _tables.show(
            ["HOST", "NODE", "STATE"], [[str(each[name]) for name in each] for each in rows]
        )
    else:
        _common.echo("nothing that `troupe up` started is up")
    for each in cut_off:
        _common.echo(
            f"{each.record.shown}: its node did not end within {wait_s:g} s, and its connection "
            "was cut: the node ends when the host notices",
            err=True,
        )
    if cut_off:
        sys.exit(1)


def _with_connections(prefix: str | None) -> str:
    """Return the id of the cluster with ssh clients that is meant; "" if there is none."""
    found = [each for each in connections.clusters() if each.startswith(prefix or "")]
    if len(found) > 1:
        raise click.UsageError(
            "`troupe up` started nodes of several clusters; say which with --cluster ID:\n"
            + "\n".join(f"  {each[:8]}" for each in found)
        )
    if not found and prefix:
        raise exceptions.ConnectionError(
            f"`troupe up` started no node of a cluster with the id {prefix} that is up"
        )
    return found[0] if found else ""
