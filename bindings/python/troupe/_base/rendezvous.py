"""The store where torch's process groups of this process meet: the launch's, or one of this
process's own.

The ranks of a gang meet at their launch's store, which is in a process of its own, so they are told
to be its clients and never to host one (TORCHELASTIC_USE_AGENT_STORE). A group of another address
would wait there for a server that nobody starts: it is refused.

A rank that is alone, a driver, and a plain call have an address of their own: a port that is
reserved, bound without listening, so that whoever asks for a group may serve there: this process,
in which the store is made at that moment, or children that inherit the variables. Programs that set
MASTER_PORT themselves and start their ranks by torch.multiprocessing work there as they do
anywhere.

A process connects to its launch's store once: default groups that are made again share the
connection. torch asks the DNS for the name of whatever it connects to, also of an address in
digits, and one answer that is lost costs 5 s.
"""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

from troupe._base.after_import import after_import

MODULE = "torch.distributed.rendezvous"
HOST = "127.0.0.1"
CLIENT_ONLY = "TORCHELASTIC_USE_AGENT_STORE"
_NAMES = ("MASTER_ADDR", "MASTER_PORT", CLIENT_ONLY)
_BACKLOG = 128
_ANSWERS_S = 5.0
"""How long a connection that is there already has to answer before another one is made."""


class OwnAddress:
    """A port that no one else is given, and the store that is made there once it is asked for."""

    def __init__(self) -> None:
        self._reserved = _bound(0)
        self.port = self._reserved.getsockname()[1]
        self._pid = os.getpid()
        self._store: Any = None
        self._groups = 0
        self._lock = threading.Lock()

    def variables(self) -> dict[str, str]:
        """Return the environment variables by which a program finds the store."""
        return {"MASTER_ADDR": HOST, "MASTER_PORT": str(self.port)}

    def is_here(self, port: int) -> bool:
        """Return True if this object serves a group of this process alone at `port`; False in
        forked children."""
        return port == self.port and os.getpid() == self._pid

    def store(self, timeout: Any) -> Any:
        """A store for one more group: each has keys of its own, for torch counts its groups from 0
        again after the last is destroyed."""
        from torch.distributed import PrefixStore, TCPStore

        with self._lock:
            if self._store is None:
                listener = _bound(self.port)
                listener.listen(_BACKLOG)
                self._store = TCPStore(
                    HOST, self.port, 1, True, timeout, master_listen_fd=listener.detach()
                )
            self._groups += 1
            return PrefixStore(f"group {self._groups}", self._store)

    def close(self) -> None:
        """Gives the port back; the store lives as long as groups that use it."""
        self._store = None
        self._reserved.close()


def _bound(port: int) -> socket.socket:
    """Bound without listening: with SO_REUSEADDR others of this address may be bound too, and one
    of them listens."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((HOST, port))
    return made


class StoreClient:
    """This process's connection to its launch's store, made once and kept for the default groups to
    come."""

    def __init__(self) -> None:
        self._store: Any = None
        self._key: tuple[int, str, int] | None = None
        self._lock = threading.Lock()

    def store(self, hostname: str, port: int, timeout: Any, connect: Callable[[], Any]) -> Any:
        """Return the connection to that address, with this timeout.

        `connect` makes one where this process has none that answers.
        """
        key = os.getpid(), hostname, port
        with self._lock:
            store = self._store if self._key == key else None
        if store is not None and _answers(store):
            store.set_timeout(timeout)
            return store
        store = connect()
        with self._lock:
            self._store, self._key = store, key
        return store


def _answers(store: Any) -> bool:
    """Return whether the store answers by this connection: it may be cut, or a thread of the
    program's may wait by it for a key that nobody writes."""
    said: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def ask() -> None:
        try:
            store.check(["troupe/is here"])
            said.put(True)
        except Exception:  # raised by a connection that is cut
            said.put(False)

    threading.Thread(target=ask, name="troupe-store", daemon=True).start()
    try:
        return said.get(timeout=_ANSWERS_S)
    except queue.Empty:
        return False


_own: OwnAddress | None = None
_client = StoreClient()
_of_launch: dict[str, str] = {}
_inside = 0
_swapped: dict[str, str | None] = {}
_lock = threading.Lock()


def _ignore_meeting(port: int) -> None:
    """Do nothing: nobody asked when ranks of this process meet."""


def _ignore_met() -> None:
    """Do nothing: nobody asked when ranks of this process have met."""


_meets: Callable[[int], None] = _ignore_meeting
_met: Callable[[], None] = _ignore_met


def enter_rank(
    *, alone: bool, meets: Callable[[int], None] = _meets, met: Callable[[], None] = _met
) -> None:
    """The roster's variables are there.

    `alone`: groups of the program's own, if any, are made here, not with other ranks. `meets` is
    called with the port before this process connects to the launch's store for a group, `met` once
    it is connected; what that raises, making the group raises.
    """
    global _own, _meets, _met
    _meets, _met = meets, met
    _of_launch.update({name: os.environ[name] for name in _NAMES if name in os.environ})
    if alone and "MASTER_PORT" in _of_launch:  # else there is no torch
        _own = OwnAddress()
        os.environ.update(_own.variables())
        os.environ.pop(CLIENT_ONLY, None)


def moved() -> None:
    """The variables name another store from now on: the launch's ranks that live meet there."""
    _of_launch.update({name: os.environ[name] for name in _NAMES if name in os.environ})


@contextlib.contextmanager
def with_all_ranks() -> Iterator[None]:
    """For a driver's part of a run: meanwhile the variables are those by which the launch's ranks
    meet. From any thread."""
    global _inside
    with _lock:
        _inside += 1
        if _inside == 1 and _own is not None:
            _swapped.update({name: os.environ.get(name) for name in _NAMES})
            os.environ.update(_of_launch)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                restore(_swapped)
                _swapped.clear()


@contextlib.contextmanager
def of_plain_call() -> Iterator[OwnAddress]:
    """An address of this process's own while a plain call runs."""
    global _own
    own = _own = OwnAddress()
    finder = after_import({MODULE: wrap})
    try:
        yield own
    finally:
        _own = None
        finder.forget()
        own.close()


def restore(before: dict[str, str | None]) -> None:
    """The variables as they were; None: not set."""
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def wrap(module: Any) -> None:
    """Changes torch's rendezvous as said above."""
    make = getattr(module, "_create_c10d_store", None)
    if make is None or hasattr(make, "_troupe_original"):
        return

    def _create_c10d_store(
        hostname: str,
        port: int,
        rank: int,
        world_size: int,
        timeout: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if _own is not None and rank == 0 and world_size == 1 and _own.is_here(port):
            return _own.store(timeout)
        _refuse_foreign(hostname, port)
        if _of_launch.get("MASTER_PORT") != str(port):
            return make(hostname, port, rank, world_size, timeout, *args, **kwargs)
        _meets(port)
        if os.environ.get(CLIENT_ONLY) == "True":
            store = _client.store(
                hostname,
                port,
                timeout,
                lambda: make(hostname, port, rank, world_size, timeout, *args, **kwargs),
            )
        else:
            store = make(hostname, port, rank, world_size, timeout, *args, **kwargs)
        _met()
        return store

    _create_c10d_store._troupe_original = make  # type: ignore[attr-defined]
    module._create_c10d_store = _create_c10d_store


def _refuse_foreign(hostname: str, port: int) -> None:
    """Raises RuntimeError where a rank would wait for a server that its launch does not have."""
    there = _of_launch.get("MASTER_PORT")
    if there is None or str(port) == there or os.environ.get(CLIENT_ONLY) != "True":
        return
    raise RuntimeError(
        f"this rank is to join a process group at {hostname}:{port}, where no one serves its "
        "launch: the launch's store is at "
        f"{_of_launch['MASTER_ADDR']}:{there}\n"
        "  leave MASTER_ADDR and MASTER_PORT as the rank finds them, and call init_process_group() "
        "without an address; for a group of "
        f"processes of the rank's own, set {CLIENT_ONLY}=False beside them"
    )
