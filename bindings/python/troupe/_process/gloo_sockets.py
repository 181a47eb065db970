"""The connections of torch's Gloo groups in this process, and their end from another thread.

When a rank dies, those that are connected to it in a collective hear of it; the others wait for the
group's timeout, which is half an hour, for `Backend.abort()` does nothing for Gloo (gloo#388). What
frees them is the end of the group's connections: shutdown(2), never of the socket that listens,
whose thread would end the process by std::terminate. Reading ends, and what waits to be written is
let go of by what answers Gloo's calls of the kernel (`bindings/train/gloo_calls.cc`).

Which connections are a group's: making it opens a socket that listens. Those that were accepted
there have its port. Those that this side has opened are known by having come while the group was
made, from the address that it listens at; one that another thread has opened from that address in
the same milliseconds would end with them. Those of a group that connects later
(TORCH_GLOO_LAZY_INIT) are noted when Gloo begins to wait for them, where torch's library lets that
be seen. Sockets are known by their inode, since the numbers of descriptors are used again.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from typing import Any

from troupe._base.bridge import native

_FOLDER = "/proc/self/fd"
_lock = threading.Lock()
_Address = tuple[str, int]
_listening: dict[_Address, int] = {}  # address where a group listens -> inode of that socket
_opened: set[int] = set()  # inodes of connections that groups have opened
_making: set[int] | None = (
    None  # inodes of the sockets that were there when a group began to be made that is not done yet
)
_ended = False


def _after_fork() -> None:
    """Gives a child a lock of its own: another thread of its parent may have held this one."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def end_all() -> int:
    """Ends the connections of all groups that are there, from any thread: who waits in one of their
    collectives gets torch's RuntimeError, and so does who begins another one. How many there were.
    Does not block. This process is to stop: what its collectives raise is that word's doing.
    """
    global _ended
    _ended = True
    return cut()


def cut(store_port: int = 0) -> int:
    """Close the connections of all groups, as `end_all` does, in a process that goes on with other
    groups; return their number.

    Of a group that is being made the connections end too that are there already, and those to the
    store at this port, where it waits for the others. Does not block.
    """
    count = 0
    with _lock:
        listening, opened, before = dict(_listening), set(_opened), _making
    opened.update(native.gloo_sockets())
    if before is not None:
        fresh, connected = _since(before)
        listening.update(fresh)
        opened.update(
            inode for address, inode in connected if address[0] in {host for host, _ in fresh}
        )
    for inode, each in _sockets():
        with contextlib.suppress(OSError):  # the socket listens, or has ended
            peer_port = each.getpeername()[1]  # raises for one that listens, which is never ended
            to_store = peer_port == store_port  # by a name, IPv4 or IPv6: what they have in common
            if inode in opened or each.getsockname()[:2] in listening or to_store:
                each.shutdown(socket.SHUT_RDWR if to_store else socket.SHUT_RD)
                count += 1
    return count


def ended() -> bool:
    """Return True if `end_all` was called here: a collective that then loses its connection is not
    the program's fault."""
    return _ended


def note(module: Any) -> None:
    """Notes the connections of all Gloo groups that are made from now on.

    `module`: torch.distributed.distributed_c10d, once it was imported.
    """
    cls = getattr(module, "ProcessGroupGloo", None)
    if cls is None or hasattr(cls.__init__, "_troupe_original"):  # a torch without Gloo
        return
    make = cls.__init__

    # In place of the class's own: torch asks for objects of this very class.
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        global _making
        native.gloo_tells_of_ends()
        before = {inode for inode, _ in _sockets()}
        with _lock:
            _making = before
        try:
            make(self, *args, **kwargs)
        finally:
            _note(before)

    __init__._troupe_original = make  # type: ignore[attr-defined]
    cls.__init__ = __init__


def _since(before: set[int]) -> tuple[dict[_Address, int], list[tuple[_Address, int]]]:
    """Return (listening, connected) sockets that were not there before, each by its own address."""
    listening: dict[_Address, int] = {}
    connected: list[tuple[_Address, int]] = []
    for inode, each in _sockets():
        if inode in before:
            continue
        if each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            listening[each.getsockname()[:2]] = inode
        else:
            with contextlib.suppress(OSError):
                each.getpeername()
                connected.append((each.getsockname()[:2], inode))
    return listening, connected


def _note(before: set[int]) -> None:
    """A group was made, or could not be, since there were these sockets."""
    global _making
    listening, connected = _since(before)
    there = {inode for inode, _ in _sockets()}
    hosts = {host for host, _ in listening}
    with _lock:
        _making = None
        for address in [address for address, inode in _listening.items() if inode not in there]:
            del _listening[address]
        _listening.update(listening)
        _opened.intersection_update(there)
        _opened.update(
            inode
            for address, inode in connected
            if address[0] in hosts and address not in listening
        )
        native.set_gloo_sockets([port for _, port in _listening], list(_opened))


def _sockets() -> Iterator[tuple[int, socket.socket]]:
    """(inode, a socket that is closed when the next one is asked for) of each TCP socket of this
    process."""
    for name in os.listdir(_FOLDER):
        try:
            if not os.readlink(f"{_FOLDER}/{name}").startswith("socket:"):
                continue
            each = socket.socket(fileno=os.dup(int(name)))
        except OSError:  # closed meanwhile
            continue
        with each:
            if each.type == socket.SOCK_STREAM and each.family in (socket.AF_INET, socket.AF_INET6):
                yield os.fstat(each.fileno()).st_ino, each
