"""`troupe dashboard`: the page of a cluster, served where the person is."""

from __future__ import annotations

import contextlib
import ipaddress
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from troupe._cluster import connect, node_start
from troupe.cli import _common

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.types import ASGIApp

    from troupe._cluster import session as _session
    from troupe._dashboard._access import Access
    from troupe._dashboard._changes import ChangeFeed
    from troupe._dashboard._live import Streams
    from troupe._dashboard._server import Place

PORT = 8270
INSTALL = "'troupe[dashboard]'"


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="Where it listens; 0: a port that is free.",
)
@click.option(
    "--allow-actions",
    is_flag=True,
    help="Let the page stop jobs and launches. Without it the page can only look.",
)
@click.option(
    "--listen",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Serve other hosts, too. Any address but loopback needs --certificate and --key.",
)
@click.option(
    "--certificate",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Serve over TLS with this certificate chain (PEM).",
)
@click.option(
    "--key",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Private key of the certificate (PEM).",
)
@click.option(
    "--host-name",
    "host_names",
    multiple=True,
    metavar="NAME",
    help="A name under which browsers may ask for the page, any number of times.  "
    "[default: --listen, and the names of loopback there]",
)
@click.option(
    "--storage",
    metavar="DIR",
    help="The folder that sweeps' folders are in.  [default: ~/troupe_results]",
)
@_common.cluster_options
def dashboard(
    port: int,
    allow_actions: bool,
    listen: str,
    certificate: str | None,
    key: str | None,
    host_names: tuple[str, ...],
    storage: str | None,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Serve a page that shows the cluster, for a browser on this host.

    It has nodes, launches, jobs, actors, the queue, sweeps, logs and events, until Ctrl-C.

    Prints an address that works once, in one browser, for one minute; Enter prints another one. The
    page asks the head as an observer. The browser talks to this command alone.
    """
    _check(listen, certificate, key)
    check_installed("troupe dashboard")
    from troupe._dashboard import _app, _changes, _pages, _reader, _server, _sweeps

    choice = _common.which_cluster(address, cluster)

    def open_session(*, observes: bool) -> _session.Session:
        return connect.connect_chosen(choice, token_file, observes=observes)

    reader = _reader.ClusterReader(lambda: open_session(observes=not allow_actions))
    # An error in the address or the token is reported here, not on the page
    used = reader.session().token_file
    feed = _changes.ChangeFeed(
        reader,
        _changes.StreamToken(node_start.token_text(used))
        if used is not None
        else _changes.StreamToken("", lambda: open_session(observes=False)),
    )
    place = _server.Place(listen, port, certificate or "", key or "")

    def app_of(streams: Streams) -> ASGIApp:
        pages = _pages.Pages(reader, may_act=allow_actions)
        return _app.make_app(pages, streams, _sweeps.SweepReader(storage), may_act=allow_actions)

    try:
        serve(app_of, feed, place, host_names, as_json=as_json)
    finally:
        feed.close()
        reader.close()


def serve_sweep(folder: Path, port: int) -> None:
    """Serve the pages of the sweeps that lie beside one, without a cluster, until Ctrl-C; the first
    page is that of the sweep."""
    check_installed("troupe sweep dashboard")
    from troupe._dashboard import _app, _changes, _pages, _server, _sweeps

    def app_of(streams: Streams) -> ASGIApp:
        return _app.make_app(
            _pages.Pages(None, may_act=False),
            streams,
            _sweeps.SweepReader(str(folder.parent)),
            has_cluster=False,
            sweep=folder.name,
        )

    serve(app_of, _changes.ChangeFeed(None, None), _server.Place(port=port))


def check_installed(what: str) -> None:
    """Raise MissingPackageError, with what pip is to install, where the page's libraries are
    missing."""
    from troupe._code import extras

    with extras.needed("starlette", what, INSTALL):
        import starlette  # noqa: F401
    with extras.needed("uvicorn", what, INSTALL):
        import uvicorn  # noqa: F401
    with extras.needed("jinja2", what, INSTALL):
        import jinja2  # noqa: F401


def _check(listen: str, certificate: str | None, key: str | None) -> None:
    if bool(certificate) != bool(key):
        raise click.UsageError("--certificate and --key go together")
    try:
        is_loopback = ipaddress.ip_address(listen).is_loopback
    except ValueError:
        raise click.BadParameter(f"{listen!r} is no IP address", param_hint="--listen") from None
    if not is_loopback and certificate is None:
        raise click.UsageError(
            f"--listen {listen} serves other hosts, which needs TLS: give --certificate and --key\n"
            "  or leave --listen out, and reach the page through a tunnel:\n"
            f"  ssh -L {PORT}:127.0.0.1:{PORT} THIS_HOST"
        )


def serve(
    app_of: Callable[[Streams], ASGIApp],
    feed: ChangeFeed,
    place: Place,
    host_names: Iterable[str] = (),
    *,
    as_json: bool = False,
) -> None:
    """Serve an ASGI app behind a login until Ctrl-C, and print the login's address.

    Raises a usage error where the port cannot be had, or the certificate cannot be read.
    """
    from troupe._dashboard import _access, _live, _optuna, _server

    streams: list[Streams] = []

    def inner(access: Access) -> ASGIApp:
        streams.append(_live.Streams(feed, access.is_valid))
        return app_of(streams[0])

    try:
        listening = _server.listen(place)
    except OSError as error:
        raise click.UsageError(
            f"port {place.port} of {place.host} cannot be had: {error.strerror}; --port 0 takes "
            "one that is free"
        ) from None
    with listening:
        port = listening.getsockname()[1]
        names = tuple(host_names) or _names(place)
        access = _access.Access(
            inner,
            names=names,
            cookie=f"troupe_{port}",  # browsers keep one jar for all ports of a host
            is_secure=place.is_secure,
            content_policies=_optuna.policy_of,
        )
        try:
            server = _server.make_server(access, place, streams[0].end)
        except OSError as error:
            raise click.UsageError(f"the certificate or key cannot be used: {error}") from None
        scheme = "https" if place.is_secure else "http"
        base = f"{scheme}://{names[0]}:{port}"
        _server.serve(server, listening, lambda: _print_logins(access, base, as_json=as_json))


def _names(place: Place) -> tuple[str, ...]:
    from troupe._dashboard import _access

    address = ipaddress.ip_address(place.host)
    own = f"[{place.host}]" if address.version == 6 else place.host
    if address.is_loopback:
        return (own, *(each for each in _access.LOOPBACK if each != own))
    if address.is_unspecified:
        return (socket.getfqdn(), socket.gethostname(), *_access.LOOPBACK)
    return (own, socket.getfqdn(), socket.gethostname())


def _print_logins(access: Access, base: str, *, as_json: bool) -> None:
    """Print the address of a login, and another one whenever Enter is pressed."""

    def say() -> None:
        link = f"{base}{access.new_login()}"
        if as_json:
            _common.echo_json({"url": base, "login": link})
        else:
            click.echo(
                f"{link}\n(works once, in one browser, for one minute; Ctrl-C ends the page)"
            )

    say()
    if sys.stdin is not None and sys.stdin.isatty():
        signal.signal(signal.SIGTTIN, signal.SIG_IGN)  # in the background it would be stopped
        threading.Thread(target=_on_enter, args=(say,), name="troupe-enter", daemon=True).start()


def _on_enter(say: Callable[[], None]) -> None:
    with contextlib.suppress(OSError):  # the process is in the background, or the terminal has gone
        for _ in sys.stdin:
            say()
