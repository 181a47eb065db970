"""`troupe profile`: where the processes of a launch, an actor or a process of this host spend their
time."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from troupe._wire import ProfileFormat
from troupe.cli import _common, _targets

_BEYOND_S = 120.0
"""How long a worker may take besides the sampling."""
_HOW_TO_OPEN = {
    ProfileFormat.FLAMEGRAPH: "open it in a browser",
    ProfileFormat.SPEEDSCOPE: "open it at https://www.speedscope.app",
    ProfileFormat.COLLAPSED: "draw it with flamegraph.pl or inferno-flamegraph",
}


@click.command()
@_targets.process_options
@click.option(
    "--seconds",
    type=click.IntRange(1, 600),
    default=10,
    show_default=True,
    help="How long to sample.",
)
@click.option(
    "--rate",
    type=click.IntRange(1, 1000),
    default=100,
    show_default=True,
    help="Samples a second.",
)
@click.option("--idle", is_flag=True, help="Sample threads that wait, too.")
@click.option("--native", is_flag=True, help="Sample C++ frames, too (slower).")
@click.option("--subprocesses", is_flag=True, help="Sample processes that these have started, too.")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(_HOW_TO_OPEN)),
    default=ProfileFormat.SPEEDSCOPE,
    show_default=True,
    help="What to write.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, writable=True),
    help="Where to write it.  [default: profile-TARGET with the format's ending, here]",
)
@_common.cluster_options
def profile(
    target: str,
    rank: int | None,
    is_pid: bool,
    form: str,
    output: str | None,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Sample where the ranks of a launch, an actor, or a process spend their time.

    TARGET is a launch's or an actor's id (a prefix will do), else the pid of a Python process of
    this host. py-spy samples from outside: the processes need no preparation and run on.
    """
    from troupe._tracing import profile_files

    if _targets.is_local(target, is_pid, address, token_file, cluster):
        rows = [_local(int(target), form, options)]
    else:
        with _common.session(address, token_file, cluster) as session:
            rows = _remote(session, target, -1 if rank is None else rank, form, options)
    path = output or f"profile-{target[:8]}{profile_files.SUFFIXES[form]}"
    files = profile_files.files(rows, form, path)
    for name, text in files.items():
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
    if as_json:
        _common.echo_json(
            {"files": list(files), "processes": [_shown(each, form) for each in rows]}
        )
    else:
        _report(rows, list(files), form)
    if not files:
        raise click.exceptions.Exit(1)


def _local(pid: int, form: str, options: dict[str, Any]) -> dict[str, Any]:
    from troupe._tracing import profiles

    wanted = profiles.Wanted(format=form, **options)
    return {"rank": -1, "node": os.uname().nodename, **profiles.record(pid, wanted)}


def _remote(
    session: Any, target: str, rank: int, form: str, options: dict[str, Any]
) -> list[dict[str, Any]]:
    from troupe._cluster import workers
    from troupe._tracing import profiles

    seconds, rate = options.pop("seconds"), options.pop("rate")
    fields = {"duration_ms": seconds * 1000, "rate_per_s": rate, "format": form, **options}

    def read(node: str, wanted: dict[str, Any]) -> list[dict[str, Any]]:
        link = workers.link(session, node)
        _, _, text = link.request("ReadProfile", {**wanted, **fields}, timeout=seconds + _BEYOND_S)
        return [profiles.unpack(each) for each in json.loads(text or b"[]")]

    return _targets.read_processes(session, target, rank, read)


def _shown(row: dict[str, Any], form: str) -> dict[str, Any]:
    from troupe._tracing import profile_files

    shown = {name: value for name, value in row.items() if name != "text"}
    return shown if "error" in row else {**shown, "samples": profile_files.count_samples(row, form)}


def _report(rows: list[dict[str, Any]], files: list[str], form: str) -> None:
    from troupe._tracing import profile_files

    for row in rows:
        who = f"pid {row['pid']} on {row['node']}"
        who = f"rank {row['rank']}, {who}" if row["rank"] >= 0 else who
        for kind in ("error", "note"):
            if kind in row:
                _common.echo(f"{who}: {row[kind]}")
    counts = [profile_files.count_samples(each, form) for each in rows if each.get("text")]
    samples = "" if None in counts else f", {sum(filter(None, counts)):,} samples"
    for name in files:
        _common.echo_line(name)
    if files:
        processes = f"{len(counts)} process{'' if len(counts) == 1 else 'es'}"
        _common.echo(f"{processes}{samples}; {_HOW_TO_OPEN[form]}")
