"""`troupe top`: how full the nodes are, and what fills them, live."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from troupe._base.identity import TASKS_CLASS, short
from troupe._cluster import connect, resources
from troupe.cli import _common, _tables

if TYPE_CHECKING:
    from rich.table import Table

BAR_CELLS = 12
ROWS_MAX = 100  # rows of a table: more than a screen has
_SHOWN = ("CPU", "GPU", "memory")


@click.command()
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two looks.",
)
@click.option("--once", is_flag=True, help="Show it once, and end.")
@_common.cluster_options
def top(
    interval: float,
    once: bool,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Show how much of each node is held, and by which launches and actors, until Ctrl-C.

    What is held is what launches, actors and placement groups have asked for, not what they use.
    """
    from troupe.cli.operation import _live

    with _common.session(
        address, token_file, cluster, return_timeout=connect.RETURN_TIMEOUT_S
    ) as session:

        def ask() -> dict[str, Any]:
            actors = session.request("ListActors", {})[1]["actors"]
            return summary(session.request("GetStatus", {})[1], actors)

        if as_json and once:
            _common.echo_json(ask())
        elif as_json:
            _live.repeat(lambda: _common.echo_json(ask()), interval)
        elif once:
            _live.draw_once(parts_of(ask()))
        else:
            _live.draw(lambda: parts_of(ask()), interval)


def summary(status: Mapping[str, Any], actors: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what is shown, from a ClusterStatus and ActorInfos, the fullest nodes and the largest
    launches first. Pure."""
    alive = [each for each in actors if each["state"] == "alive"]
    classes = Counter(each["class_name"] for each in alive if each["class_name"] != TASKS_CLASS)
    nodes = [_node(each) for each in status["nodes"] if each["state"] != "dead"]
    launches = [
        {
            "id": each["launch"],
            "name": each["name"],
            "state": each["state"],
            "ranks": each["ranks"],
            "holds": {
                name: amount * each["ranks"]
                for name, amount in resources.from_wire(each["per_rank"]).items()
            },
            "seconds": each["duration_ms"] / 1000,
            "waiting_for": each["waiting_for"],
        }
        for each in status["launches"]
        if each["state"] != "terminal"
    ]
    return {
        "cluster_id": status["cluster_id"],
        "address": status["address"],
        "up_s": status["up_ms"] / 1000,
        "nodes": sorted(
            nodes, key=lambda each: (-max(each["held"].values(), default=0), each["name"])
        ),
        "launches": sorted(launches, key=lambda each: (-each["ranks"], each["id"])),
        "actors": dict(classes.most_common()),
    }


def _node(info: Mapping[str, Any]) -> dict[str, Any]:
    total, free = resources.from_wire(info["resources"]), resources.from_wire(info["free"])
    return {
        "name": info["name"],
        "state": info["state"],
        "total": total,
        "held": {
            name: round(1 - free.get(name, 0.0) / amount, 4)
            for name, amount in total.items()
            if amount and name in _SHOWN
        },
    }


def parts_of(seen: Mapping[str, Any]) -> list[str | Table]:
    """Return a summary as lines and tables."""
    nodes, launches, actors = seen["nodes"], seen["launches"], seen["actors"]
    waiting = sum(bool(each["waiting_for"]) for each in launches)
    parts: list[str | Table] = [
        f"cluster {seen['cluster_id'][:8]}   head {seen['address']} up "
        f"{_tables.ago(seen['up_s'])}   nodes {len(nodes)}   launches {len(launches)}, waiting "
        f"{waiting}   actors {sum(actors.values())}",
        _tables.table_of(
            ["NODE", "STATE", *(name.upper() for name in _SHOWN)],
            [
                [each["name"], each["state"], *(_bar(each, name) for name in _SHOWN)]
                for each in nodes[:ROWS_MAX]
            ],
        ),
    ]
    if launches:
        parts.append(
            _tables.table_of(
                ["LAUNCH", "NAME", "RANKS", "STATE", "SINCE", "HOLDS", "WAITS FOR"],
                [_launch_row(each) for each in launches[:ROWS_MAX]],
            )
        )
    if actors:
        rows = [[name, str(count)] for name, count in list(actors.items())[:ROWS_MAX]]
        parts.append(_tables.table_of(["ACTORS OF CLASS", "COUNT"], rows))
    return parts


def _launch_row(launch: Mapping[str, Any]) -> list[str]:
    return [
        short(launch["id"]),
        launch["name"],
        str(launch["ranks"]),
        launch["state"],
        _tables.ago(launch["seconds"]),
        " ".join(f"{_tables.amount(each, name)} {name}" for name, each in launch["holds"].items()),
        launch["waiting_for"].partition("\n")[0],
    ]


def _bar(node: Mapping[str, Any], name: str) -> str:
    """Return `━━━━╌╌╌╌╌╌╌╌ 4/12`; "" for what the node has not."""
    if name not in node["held"]:
        return ""
    full = round(node["held"][name] * BAR_CELLS)
    total = node["total"][name]
    held = round(node["held"][name] * total, 1)
    return (
        f"{'━' * full}{'╌' * (BAR_CELLS - full)} "
        f"{_tables.amount(held, name)}/{_tables.amount(total, name)}"
    )
