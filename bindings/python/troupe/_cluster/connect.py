"""Connecting to clusters: by address, by the environment, or an embedded one of this process.

An embedded cluster is a head and one worker, the same programs as anywhere, started here and ended
with this process, whatever way that ends: both hold a lifeline (`executables.Lifeline`).
"""

from __future__ import annotations

import atexit
import os
import threading
from pathlib import Path
from typing import Any

from troupe import exceptions
from troupe._base.identity import boot_id
from troupe._cluster import (
    executables,
    home,
    known_clusters,
    local_clusters,
    node_start,
    scratch,
    session as _session,
)
from troupe._tracing import record
from troupe._wire import Role

STOP_GRACE_S = 3.0
HEAD_END_S = 1.0  # from the end of its connection to the end of its process
RETURN_TIMEOUT_S = 30.0  # a restarted head keeps what a driver owns for as long
# Ranks on a small machine share its cores, as torchrun's would, so a launch's own cluster offers
# more.
EMBEDDED_CPUS_MIN = 32
_lock = threading.RLock()
_hidden: dict[str, _session.Session] = {}  # sessions of launches without init(), by address
sockets_here: dict[
    str, str
] = {}  # heads that this process started for itself (cluster_utils), by address


class Embedded:
    """A one-node cluster of this process. `close` ends it and removes what it kept."""

    def __init__(self, node_args: list[str]) -> None:
        _session.check_allowed()
        self._scratch = scratch.Folder(local_clusters.EMBEDDED)
        self.folder = self._scratch.path
        local_clusters.claim(self.folder)
        self._lifeline = executables.Lifeline()
        self._pid = os.getpid()
        self._programs: list[executables.Started] = []
        self.socket = self.address = ""
        try:
            head = executables.start(
                "troupe-head",
                [f"--state_dir={self.folder}", "--embedded=true"],
                log=self.folder / "head.log",
                lifeline=self._lifeline.read_end,
            )
            self._programs.append(head)
            self.socket, self.address = str(head.ready["socket"]), str(head.ready["address"])
            self._programs.append(
                node_start.start(
                    f"unix:{self.socket}",
                    self.folder / "node",
                    node_args,
                    log=self.folder / "worker.log",
                    lifeline=self._lifeline.read_end,
                    tell_versions=False,
                )
            )
        except BaseException:
            self.close()
            raise

    def obituary(self) -> str:
        """A sentence about a head that ended by itself; "" while it runs."""
        head = self._programs[0].process
        if not executables.wait([head], HEAD_END_S):
            return ""
        code = head.wait()
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return (
            f"\n  the head of this process's embedded cluster (pid {head.pid}) {how}; such a "
            "cluster keeps no "
            "state, so nothing of it goes on: connect anew with troupe.init()"
        )

    def close(self) -> None:
        """Ends worker and head, in this order. Nothing in a forked child."""
        if self._pid != os.getpid() or not self.folder.exists():
            return
        for started in reversed(self._programs):
            executables.end([started.process], STOP_GRACE_S)
        if self.socket:  # a head that was killed left it
            Path(self.socket).unlink(missing_ok=True)
        self._lifeline.close()
        self._scratch.remove()


def start_embedded(args: list[str], *, namespace: str) -> _session.Session:
    """A session with a new embedded cluster."""
    cluster = Embedded(args)
    try:
        session = _over_socket(cluster.socket, cluster.address, namespace)
    except BaseException:
        cluster.close()
        raise
    session.embedded = cluster
    return session


def _over_socket(
    socket: str,
    address: str,
    namespace: str,
    return_timeout: float = 0.0,
    role: str = Role.CLIENT,
) -> _session.Session:
    from troupe._base.bridge import native

    control = native.ControlClient.connect_unix(socket, return_timeout=return_timeout, role=role)
    return _opened(control, address, namespace, return_timeout)


def _opened(control: Any, address: str, namespace: str, return_timeout: float) -> _session.Session:
    session = _session.Session.over_client(
        control, namespace=namespace, address=address, return_timeout=return_timeout
    )
    status = session.request("GetStatus", {})[1]
    here = boot_id()
    session.cluster_id = status["cluster_id"]
    session.same_host = all(node["boot_id"] == here for node in status["nodes"])
    return session


def connect(
    address: str,
    token_file: str | None = None,
    *,
    namespace: str = "",
    return_timeout: float = 0.0,
    observes: bool = False,
) -> _session.Session:
    """A session with the cluster at `host:port`, or at the head's socket, `unix:/path`.

    By its Unix socket where this user runs its head on this host, also for a program of theirs that
    made it by init(); else over TLS with the token in `token_file` or TROUPE_TOKEN_FILE.
    `return_timeout`: how long a head that is gone is sought again. With `observes` the session may
    look and do nothing else, unless the token is a client's. Raises ConnectionError when nobody
    answers, JoinError when the cluster refuses, ValueError for an address that is none.
    """
    from troupe._base.bridge import native

    _session.check_allowed()
    role = Role.OBSERVER if observes else Role.CLIENT
    if address.startswith("unix:"):  # TROUPE_ADDRESS inside a rank on the head's own host
        path = address.removeprefix("unix:")
        return _over_socket(path, address, namespace, return_timeout, role)
    host, port = home.host_and_port(address)
    token_file = token_file or os.environ.get("TROUPE_TOKEN_FILE") or None
    if address in sockets_here:
        return _over_socket(sockets_here[address], address, namespace, return_timeout, role)
    if token_file is None:
        socket = local_clusters.socket_of(address)
        if socket is not None:  # a head that ends with its program is not waited for
            guest = local_clusters.is_of_a_program(address)
            limit = 0.0 if guest else return_timeout
            session = _over_socket(socket, address, namespace, limit, role)
            session.guest = guest
            return session
        raise exceptions.JoinError(
            f"connecting to {address} needs a token: no head of this user at that address runs on "
            "this host\n"
            "  on the head: troupe token create --role client > token\n"
            "  here: troupe.init(address, token_file='token') or TROUPE_TOKEN_FILE=token"
        )
    node_start.cluster_of_token(token_file)
    if observes and node_start.role_of_token(token_file) != Role.OBSERVER:
        role = Role.CLIENT
    control = native.ControlClient.connect(
        host, port, token_file=token_file, return_timeout=return_timeout, role=role
    )
    session = _opened(control, address, namespace, return_timeout)
    session.token_file = token_file
    return session


def connect_chosen(
    choice: known_clusters.Choice,
    token_file: str | None = None,
    *,
    namespace: str = "",
    return_timeout: float = 0.0,
    observes: bool = False,
) -> _session.Session:
    """A session with the cluster that is meant, as `connect` makes it; raises what `connect` does,
    and says which name the address is of."""
    try:
        return connect(
            choice.address,
            token_file or choice.token_file,
            namespace=namespace,
            return_timeout=return_timeout,
            observes=observes,
        )
    except (exceptions.ConnectionError, exceptions.JoinError) as error:
        raise type(error)(f"{error}{choice.origin}") from None


def only_local_cluster() -> str:
    """The address of the one cluster of this user that runs on this host; where none was started by
    a command, the one that a program made by init(). Raises ConnectionError."""
    running = home.clusters(running_only=True) or local_clusters.clusters(of_this_home=True)
    if len(running) == 1:
        return running[0].require_whole().address
    found = (
        "none is running"
        if not running
        else "several are: " + ", ".join(each.address or str(each.damage) for each in running)
    )
    raise exceptions.ConnectionError(
        f"address 'auto' means the one cluster in {home.home()}, and {found}"
    )


def from_environment() -> _session.Session:
    """The session of `remote=True` without init(): of the cluster that the environment or
    `troupe cluster use` says is meant (`known_clusters.choose`), kept until exit.

    Raises ConnectionError when none is, with the commands that start a cluster, or the address of
    one that runs here.
    """
    choice = known_clusters.choose()
    if choice is None:
        running = home.clusters(running_only=True)
        here = (
            f"one runs here: TROUPE_ADDRESS={running[0].require_whole().address}"
            if running
            else "start one: troupe start --head --listen ADDRESS, which prints its HOST:PORT\n"
            "  and on each other machine: troupe start --address HOST:PORT --token-file FILE\n"
            "  then TROUPE_ADDRESS=HOST:PORT for this program"
        )
        raise exceptions.ConnectionError(
            'remote=True needs a cluster: call troupe.init("host:port") or set TROUPE_ADDRESS; '
            "without "
            f"remote=True the launch runs on an embedded cluster of this machine\n  {here}"
        )
    return kept_chosen(choice)


def kept_chosen(choice: known_clusters.Choice) -> _session.Session:
    """The session with the cluster that is meant, as `kept` gives it."""
    return _kept(choice.address, lambda: connect_chosen(choice, return_timeout=RETURN_TIMEOUT_S))


def kept(address: str) -> _session.Session:
    """The session with the cluster at that address, the same for all who ask in this process, kept
    until exit. Raises what `connect` does."""
    return _kept(address, lambda: connect(address, return_timeout=RETURN_TIMEOUT_S))


def embedded() -> _session.Session:
    """The session of `remote=False`: an embedded cluster, kept until exit."""
    cpus = max(os.cpu_count() or 1, EMBEDDED_CPUS_MIN)
    return _kept("embedded", lambda: start_embedded(node_start.offer(num_cpus=cpus), namespace=""))


def embedded_here() -> _session.Session | None:
    """Return the session of the embedded cluster that `embedded` has started in this process; None:
    it has started none."""
    with _lock:
        known = _hidden.get("embedded")
        return (
            known if known is not None and not known.closed and known.pid == os.getpid() else None
        )


def _kept(key: str, make: Any) -> _session.Session:
    with _lock:
        known = _hidden.get(key)
        if known is None or known.closed or known.pid != os.getpid():
            if not _hidden:
                atexit.register(close_hidden)
            known = _hidden[key] = make()
            record_here(known)
        return known


def make_current(session: _session.Session) -> None:
    """Make it the current session of this process, which records spans from now on."""
    _session.set_current(session)
    record_here(session)


def record_here(session: _session.Session) -> None:
    """Have this program record spans from now on (`troupe timeline`), unless it does already."""
    if not session.in_process:
        record.open_of_program(session.cluster_id)


def sessions_here() -> list[_session.Session]:
    """Return the sessions of this process: the one of init() or of a rank; else those opened by
    launches, or the one that the environment or `troupe cluster use` names.

    Raises ConnectionError where there is none.
    """
    current = _session.current_or_none()
    with _lock:
        hidden = [each for each in _hidden.values() if not each.closed and each.pid == os.getpid()]
    found = hidden if current is None else [current, *hidden]
    if found:
        return found
    choice = known_clusters.choose()
    if choice is None:
        raise exceptions.ConnectionError(
            'not connected to a cluster: call troupe.init("host:port") or set TROUPE_ADDRESS'
        )
    return [kept_chosen(choice)]


def session_here() -> _session.Session:
    """Return the session that questions about the cluster go to: of init(), else the one that a
    launch opened by itself, else of the cluster that the environment or `troupe cluster use` says.

    Raises:
        ConnectionError: there is none, or launches have opened several and nothing says which of
        them is meant.
    """
    current = _session.current_or_none()
    if current is not None:
        return current
    found = sessions_here()
    if len(found) == 1:
        return found[0]
    choice = known_clusters.choose()
    if choice is not None:
        return kept_chosen(choice)
    raise exceptions.ConnectionError(
        f"this process has launched on {len(found)} clusters: "
        f"{', '.join(each.address for each in found)}\n"
        '  troupe.init("host:port") says which one is asked'
    )


def close_hidden() -> None:
    """Ends the sessions that launches opened by themselves, embedded clusters included."""
    with _lock:
        while _hidden:
            close(_hidden.popitem()[1])


def close(session: _session.Session) -> None:
    """Ends a session, and its embedded cluster if it has one."""
    if session.pid != os.getpid():
        return
    session.close()
    if session.embedded is not None:
        session.embedded.close()
