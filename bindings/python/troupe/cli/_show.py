"""`troupe status` and `troupe list`: what a cluster holds."""

from __future__ import annotations

import datetime
import time
from typing import TYPE_CHECKING, Any

import click

from troupe import state
from troupe._base.identity import short
from troupe._cluster import connect, topology as _topology
from troupe.cli import _common, _tables
from troupe.launch._handle import describe

if TYPE_CHECKING:
    from rich.table import Table


@click.command()
@click.option(
    "--watch",
    "-w",
    is_flag=True,
    help="Show it again and again until Ctrl-C; with --json one document a line.",
)
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="With --watch: time between two looks.",
)
@_common.cluster_options
def status(
    watch: bool,
    interval: float,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Nodes, launches and what waits."""
    return_timeout = connect.RETURN_TIMEOUT_S if watch else 0.0
    with _common.session(address, token_file, cluster, return_timeout=return_timeout) as session:
        if not watch:
            _show_status(session, as_json=as_json)
            return
        from troupe.cli.operation import _live

        if as_json:
            _live.repeat(lambda: _show_status(session, as_json=True), interval)
        else:
            _live.draw(lambda: _status_parts(*_ask_status(session)), interval)


def _show_status(session: Any, *, as_json: bool) -> None:
    if as_json:
        _common.echo_json(_status_document(session.request("GetStatus", {})[1]))
        return
    for part in _status_parts(*_ask_status(session)):
        if isinstance(part, str):
            _common.echo_line(part)  # in one line, however wide the terminal is
        else:
            _tables.console().print(part)


def _ask_status(session: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    groups = session.request("ListGroups", {})[1]["groups"]
    return session.request("GetStatus", {})[1], groups


def _status_document(info: dict[str, Any]) -> dict[str, Any]:
    return {
        "cluster_id": info["cluster_id"],
        "address": info["address"],
        "pid": info["pid"],
        "up_s": info["up_ms"] / 1000,
        "version": info["version"],
        "nodes": [state.node_dict(each) for each in info["nodes"]],
        "launches": [describe(each) for each in info["launches"]],
        "actors": info["actor_count"],
        "placement_groups": info["group_count"],
    }


def _status_parts(info: dict[str, Any], groups: list[dict[str, Any]]) -> list[str | Table]:
    """Return what `troupe status` shows, from above: lines and tables."""
    nodes = [state.node_dict(each) for each in info["nodes"]]
    parts: list[str | Table] = [_headline(info, nodes), _node_table(nodes)]
    going = [describe(each) for each in info["launches"] if each["state"] != "terminal"]
    if going:
        parts.append(_launch_table(going))
    parts += [
        f"waiting{_place(launch)}: launch {short(launch['id'])}: {launch['waiting_for']}"
        for launch in going
        if launch["waiting_for"]
    ]
    for group in sorted(
        (each for each in groups if each["queue_place"] and not each["gang"]),
        key=lambda each: each["queue_place"],
    ):
        what = (
            f"actor {short(group['actor'])}"
            if group["actor"]
            else f"placement group {group['name'] or short(group['group'])}"
        )
        parts.append(f"waiting{_place(group)}: {what}: {group['reason']}")
    return parts


def _headline(info: dict[str, Any], nodes: list[dict[str, Any]]) -> str:
    alive = [node for node in nodes if node["alive"]]
    gpus = sum(node["resources"].get("GPU", 0) for node in alive)
    return (
        f"cluster {info['cluster_id'][:8]}   head {info['address']} up "
        f"{_tables.ago(info['up_ms'] / 1000)}   "
        f"{_counted(len(alive), 'node')}   {_counted(gpus, 'GPU')}   "
        f"{_counted(info['actor_count'], 'actor')}"
    )


def _counted(number: float, what: str) -> str:
    return f"{_tables.amount(number)} {what}" + ("" if number == 1 else "s")


def _place(waiting: dict[str, Any]) -> str:
    """Return the place in the queue, and the priority."""
    if not waiting["queue_place"]:
        return ""
    return f" (place {waiting['queue_place']}" + (
        f", priority {waiting['priority']})" if waiting["priority"] else ")"
    )


def _node_table(nodes: list[dict[str, Any]]) -> Table:
    why = ["WHY"] if any(node["why"] for node in nodes) else []
    preimport = ["PREIMPORT"] if any(node["preimport"] for node in nodes) else []
    return _tables.table_of(
        ["NODE", "STATE", "CPU", "GPU", "OTHER", "HEARD", *why, *preimport],
        [
            _node_row(node)
            + [node["why"].split("\n")[0]] * len(why)
            + ["; ".join(node["preimport"])] * len(preimport)
            for node in nodes
        ],
    )


def _node_row(node: dict[str, Any]) -> list[str]:
    def used(name: str) -> str:
        total = node["resources"].get(name, 0)
        if node["state"] == "dead":
            return f"-/{_tables.amount(total, name)}"  # resources it held are no longer its own
        held = round(total - node["free"].get(name, 0), 4)
        return f"{_tables.amount(held, name)}/{_tables.amount(total, name)}"

    other = " ".join(
        f"{name} {used(name)}" for name in node["resources"] if name not in ("CPU", "GPU")
    )
    return [
        node["name"],
        node["state"],
        used("CPU"),
        used("GPU"),
        other,
        f"{node['heard_s']:.1f} s",
    ]


def _launch_table(launches: list[dict[str, Any]]) -> Table:
    return _tables.table_of(
        ["LAUNCH", "NAME", "DOOR", "RANKS", "STATE", "EPOCH", "TOOK", "CAUSE"],
        [
            [
                short(each["id"]),
                each["name"],
                each["door"],
                str(each["ranks"]),
                each["state"],
                str(each["epoch"]),
                _tables.ago(each["duration_s"]),
                (each["cause"] or "").splitlines()[0] if each["cause"] else "",
            ]
            for each in launches
        ],
    )


@click.command("list")
@click.argument(
    "noun",
    type=click.Choice(["nodes", "actors", "launches", "placement-groups", "tasks", "events"]),
)
@click.option(
    "--topology",
    is_flag=True,
    help="Nodes by where they stand (labels block, rack, nvlink_domain), and how they are "
    "connected.",
)
@click.option(
    "--limit", type=click.IntRange(1), help="Launches: the latest so many.  [default: 1000]"
)
@click.option("--since", metavar="TIME", help="Launches submitted in the last 30m, 24h or 7d.")
@_common.cluster_options
def list_(
    noun: str,
    topology: bool,
    limit: int | None,
    since: str | None,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """List nodes, actors, launches, placement-groups, tasks that are not over, or events: what has
    happened since the head started."""
    if topology and noun != "nodes":
        raise click.UsageError("--topology goes with nodes")
    if noun != "launches" and (limit is not None or since is not None):
        raise click.UsageError("--limit and --since go with launches")
    since_s = 0.0 if since is None else time.time() - _common.seconds_of(since)
    fetch = {
        "nodes": state.list_nodes,
        "actors": state.list_actors,
        "launches": lambda session: state.list_launches(
            session, limit=limit or 1000, since=since_s
        ),
        "placement-groups": state.list_placement_groups,
        "tasks": _tasks,
        "events": state.list_events,
    }[noun]
    with _common.session(address, token_file, cluster) as session:
        rows = fetch(session)
    if as_json:
        _common.echo_json(rows)
    elif topology:
        _common.echo(_topology.text(rows))
    elif noun == "nodes":
        _tables.console().print(_node_table(rows))
    elif noun == "launches":
        _tables.console().print(_launch_table(rows))
    else:
        columns, cells_of = _COLUMNS[noun]
        _tables.show(columns, [cells_of(row) for row in rows])


def _actor_cells(row: dict[str, Any]) -> list[str]:
    return [
        row["actor_id"][:8],
        row["class_name"],
        row["name"],
        row["namespace"] if row["name"] else "",
        row["state"],
        row["node"],
        str(row["pid"] or ""),
        (row["cause"] or row["waiting_for"]).split("\n")[0],
    ]


def _task_cells(row: dict[str, Any]) -> list[str]:
    return [
        row["task_id"],
        row["name"],
        row["state"],
        str(row["pid"] or ""),
        f"pid {row['owner_pid']} of job {row['job_id'][:8]}",
    ]


def _event_cells(row: dict[str, Any]) -> list[str]:
    return [
        datetime.datetime.fromtimestamp(row["time_s"]).strftime("%m-%d %H:%M:%S"),
        row["severity"],
        row["source"],
        row["message"].split("\n")[0],
    ]


def _group_cells(row: dict[str, Any]) -> list[str]:
    return [
        row["placement_group_id"][:8],
        row["name"],
        row["strategy"],
        row["state"],
        " ".join(_bundle(bundle) for bundle in row["bundles"].values()),
    ]


_COLUMNS = {
    "actors": (
        ["ACTOR", "CLASS", "NAME", "NAMESPACE", "STATE", "NODE", "PID", "CAUSE"],
        _actor_cells,
    ),
    "tasks": (["TASK", "NAME", "STATE", "PID", "STARTED BY"], _task_cells),
    "events": (["TIME", "SEVERITY", "SOURCE", "WHAT"], _event_cells),
    "placement-groups": (["GROUP", "NAME", "STRATEGY", "STATE", "BUNDLES"], _group_cells),
}
"""Of each list without a table of its own: its columns, and the cells of a row."""


def _tasks(session: Any) -> list[dict[str, Any]]:
    return state.list_tasks(session, everywhere=True)


def _bundle(bundle: dict[str, float]) -> str:
    return (
        "{" + ", ".join(f"{name}: {_tables.amount(value)}" for name, value in bundle.items()) + "}"
    )


@click.command()
@click.argument("identity", metavar="ID")
@click.option(
    "--svg",
    type=click.File("w", lazy=True),
    metavar="FILE",
    help="Write a picture of where its bundles lie; - for the standard output.",
)
@_common.cluster_options
def explain(
    identity: str,
    svg: Any,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Show where a launch, an actor or a placement group is, or why it waits."""
    with _common.session(address, token_file, cluster) as session:
        if svg is not None:
            svg.write(state.placement_svg(identity, session))
            return
        text = state.explain(identity, session)
    if as_json:
        _common.echo_json({"id": identity, "text": text})
    else:
        _common.echo(text)
