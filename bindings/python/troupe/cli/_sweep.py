"""`troupe sweep`: sweeps by their names, while they run, after their end, and where their engine
has died."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from troupe.cli import _common, _sweep_act, _sweep_seen
from troupe.tune._run import looking


@click.group()
def sweep() -> None:
    """List, show, stop and go on with sweeps, by their names.

    A sweep's folder is in the storage folder: RunConfig(storage_path=...),
    @tune.sweep(storage=...), ~/troupe_results unless given. All of it is read from there, without
    unpickling anything: no cluster has to run, and it may be another program's.
    """


def _in_storage(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--storage",
        metavar="DIR",
        help="The folder that sweeps' folders are in.  [default: ~/troupe_results]",
    )(command)


def _of_one(command: Callable[..., Any]) -> Callable[..., Any]:
    return _in_storage(click.argument("name", metavar="NAME")(command))


def _folder(name: str, storage: str | None) -> Path:
    """Return the folder of the sweep with that name. Raises a usage error with the nearest name if
    there is none."""
    try:
        return looking.folder_of(name, storage)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _as_json(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


@sweep.command("list")
@_in_storage
@_as_json
def list_(storage: str | None, as_json: bool) -> None:
    """All sweeps of a storage folder, with what they do and the best of each."""
    _sweep_seen.list_all(storage, as_json=as_json)


@sweep.command()
@_of_one
@click.option(
    "--trials",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    help="How many trials, the best first; 0: none.",
)
@_as_json
def show(name: str, storage: str | None, trials: int, as_json: bool) -> None:
    """Show a sweep, its current work, and its trials: state, reports, metric, configuration, and
    why they have ended.

    NAME is the sweep's name, the beginning of one, or the path of its folder.
    """
    _sweep_seen.show(_folder(name, storage), trials=trials, as_json=as_json)


@sweep.command()
@_of_one
@click.option(
    "--format", "kind", type=click.Choice(["csv", "json"]), default="csv", show_default=True
)
@click.option(
    "--reports",
    is_flag=True,
    help="A row for each report that counts, instead of one for each trial with its last.",
)
@click.option(
    "--output",
    "-o",
    type=click.File("w", lazy=True),
    default="-",
    metavar="FILE",
    help="Where to, - for the standard output.",
)
def export(name: str, storage: str | None, kind: str, reports: bool, output: Any) -> None:
    """Write down a sweep's trials, or all of their reports, as CSV or JSON."""
    _sweep_seen.export(_folder(name, storage), kind=kind, reports=reports, output=output)


@sweep.command()
@_of_one
@click.option("--trial", metavar="ID", help="Of this trial alone, by its id or its number.")
@click.option(
    "--follow", "-f", is_flag=True, help="Go on until the trials that run now have ended."
)
@_common.cluster_options
def logs(
    name: str,
    storage: str | None,
    trial: str | None,
    follow: bool,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Print what a sweep's trials wrote, each line with the trial's number, and what a submitted
    sweep says of itself.

    Workers keep it as long as logs of actors, and the cluster has to be the sweep's.
    """
    folder = _folder(name, storage)
    with _common.session(address, token_file, cluster) as session:
        _sweep_act.logs(session, folder, trial=trial, follow=follow, as_json=as_json)


@sweep.command()
@_of_one
@_common.cluster_options
def stop(
    name: str,
    storage: str | None,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """End a sweep here, and wait until it has: its trials have 5 s for a last word, and `troupe
    sweep resume` goes on with it.

    A sweep that a program runs itself gets Ctrl-C there, which that program has to be on this host
    for.
    """
    _sweep_act.stop(
        _folder(name, storage),
        lambda: _common.session(address, token_file, cluster),
        as_json=as_json,
    )


@sweep.command()
@_of_one
@_common.cluster_options
def pause(
    name: str,
    storage: str | None,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Let a submitted sweep start nothing more; what runs goes on to its end, and `troupe sweep
    resume` lets it start trials again."""
    _sweep_act.pause(
        _folder(name, storage),
        lambda: _common.session(address, token_file, cluster),
        as_json=as_json,
    )


@sweep.command()
@_of_one
@_common.cluster_options
def resume(
    name: str,
    storage: str | None,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Go on with a sweep that was stopped or paused, or whose engine has died, in a process of the
    cluster; see `troupe sweep show` for what it does.

    Trials go on from their last checkpoints. Run it where the modules are that the trials import.
    """
    _sweep_act.resume(
        _folder(name, storage),
        lambda: _common.session(address, token_file, cluster),
        as_json=as_json,
    )


@sweep.command("retry-failed")
@_of_one
@click.option("--from-the-beginning", is_flag=True, help="Not from the latest checkpoint of each.")
@_common.cluster_options
def retry_failed(
    name: str,
    storage: str | None,
    from_the_beginning: bool,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Try the trials again that have failed, each as a new trial in its place, and go on with what
    else is not over."""
    _sweep_act.resume(
        _folder(name, storage),
        lambda: _common.session(address, token_file, cluster),
        as_json=as_json,
        errored="restart" if from_the_beginning else "resume",
    )


@sweep.command()
@_of_one
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="On 127.0.0.1; 0: one that is free.",
)
def dashboard(name: str, storage: str | None, port: int) -> None:
    """Serve the page of a sweep, as it is now and as it goes on, on this host alone, until Ctrl-C.

    It is a page of `troupe dashboard`, and needs no cluster.
    """
    from troupe.cli.operation import _dashboard

    _dashboard.serve_sweep(_folder(name, storage), port)
