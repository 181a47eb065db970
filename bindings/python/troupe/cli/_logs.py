"""`troupe logs`: what the ranks of a launch, an actor or a process for tasks wrote."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import click

from troupe import state
from troupe._base import visible as _visible
from troupe._cluster import live_output, logs as _logs, view
from troupe.cli import _common
from troupe.launch import _logs as _launch_logs
from troupe.launch._handle import LaunchHandle, handle_of_known
from troupe.launch._row import Row


@click.command()
@click.argument("identity", metavar="ID")
@click.option(
    "--rank",
    type=click.IntRange(0),
    help="Of a launch: only this rank's lines, without the rank in front.",
)
@click.option("--follow", "-f", is_flag=True, help="Go on until the launch or the actor ends.")
@_common.cluster_options
def logs(
    identity: str,
    rank: int | None,
    follow: bool,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Print the output of a launch, an actor or a process for tasks; a prefix of its id will do.

    In a terminal a progress bar that is followed is seen moving. Ctrl-C ends the following, not
    what is followed.
    """
    with _common.session(address, token_file, cluster) as session:
        launches = {each["launch"] for each in view.find_launches(session, identity)}
        actors = {each["actor_id"]: each for each in state.list_actors(session, tasks=True)}
        found = _common.only_prefixed(
            "launch or actor",
            identity,
            [*launches, *actors],
            "troupe list launches, troupe list actors",
        )
        if found in launches:
            kind, handle = "launch", _handle(session, found, rank)
            lines, news = handle.logs(rank, follow), _launch_logs.news(handle, rank)
        elif rank is not None:
            raise click.UsageError(
                f"--rank is for launches; {found[:8]} is an actor of {actors[found]['class_name']}"
            )
        else:
            kind, sources = "actor", _logs.of_actor(actors[found])
            lines, news = _of_actor(session, sources, follow), _news_of_actor(session, sources)
        if as_json:
            _common.echo_json({kind: found, "lines": list(lines)})
            return
        if follow:
            row = Row(handle) if found in launches else None
            _follow(kind, found, news, row)
            return
        for line in lines:
            click.echo(_visible.output(line))


def _follow(
    kind: str,
    identity: str,
    news: Iterator[tuple[Hashable, str, list[str], list[str]]],
    row: Row | None,
) -> None:
    try:
        if row is not None:
            row.show()
        for key, label, finished, bars in news:
            if row is not None and (finished or bars):
                row.hide()
            live_output.show(key, f"{label} " if label else "", finished, bars, is_error=False)
    except KeyboardInterrupt:
        click.echo(
            f"{kind} {identity[:8]} goes on · come back: troupe logs {identity[:8]} --follow",
            err=True,
        )
        raise
    finally:
        if row is not None:
            row.hide()


def _handle(session: Any, launch: str, rank: int | None) -> LaunchHandle:
    handle = handle_of_known(session, launch)
    ranks = handle.wait_state(lambda _: True)["ranks"]  # known already
    if rank is not None and rank >= ranks:
        raise click.UsageError(f"launch {launch[:8]} has ranks 0 to {ranks - 1}, not {rank}")
    return handle


def _news_of_actor(
    session: Any, sources: list[_logs.Source]
) -> Iterator[tuple[Hashable, str, list[str], list[str]]]:
    for is_error, _, finished, bars in _logs.Follower(session, sources).news():
        yield is_error, "", finished, bars


def _of_actor(session: Any, sources: list[_logs.Source], follow: bool) -> Iterator[str]:
    if follow:
        for _, _, line in _logs.Follower(session, sources):
            yield line
        return
    for source in sources:
        yield from _logs.lines(session, source, follow=False)
