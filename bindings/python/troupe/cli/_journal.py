"""`troupe journal`: checks, repairs, copies and restores the journal of a head."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from troupe import exceptions
from troupe._cluster import executables
from troupe.cli import _common


@click.group()
def journal() -> None:
    """Check or repair the journal of a stopped head; back up a head's state, and restore it."""


def _folder(folder: Path | None, cluster: str | None) -> Path:
    """The folder with the journal: as given, or of the cluster that is meant."""
    if folder is None:
        return _common.chosen(cluster, running_only=False).path / "head"
    return folder if (folder / "journal.db").exists() else folder / "head"


def _run(option: str, folder: Path) -> None:
    done = subprocess.run(
        [executables.find("troupe-head"), f"--{option}={folder}"], capture_output=True, text=True
    )
    click.echo(done.stdout, nl=False)
    click.echo(done.stderr, nl=False, err=True)
    if done.returncode:
        sys.exit(1)


_FOLDER = click.argument(
    "folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
_CLUSTER = click.option(
    "--cluster", metavar="ID", help="Which cluster (a prefix of its id will do)."
)


@journal.command()
@_FOLDER
@_CLUSTER
def check(folder: Path | None, cluster: str | None) -> None:
    """Read everything that a start would; give nothing up.

    Exit code 1 when the journal is damaged.
    """
    _run("check", _folder(folder, cluster))


@journal.command()
@_FOLDER
@_CLUSTER
def repair(folder: Path | None, cluster: str | None) -> None:
    """Give up what follows the first damage. Copies of the files are kept beside them."""
    _run("repair", _folder(folder, cluster))


@journal.command()
@click.argument("folder", type=click.Path(path_type=Path))
@_CLUSTER
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def backup(folder: Path, cluster: str | None, as_json: bool) -> None:
    """Copy the state of a head of this host to FOLDER, which is not there yet; the head may run.

    The copy has the keys of the cluster: keep it as you keep them. Values of puts and results over
    1 MiB are with the workers, not with the head.
    """
    from troupe.cli.operation import _journal_backup

    try:
        chosen = _common.chosen(cluster)
    except exceptions.ConnectionError:
        chosen = _common.chosen(cluster, running_only=False)
    record = _journal_backup.back_up(chosen.require_whole(), folder)
    if as_json:
        _common.echo_json(record)
    else:
        click.echo(f"{folder}: {record['journal']}")


@journal.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="Take the place of the state that is there.")
def restore(folder: Path, replace: bool) -> None:
    """Put a backup in the place of a cluster's state that is lost; then start the head.

    The cluster is what it was at the backup: what began since is ended by its nodes, and what has
    ended since may run again.
    """
    from troupe.cli.operation import _journal_backup

    try:
        found = _journal_backup.restore(folder, replace=replace)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    host, _, port = found.address.rpartition(":")
    click.echo(
        f"cluster {found.cluster_id[:8]} is restored\n  start it: troupe start --head --cluster "
        f"{found.cluster_id[:8]} --listen {host.strip('[]')} --port {port}"
    )
