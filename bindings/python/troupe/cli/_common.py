"""Helpers shared by the commands: the cluster a command means, and sessions with it."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import click

from troupe import exceptions
from troupe._base import visible as _visible
from troupe._cluster import connect, home, known_clusters, session as _session

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def an_address(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """The callback of --address: a usage error for what is no address."""
    try:
        if value is not None and not value.startswith("unix:"):
            home.host_and_port(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return value


def interrupt_at_signals(
    numbers: Iterable[int] = (signal.SIGTERM, signal.SIGHUP), *, ignored: Iterable[int] = ()
) -> None:
    """Let these signals raise KeyboardInterrupt in the main thread, as Ctrl-C does, with the
    signal's number as its argument.

    Args:
        numbers: The signals. One that this process was started with as ignored (by nohup, or in
            the background of a shell) stays ignored.
        ignored: Signals to handle even if this process was started with them as ignored.
    """
    heeded = set(ignored)
    for number in numbers:
        if number in heeded or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stopped)


def _stopped(number: int, _: Any) -> NoReturn:
    raise KeyboardInterrupt(number)


def prefixed(prefix: str, identities: Iterable[str]) -> list[str]:
    """The ids that start with `prefix`, in whatever case it is written; none for an empty one."""
    return [each for each in identities if prefix and each.startswith(prefix.lower())]


def only_prefixed(what: str, prefix: str, identities: Iterable[str], hint: str) -> str:
    """The one id that starts with `prefix`; a usage error when none does, or several do."""
    found = prefixed(prefix, identities)
    if len(found) == 1:
        return found[0]
    which = f"{'more than one' if found else 'no'} {what} has"
    raise click.UsageError(f"{which} an id that starts with {prefix!r}; see: {hint}")


def complete_cluster(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Names of clusters that begin so, for a shell; none where they cannot be read."""
    try:
        return [each for each in known_clusters.read().entries if each.startswith(incomplete)]
    except (OSError, exceptions.TroupeError):
        return []


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--address, --token-file, --cluster, --json."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON document."),
        click.option(
            "--cluster",
            metavar="NAME|ID",
            shell_complete=complete_cluster,
            help="A cluster of `troupe cluster list`, or the beginning of the id of one of this "
            "user's on this host.",
        ),
        click.option("--token-file", metavar="FILE", help="Token for a head on another host."),
        click.option(
            "--address",
            metavar="HOST:PORT",
            callback=an_address,
            help="Address of the head.  [default: TROUPE_ADDRESS, else TROUPE_CLUSTER, else the "
            "cluster in use, else the only one of TROUPE_HOME]",
        ),
    ):
        command = option(command)
    return command


def echo(text: str, *, err: bool = False) -> None:
    """Print text that names what nodes, actors and programs say of themselves, without what a
    terminal would obey; with `err`, on stderr."""
    click.echo(_visible.text(text), err=err)


def echo_line(text: str) -> None:
    """Print `text` as one line, with control characters shown."""
    click.echo(_visible.name(text))


def echo_json(value: Any) -> None:
    """Print a JSON document on stdout."""
    click.echo(json.dumps(value))


def chosen(cluster: str | None, *, running_only: bool = True) -> home.ClusterHome:
    """The cluster of TROUPE_HOME that is meant.

    A usage error (exit 2) lists them when there are several.
    """
    found = home.clusters(running_only=running_only)
    if cluster:
        found = [each for each in found if each.cluster_id.startswith(cluster)]
    if len(found) == 1:
        return found[0].require_whole() if running_only else found[0]
    kind = "running cluster" if running_only else "cluster"
    if not found:
        named = f" with the id {cluster}" if cluster else ""
        raise exceptions.ConnectionError(
            f"there is no {kind}{named} in {home.home()}\n  start one with: troupe start --head"
        )
    listed = "\n".join(
        f"  {each.cluster_id[:8]}  {each.address or 'head.json is damaged'}  "
        f"{'running' if each.running else 'stopped'}"
        for each in found
    )
    raise click.UsageError(
        f"{home.home()} has several clusters; say which with --cluster ID:\n{listed}"
    )


def which_cluster(address: str | None, cluster: str | None) -> known_clusters.Choice:
    """The cluster that a command means: as `known_clusters.choose` has it, else the only one of
    TROUPE_HOME."""
    try:
        choice = known_clusters.choose(address, cluster)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return choice or known_clusters.Choice(chosen(None).address, known_clusters.Source.ONLY_ONE)


def is_cluster_known(address: str | None = None, cluster: str | None = None) -> bool:
    """Return True if a command finds a cluster, or is given one, so that it starts none of its
    own."""
    return known_clusters.choose(address, cluster) is not None or bool(
        home.clusters(running_only=True)
    )


@contextmanager
def session(
    address: str | None, token_file: str | None, cluster: str | None, *, return_timeout: float = 0.0
) -> Iterator[_session.Session]:
    """A session with the cluster that is meant, closed after use.

    `return_timeout`: as of `connect.connect`.
    """
    opened = connect.connect_chosen(
        which_cluster(address, cluster), token_file, return_timeout=return_timeout
    )
    try:
        yield opened
    finally:
        opened.close()


def seconds_of(text: str) -> int:
    """Return a duration such as `24h` in seconds. Raises click.BadParameter."""
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS_S or re.fullmatch("[0-9]{1,18}", number) is None or not number.strip("0"):
        raise click.BadParameter(f"{text!r} is no duration; it looks like 30m, 24h or 7d")
    return int(number) * _UNITS_S[unit]
