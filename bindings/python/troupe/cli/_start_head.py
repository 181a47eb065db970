"""`troupe start --head`: the head, and the state that it resumes."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import click

from troupe import exceptions
from troupe._base.identity import new_id
from troupe._cluster import executables, folders, home, node_start

_HEAD_LOG = "head.log"
_FAILED_KEPT = 10  # logs of new heads that did not start


def _state_to_resume(cluster: str | None, new: bool) -> home.ClusterHome | None:
    """The cluster to resume, or None for a new one."""
    if new:
        return None
    known = home.clusters()
    if cluster:
        known = [each for each in known if each.cluster_id.startswith(cluster)]
        if len(known) != 1:
            raise click.UsageError(
                f"{'no' if not known else 'more than one'} cluster in {home.home()} has an id that "
                f"starts with {cluster}"
            )
        if known[0].running:
            raise exceptions.TroupeError(
                f"the head of cluster {known[0].cluster_id[:8]} runs already, at "
                f"{known[0].require_whole().address} (pid {known[0].pid})"
            )
        return known[0]
    for each in known:
        # A damaged cluster may be the one to resume, and a new one in its place would hide its
        # state
        each.require_whole()
    stopped = [each for each in known if not each.running]
    if len(stopped) > 1:
        listed = "\n".join(f"  {each.cluster_id[:8]}  last at {each.address}" for each in stopped)
        raise click.UsageError(
            "several clusters could be resumed; say which with --cluster ID, or --new:\n" + listed
        )
    return stopped[0] if stopped else None


def _address_of(
    listen: str | None, port: int | None, resumed: home.ClusterHome | None
) -> tuple[str, int]:
    """Return the address on which the head listens: as asked, else as before (its nodes look for it
    there)."""
    host_before, _, port_before = resumed.address.rpartition(":") if resumed else ("", "", "")
    return listen or host_before.strip("[]") or "127.0.0.1", port if port is not None else int(
        port_before or 6400
    )


def _start_head(
    listen: str | None,
    port: int | None,
    cluster: str | None,
    new: bool,
    node: list[str] | None,
    name: str | None,
    options: list[str],
) -> tuple[list[executables.Started], dict[str, Any]]:
    resumed = _state_to_resume(cluster, new)
    if resumed and port is None:
        resumed.require_whole()  # the head's nodes look for it at the old address
    listen, port = _address_of(listen, port, resumed)
    root = home.state_root()
    home.require_writable(root)
    if root != home.home():
        click.echo(f"{home.home()} is on a network file system: state is kept in {root}", err=True)
    folders.private(
        root / "clusters", remedy="set TROUPE_HOME to another folder"
    )  # the head leaves its mode to the umask
    args = [f"--home={root}", f"--listen={listen}", f"--port={port}", *options]
    args.append(f"--cluster={resumed.cluster_id}" if resumed else "--new=true")
    head = _run_head(args, root, resumed)
    cluster_id = str(head.ready["cluster_id"])
    shown = {
        "address": head.ready["address"],
        "pid": head.pid,
        "cluster_id": cluster_id,
        **({"client_token": token} if (token := head.ready.get("client_token")) else {}),
        "socket": head.ready["socket"],
        "resumed": bool(resumed),
        "state": str(root / "clusters" / cluster_id),
    }
    if node is None:
        return [head], shown
    folder = node_start.node_dir(root, cluster_id, name)
    if not listen.startswith("127.") and listen not in ("::1", "localhost"):
        node = [*node, f"--listen={listen}"]  # other nodes reach this one where they reach its head
    # A node that was here before proves by its certificate, over TLS, that it is the same one.
    again = (folder / "node.crt").is_file()
    reached = str(head.ready["address"]) if again else f"unix:{head.ready['socket']}"
    try:
        worker = node_start.start(reached, folder, node, log=folder / "worker.log")
    except BaseException:
        executables.end([head.process])
        raise
    shown["node"] = {**worker.ready, "pid": worker.pid}
    return [head, worker], shown


def _run_head(args: list[str], root: Path, resumed: home.ClusterHome | None) -> executables.Started:
    """Starts it; its log is head.log in the cluster's folder, which a new head has first to
    make."""
    if resumed:
        return executables.start("troupe-head", args, log=resumed.path / _HEAD_LOG)
    log = root / "logs" / f"head-{new_id()[:16]}.log"
    with contextlib.suppress(OSError):  # another start renames its own meanwhile
        failed = sorted(log.parent.glob("head-*.log"), key=lambda each: each.stat().st_mtime)
        for old in failed[:-_FAILED_KEPT]:
            old.unlink()
    head = executables.start("troupe-head", args, log=log)
    log.rename(root / "clusters" / str(head.ready["cluster_id"]) / _HEAD_LOG)
    return head
