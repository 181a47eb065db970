"""`troupe logs`: what the ranks of a launch, an actor or a process for tasks wrote."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from troupe import _logs, _visible, state
from troupe.cli import _common
from troupe.launch._handle import LaunchHandle


@click.command()
@click.argument("identity", metavar="ID")
@click.option("--rank", type=click.IntRange(0), help="Of a launch: only this rank's lines, without the rank in front.")
@click.option("--follow", "-f", is_flag=True, help="Go on until the launch or the actor ends.")
@_common.cluster_options
def logs(identity: str, rank: int | None, follow: bool, address: str | None, token_file: str | None,
         cluster: str | None, as_json: bool) -> None:
    """Print the output of a launch, an actor or a process for tasks; a prefix of its id will do."""
    with _common.session(address, token_file, cluster) as session:
        launches = {each["launch"] for each in session.request("ListLaunches", {})[1]["launches"]}
        actors = {each["actor_id"]: each for each in state.list_actors(session, tasks=True)}
        found = _common.only_prefixed("launch or actor", identity, [*launches, *actors], "troupe list launches, troupe list actors")
        if found in launches:
            kind, lines = "launch", _of_launch(session, found, rank, follow)
        elif rank is not None:
            raise click.UsageError(f"--rank is for launches; {found[:8]} is an actor of {actors[found]['class_name']}")
        else:
            kind, lines = "actor", _of_actor(session, actors[found], follow)
        if as_json:
            _common.echo_json({kind: found, "lines": list(lines)})
            return
        for line in lines:
            click.echo(_visible.output(line))


def _of_launch(session: Any, launch: str, rank: int | None, follow: bool) -> Iterator[str]:
    info = session.request("WatchLaunch", {"launch": launch})[1]["info"]
    if rank is not None and rank >= info["ranks"]:
        raise click.UsageError(f"launch {launch[:8]} has ranks 0 to {info['ranks'] - 1}, not {rank}")
    session.board.post_reply("launch", launch, info)
    yield from LaunchHandle(session, launch).logs(rank, follow)


def _of_actor(session: Any, actor: dict[str, Any], follow: bool) -> Iterator[str]:
    sources = _logs.of_actor(actor)
    if follow:
        for _, _, line in _logs.Follower(session, sources):
            yield line
        return
    for source in sources:
        yield from _logs.lines(session, source, follow=False)
