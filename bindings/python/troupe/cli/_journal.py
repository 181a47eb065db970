"""`troupe journal`: looks at, and repairs, the journal of a head that does not run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from troupe._cluster import executables
from troupe.cli import _common


@click.group()
def journal() -> None:
    """Check or repair the journal of a stopped head."""


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
