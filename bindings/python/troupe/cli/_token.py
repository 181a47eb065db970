"""`troupe token`: what lets nodes and remote drivers into a cluster."""

from __future__ import annotations

import os
import stat
import time
from typing import Any

import click

from troupe.cli import _common

_TTL_S_MAX = 366 * 86400


def _seconds(text: str) -> int:
    """`24h` as seconds."""
    seconds = _common.seconds_of(text)
    if seconds > _TTL_S_MAX:
        raise click.BadParameter(
            f"{text!r} is longer than a token may live, {_TTL_S_MAX // 86400}d"
        )
    return seconds


@click.group()
def token() -> None:
    """Create, list and revoke join tokens."""


@token.command()
@click.option(
    "--role",
    type=click.Choice(["worker", "client", "observer"]),
    default="worker",
    show_default=True,
    help="What its holder may be.",
)
@click.option("--ttl", default="24h", show_default=True, help="How long it is good: 30m, 24h, 7d.")
@click.option("--single-use", is_flag=True, help="Good for one join.")
@click.option("--note", default="", help="Shown by `token list`.")
@click.option(
    "--owner",
    default="",
    metavar="NAME",
    help="The person that it is for: what they start by it is theirs, in `usage` and for `quota`. "
    " [default: who asks]",
)
@_common.cluster_options
def create(
    role: str,
    ttl: str,
    single_use: bool,
    note: str,
    owner: str,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Print a new token, alone on stdout: troupe token create > token"""
    fields = {
        "role": role,
        "ttl_s": _seconds(ttl),
        "single_use": single_use,
        "note": note,
        "user": owner,
    }
    _keep_private()
    with _common.session(address, token_file, cluster) as session:
        made = session.request("CreateToken", fields)[1]
    if as_json:
        _common.echo_json(
            {"token": made["token"], "id": made["id"], "expires": made["expires_us"] / 1e6}
        )
    else:
        click.echo(made["token"])


def _keep_private() -> None:
    """`troupe token create > token`: a file that others can read would be refused as a token's
    file."""
    if stat.S_ISREG(os.fstat(1).st_mode):
        os.fchmod(1, 0o600)


def _state(token: dict[str, Any], now: float) -> str:
    if token["revoked"]:
        return "revoked"
    if token["single_use"] and token["uses"]:
        return "used"
    return "expired" if token["expires_us"] / 1e6 < now else "good"


@token.command("list")
@_common.cluster_options
def list_(address: str | None, token_file: str | None, cluster: str | None, as_json: bool) -> None:
    """Tokens the head knows, never their secret; those that are over for a day more."""
    with _common.session(address, token_file, cluster) as session:
        tokens = session.request("ListTokens", {})[1]["tokens"]
    now = time.time()
    rows = [
        {
            "id": each["id"],
            "role": each["role"],
            "expires": each["expires_us"] / 1e6,
            "uses": each["uses"],
            "single_use": each["single_use"],
            "note": each["note"],
            "owner": each["user"],
            "state": _state(each, now),
        }
        for each in tokens
    ]
    if as_json:
        _common.echo_json(rows)
        return
    from troupe.cli import _tables

    _tables.show(
        ["ID", "ROLE", "OWNER", "STATE", "EXPIRES", "USES", "NOTE"],
        [
            [
                row["id"],
                row["role"],
                row["owner"],
                row["state"],
                time.strftime("%Y-%m-%d %H:%M", time.localtime(row["expires"])),
                str(row["uses"]),
                row["note"],
            ]
            for row in rows
        ],
    )


@token.command()
@click.argument("token_id", metavar="ID")
@_common.cluster_options
def revoke(
    token_id: str, address: str | None, token_file: str | None, cluster: str | None, as_json: bool
) -> None:
    """Let nobody in by a token any more, and end what clients and observers opened by it.

    A prefix of its id will do.

    Detached launches go on, and nodes stay; both are listed.
    """
    with _common.session(address, token_file, cluster) as session:
        known = [each["id"] for each in session.request("ListTokens", {})[1]["tokens"]]
        found = _common.only_prefixed("token", token_id, known, "troupe token list")
        ended = session.request("RevokeToken", {"id": found})[1]
    goes_on = [{"launch": each["launch"], "name": each["name"]} for each in ended["detached"]]
    if as_json:
        _common.echo_json(
            {
                "revoked": found,
                "detached": goes_on,
                "cut_off": ended["cut_off"],
                "until": ended["until_us"] / 1e6,
            }
        )
        return
    _common.echo_line(
        f"token {found[:8]} is revoked: what clients and observers had opened by it is ended; "
        "nodes that joined with it stay"
    )
    for each in goes_on:
        _common.echo_line(
            f"  goes on, since it is detached: launch {each['launch'][:8]} {each['name']} (troupe "
            f"cancel {each['launch'][:8]})"
        )
    if ended["cut_off"]:
        until = time.strftime("%Y-%m-%d %H:%M", time.localtime(ended["until_us"] / 1e6))
        _common.echo_line(
            f"  cannot be told now, and may let its certificates in until {until}: "
            f"{', '.join(ended['cut_off'])}"
        )
