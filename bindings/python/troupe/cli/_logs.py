"""`troupe logs`: what the ranks of a launch wrote."""
from __future__ import annotations

import click

from troupe.cli import _common
from troupe.launch._handle import LaunchHandle


@click.command()
@click.argument("launch", metavar="LAUNCH")
@click.option("--rank", type=click.IntRange(0), help="Only this rank's lines, without the rank in front.")
@click.option("--follow", "-f", is_flag=True, help="Go on until the launch ends.")
@_common.cluster_options
def logs(launch: str, rank: int | None, follow: bool, address: str | None, token_file: str | None,
         cluster: str | None, as_json: bool) -> None:
    """Print the output of a launch; a prefix of its id will do."""
    with _common.session(address, token_file, cluster) as session:
        launches = session.request("ListLaunches", {})[1]["launches"]
        found = _common.only_prefixed("launch", launch, [each["launch"] for each in launches], "troupe list launches")
        info = session.request("WatchLaunch", {"launch": found})[1]["info"]
        if rank is not None and rank >= info["ranks"]:
            raise click.UsageError(f"launch {found[:8]} has ranks 0 to {info['ranks'] - 1}, not {rank}")
        session.board.post_reply("launch", info["launch"], info)
        lines = LaunchHandle(session, info["launch"]).logs(rank, follow)
        if as_json:
            _common.echo_json({"launch": info["launch"], "lines": list(lines)})
            return
        for line in lines:
            click.echo(line)
