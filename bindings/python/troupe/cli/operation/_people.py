"""`troupe usage` and `troupe quota`: what each owner of a token holds, and may hold."""

from __future__ import annotations

import math
from typing import Any

import click

from troupe._cluster import resources, view
from troupe._wire import CapKind
from troupe.cli import _common, _tables

_NONE = "none"
_MOST = 10**9
_owner = click.argument("owner", metavar="OWNER")


def _cap(_: click.Context, parameter: click.Parameter, value: str | None) -> str | float | None:
    """A number, `none`, or None where the option was not given."""
    if value is None or value == _NONE:
        return value
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    whole = parameter.name in view.CAPS_OF_COUNTS
    if not 0 <= number <= _MOST or (whole and number != int(number)):
        raise click.BadParameter(
            f"{value!r} is no {'whole ' if whole else ''}number from 0 to {_MOST}, and not "
            f"{_NONE!r}"
        )
    return number


@click.command()
@click.argument("owner", metavar="[OWNER]", required=False, default="")
@_common.cluster_options
def usage(
    owner: str, address: str | None, token_file: str | None, cluster: str | None, as_json: bool
) -> None:
    """Show who holds what of the cluster, and how much they held in the last 24 hours.

    An owner is the person that a token was made for (troupe token create --owner); who comes
    without a token is the user that the head runs as.

    What is held is what launches, jobs, actors and placement groups have asked for, not what they
    use. SHARE is the largest part, over CPUs, GPUs and memory, of what the cluster could have
    given in the last 24 hours: of requests of one priority, those of the owner with the smallest
    one go first.
    """
    with _common.session(address, token_file, cluster) as session:
        answer = session.request("GetUsage", {"user": owner})[1]
    total = resources.from_wire(answer["total"])
    rows = view.owners_by_share(answer["users"])
    if as_json:
        _common.echo_json({"you": answer["asker"], "total": total, "owners": rows})
        return
    _tables.show(
        ["OWNER", "GPUS", "CPUS", "MEMORY", "RUNNING", "QUEUED", "SHARE"],
        [
            [
                each["owner"],
                _of(each["held"].get("GPU", 0.0), each["quota"][CapKind.GPUS]),
                _of(each["held"].get("CPU", 0.0), each["quota"][CapKind.CPUS]),
                _tables.amount(each["held"].get("memory", 0.0), "memory"),
                _of(each["running"], each["quota"][CapKind.RUNNING]),
                _of(each["queued"], each["quota"][CapKind.QUEUED]),
                f"{100 * each['share']:.1f} %",
            ]
            for each in rows
        ],
    )


def _of(held: float, cap: float | None) -> str:
    return f"{held:g}" if cap is None else f"{held:g} of {cap:g}"


@click.group()
def quota() -> None:
    """Say how much of the cluster the owner of a token may hold.

    Only the user that the head runs as may change quotas. They keep order among colleagues: they
    are no isolation.
    """


@quota.command("set")
@_owner
@click.option("--gpus", metavar="N|none", callback=_cap, help="GPUs held at once.")
@click.option("--cpus", metavar="N|none", callback=_cap, help="CPUs held at once.")
@click.option(
    "--running", metavar="N|none", callback=_cap, help="Launches and jobs that run at once."
)
@click.option(
    "--queued", metavar="N|none", callback=_cap, help="Launches and jobs that wait at once."
)
@_common.cluster_options
def set_(
    owner: str,
    gpus: str | float | None,
    cpus: str | float | None,
    running: str | float | None,
    queued: str | float | None,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Set caps for an owner; those that are not named stay as they are, `none` lifts one.

    troupe quota set alice --gpus 8 --running 20

    What an owner holds beyond a lowered cap goes on. A request that is over a cap by itself is
    refused; one that fits beside less of what its owner holds now waits.
    """
    given = {"gpus": gpus, "cpus": cpus, "running": running, "queued": queued}
    named = {kind: value for kind, value in given.items() if value is not None}
    if not named:
        raise click.UsageError("give at least one of --gpus, --cpus, --running, --queued")
    caps = [
        {
            "kind": kind,
            "most": round(value * (view.CAP_SCALE if kind in view.CAPS_OF_AMOUNTS else 1)),
        }
        for kind, value in named.items()
        if not isinstance(value, str)
    ]
    lifted = [kind for kind, value in named.items() if value == _NONE]
    with _common.session(address, token_file, cluster) as session:
        answer = session.request("SetQuota", {"user": owner, "caps": caps, "lifted": lifted})[1]
    _show([view.describe_owner(each) for each in answer["users"]], as_json=as_json)


@quota.command("list")
@_common.cluster_options
def list_(address: str | None, token_file: str | None, cluster: str | None, as_json: bool) -> None:
    """List the owners that have a quota, with what they have of it now."""
    with _common.session(address, token_file, cluster) as session:
        users = session.request("GetUsage", {})[1]["users"]
    _show([view.describe_owner(each) for each in users if each["caps"]], as_json=as_json)


@quota.command()
@_owner
@_common.cluster_options
def remove(
    owner: str, address: str | None, token_file: str | None, cluster: str | None, as_json: bool
) -> None:
    """Lift all caps of an owner."""
    lifted = [*view.CAPS_OF_AMOUNTS, *view.CAPS_OF_COUNTS]
    with _common.session(address, token_file, cluster) as session:
        answer = session.request("SetQuota", {"user": owner, "lifted": lifted})[1]
    if as_json:
        _show([view.describe_owner(each) for each in answer["users"]], as_json=True)
    else:
        _common.echo_line(f"{owner} has no quota")


def _show(rows: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        _common.echo_json(rows)
        return
    _tables.show(
        ["OWNER", "GPUS", "CPUS", "RUNNING", "QUEUED"],
        [
            [
                each["owner"],
                _of(each["held"].get("GPU", 0.0), each["quota"][CapKind.GPUS]),
                _of(each["held"].get("CPU", 0.0), each["quota"][CapKind.CPUS]),
                _of(each["running"], each["quota"][CapKind.RUNNING]),
                _of(each["queued"], each["quota"][CapKind.QUEUED]),
            ]
            for each in rows
        ],
    )
