"""`troupe drain`: nothing new starts on a node, and what runs there comes to its end."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import click

from troupe._base.identity import short
from troupe._cluster import connect, view
from troupe._wire import ActorState, NodeState
from troupe.cli import _common

_LOOK_S = 0.2
_SHOWN = 10  # running ones listed in an error


@click.command()
@click.argument("node", metavar="NODE")
@click.option("--reason", default="troupe drain", show_default=True, help="What status shows.")
@click.option("--no-wait", is_flag=True, help="Return at once; what runs there goes on.")
@click.option(
    "--timeout",
    metavar="DURATION",
    help="Stop waiting after this long, as 30m or 24h, with exit code 1.",
)
@_common.cluster_options
def drain(
    node: str,
    reason: str,
    no_wait: bool,
    timeout: str | None,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Start nothing more on NODE, and wait until nothing runs there.

    NODE is a name or the beginning of an id. No launch, actor or group is ended. The node takes
    part again when its worker is started again: on its host, `troupe stop --only worker`, then
    `troupe start` as before.
    """
    limit_s = _common.seconds_of(timeout) if timeout else None
    with _common.session(
        address, token_file, cluster, return_timeout=connect.RETURN_TIMEOUT_S
    ) as session:
        found = _find(session, node)
        session.request("DrainNode", {"node": found["node"], "reason": reason or "troupe drain"})
        left = _running(session, found["node"]) if no_wait else _wait(session, found, limit_s)
    if as_json:
        _common.echo_json({"node": found["node"], "name": found["name"], "running": left})
    elif left:
        shown = "".join(f"\n  {each}" for each in left[:_SHOWN])
        more = f"\n  and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
        _common.echo(f"{found['name']} drains; there still runs:{shown}{more}")
    else:
        _common.echo_line(f"{found['name']} is drained: nothing runs there")
    if left and not no_wait:
        sys.exit(1)


def _find(session: Any, wanted: str) -> dict[str, Any]:
    """Return the NodeInfo of the node with this name, or with an id that begins so."""
    infos = {
        each.info["node"]: each.info
        for each in view.nodes(session)
        if each.info["state"] != NodeState.DEAD
    }
    named = [each for each in infos.values() if each["name"] == wanted]
    if named:
        return named[0]
    return infos[_common.only_prefixed("live node", wanted, infos, "troupe status")]


def _wait(session: Any, node: dict[str, Any], limit_s: float | None) -> list[str]:
    """Wait until nothing runs on a node; return what is left after `limit_s`."""
    deadline = None if limit_s is None else time.monotonic() + limit_s
    pause = threading.Event()
    while left := _running(session, node["node"]):
        if deadline is not None and time.monotonic() >= deadline:
            break
        pause.wait(_LOOK_S)
    return left


def _running(session: Any, node: str) -> list[str]:
    """Return what a node still has, in words: launches, actors, and what else holds resources."""
    left = [
        f"launch {short(each['launch'])} {each['name']}"
        for each in view.open_launches(session)
        if node in each["nodes"]
    ]
    left += [
        f"actor {short(each['actor'])} {each['class_name']}"
        for each in session.request("ListActors", {})[1]["actors"]
        if each["node"] == node and each["state"] != ActorState.DEAD
    ]
    for each in view.nodes(session):
        if each.info["node"] == node and each.info["state"] != NodeState.DEAD and not left:
            held = {name: each.total[name] - each.free.get(name, 0.0) for name in each.total}
            left += [f"{amount:g} {name} held" for name, amount in held.items() if amount > 0]
    return left
