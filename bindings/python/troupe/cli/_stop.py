"""`troupe stop`: ends what was started from this TROUPE_HOME, and nothing else on the machine."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

import click

from troupe import exceptions
from troupe._base import process_ends
from troupe._cluster import connect, home
from troupe.cli import _common

GRACE_S = 15.0  # longer than ranks have for their last word
ASKED_S = 3.0  # for workers whom the head tells; one that it does not reach gets a signal then


@click.command()
@click.option(
    "--all", "everything", is_flag=True, help="Every head and worker of this TROUPE_HOME."
)
@click.option(
    "--only",
    type=click.Choice(["head", "worker"]),
    help="The head alone: workers, launches and actors go on, and wait for it to be started again. "
    "Or the worker of this host alone.",
)
@click.option("--cluster", metavar="ID", help="Which cluster (a prefix of its id will do).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def stop(everything: bool, only: str | None, cluster: str | None, as_json: bool) -> None:
    """Stop a cluster of this host: its head, and its workers wherever they are."""
    chosen = ""
    if everything:
        heads = [each for each in home.clusters(running_only=True)]
        workers = home.workers()
    else:
        chosen = _local_choice(cluster)
        if not chosen:
            _say_nothing_ran(as_json)
            return
        heads = [each for each in home.clusters(running_only=True) if each.cluster_id == chosen]
        workers = [(path, record) for path, record in home.workers() if path.parts[-3] == chosen]
    if only == "worker":
        heads = []
    elif only == "head":
        workers = []
    else:
        for head in heads:
            _ask_to_stop(head)
    pids = [int(record["pid"]) for _, record in workers] + [head.pid for head in heads]
    left = end_programs(pids, ask=bool(only) or not heads)
    for cluster_id in {head.cluster_id for head in home.clusters()} if everything else {chosen}:
        remove_sockets(cluster_id)
    if left:
        raise exceptions.TroupeError(f"still running: {', '.join(map(str, left))}")
    if as_json:
        _common.echo_json({"stopped": pids})
    elif pids:
        _common.echo(
            f"stopped {len(heads)} head{'s' * (len(heads) != 1)} and {len(workers)} "
            f"worker{'s' * (len(workers) != 1)}"
        )
    else:
        _say_nothing_ran(as_json)


def _say_nothing_ran(as_json: bool) -> None:
    """To stop twice is no mistake."""
    if as_json:
        _common.echo_json({"stopped": []})
    else:
        _common.echo(f"nothing of {home.home()} was running here")


def _local_choice(cluster: str | None) -> str:
    """The id of the cluster that is meant, among those with a head or a worker running here; "" for
    none."""
    ids = {each.cluster_id for each in home.clusters(running_only=True)}
    ids |= {path.parts[-3] for path, _ in home.workers()}
    found = sorted(each for each in ids if each.startswith(cluster or ""))
    if len(found) == 1:
        return found[0]
    if not found and cluster is None:
        return ""
    if not found:
        raise exceptions.ConnectionError(
            f"no cluster with the id {cluster} of {home.home()} is running here"
        )
    raise click.UsageError(
        "several clusters run here; say which with --cluster ID, or --all:\n"
        + "\n".join(f"  {each[:8]}" for each in found)
    )


def _ask_to_stop(head: home.ClusterHome) -> None:
    """Tells the head, which tells its workers on other hosts; one that does not answer, or whose
    address is not known, is ended anyway."""
    if head.damage is not None:
        return
    try:
        session = connect.connect(head.address)
        try:
            session.request("StopCluster", {"reason": "troupe stop"}, timeout=5)
        finally:
            session.close()
    except (exceptions.TroupeError, OSError):
        return


def remove_sockets(cluster_id: str) -> None:
    """Removes the sockets of this cluster's programs that are dead: one that was killed left its
    own."""
    folder = home.state_root() / "clusters" / cluster_id
    for path in (folder / "head.json", *folder.glob("nodes/*/node.json")):
        home.remove_socket_of(path)


def end_programs(pids: Sequence[int], *, ask: bool = True, grace: float = GRACE_S) -> list[int]:
    """Ends processes: SIGTERM, at once if `ask`, else after ASKED_S; then, after `grace`, SIGKILL.

    Waits for their ends by event. Returns those that are left. Unlike a process group's kill it
    touches only these: each ends its own children.
    """
    watched: dict[int, int] = {}
    for pid in pids:
        try:
            watched[os.pidfd_open(pid)] = pid
        except ProcessLookupError:
            continue
    try:
        if not ask:
            process_ends.drop_ended(watched, min(grace, ASKED_S))
        for number in (signal.SIGTERM, signal.SIGKILL):
            for descriptor in list(watched):
                try:
                    signal.pidfd_send_signal(descriptor, number)
                except ProcessLookupError:
                    continue
            process_ends.drop_ended(watched, grace)
        return sorted(watched.values())
    finally:
        for descriptor in watched:
            os.close(descriptor)
