"""`troupe cluster`: the clusters that this user knows by name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from troupe import exceptions
from troupe._cluster import home, known_clusters as _known
from troupe.cli import _common, _tables

_as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_name = click.argument("name", metavar="NAME", shell_complete=_common.complete_cluster)


@click.group()
def cluster() -> None:
    """Name clusters, and say which one is meant.

    A name stands wherever a cluster is asked for: --cluster NAME, TROUPE_CLUSTER=NAME,
    troupe.init(cluster="NAME"). The cluster in use is meant where nothing else says which.
    """


def _checked_name(_: click.Context, __: click.Parameter, value: str) -> str:
    try:
        return _known.check_name(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _checked_file(_: click.Context, __: click.Parameter, value: str | None) -> str:
    """The whole path of a file that can be read; "" for none."""
    if not value:
        return ""
    path = os.path.abspath(os.path.expanduser(value))
    if not os.path.isfile(path) or not os.access(path, os.R_OK):
        raise click.BadParameter(
            f"{path} is no file that can be read\n  on the head's host: troupe token create "
            "--role client > token; then copy that file here"
        )
    return path


@cluster.command()
@click.argument("name", metavar="NAME", callback=_checked_name)
@click.option(
    "--address",
    metavar="HOST:PORT",
    callback=_common.an_address,
    help="Address of the head.  [default: that of the only cluster of TROUPE_HOME]",
)
@click.option(
    "--token-file",
    metavar="FILE",
    callback=_checked_file,
    help="Token for a head on another host; the file stays where it is.",
)
@click.option("--replace", is_flag=True, help="Replace what the name stands for now.")
@click.option("--use", "is_used", is_flag=True, help="Use the cluster from now on.")
@_as_json
def add(
    name: str, address: str | None, token_file: str, replace: bool, is_used: bool, as_json: bool
) -> None:
    """Add a cluster by a name of your choice.

    troupe cluster add lab --address 10.0.0.1:6400 --token-file ~/lab.token --use
    """
    if address is not None and address.startswith("unix:"):
        raise click.UsageError(
            "--address is HOST:PORT here: a socket is another one after a restart"
        )
    entry = _known.Entry(address or _common.chosen(None).address, token_file)
    with _known.changed() as known:
        there = known.entries.get(name)
        if there not in (None, entry) and not replace:
            raise click.UsageError(
                f"{name!r} is the cluster at {there.address} already: give another name, or "
                "--replace"
            )
        known.entries[name] = entry
        _known.write(_known.KnownClusters(known.entries, name if is_used else known.in_use))
    if as_json:
        _common.echo_json(_row(name, entry, is_used=is_used or known.in_use == name))
        return
    used = " and in use" if is_used else f"; use it: troupe cluster use {name}"
    _common.echo_line(f"cluster {name} at {entry.address} is known{used}")


@cluster.command("list")
@_as_json
def list_(as_json: bool) -> None:
    """List the clusters that have a name, and those of TROUPE_HOME that run on this host."""
    known = _known.read()
    rows = [_row(name, each, is_used=name == known.in_use) for name, each in known.entries.items()]
    rows += [
        {**_row("", _known.Entry(each.address), is_used=False), "cluster_id": each.cluster_id}
        for each in home.clusters(running_only=True)
        if each.address not in {entry.address for entry in known.entries.values()}
    ]
    if as_json:
        _common.echo_json(rows)
        return
    _tables.show(
        ["USED", "NAME", "ADDRESS", "TOKEN", "CLUSTER"],
        [
            [
                "*" if each["in_use"] else "",
                each["name"],
                each["address"],
                _token(each["token_file"]),
                each["cluster_id"][:8],
            ]
            for each in rows
        ],
    )


def _row(name: str, entry: _known.Entry, *, is_used: bool) -> dict[str, Any]:
    return {
        "name": name,
        "address": entry.address,
        "token_file": entry.token_file,
        "in_use": is_used,
        "cluster_id": "",
    }


def _token(file: str) -> str:
    return file if not file or Path(file).exists() else f"{file} (missing)"


@cluster.command()
@click.argument("name", metavar="NAME", required=False, shell_complete=_common.complete_cluster)
@click.option("--none", "is_none", is_flag=True, help="Use none: what runs on this host is meant.")
def use(name: str | None, is_none: bool) -> None:
    """Use a cluster: it is meant where no address, name or variable says which."""
    if (name is None) is not is_none:
        raise click.UsageError("give the name of a cluster, or --none")
    with _known.changed() as known:
        _require(name, known)
        _known.write(_known.KnownClusters(known.entries, name or ""))
    _common.echo_line(f"cluster {name} is in use" if name else "no cluster is in use")


@cluster.command()
@_name
def remove(name: str) -> None:
    """Forget a name. The cluster goes on, and the file of its token stays."""
    with _known.changed() as known:
        _require(name, known)
        del known.entries[name]
        _known.write(
            _known.KnownClusters(known.entries, "" if known.in_use == name else known.in_use)
        )
    _common.echo_line(f"cluster {name} is forgotten")


def _require(name: str | None, known: _known.KnownClusters) -> None:
    if name is None:
        return
    try:
        _known.require(name, known)
    except exceptions.NotFoundError as error:
        raise click.UsageError(str(error)) from None
