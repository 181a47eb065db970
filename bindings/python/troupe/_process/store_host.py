"""The rendezvous store of a launch, in a process of its own: no rank hosts it, no port is raced
for; and the fence that each store of Troupe's has.

Binds the interface named by MASTER_ADDR, port 0, tells the worker the port, serves until the worker
ends it. It makes the secret by which the launch's ranks know each other in groups of the backend
`troupe`, too, for the worker alone. Without torch there is nothing to serve: it reports port 0 and
waits, and ranks get no MASTER_PORT.

torch's store answers whoever connects. So its socket has a filter before it listens, which the
kernel runs on each packet: those from other addresses than this host's and the launch's nodes' are
dropped, the first of a connection too. It costs nothing that can be measured, and connections need
no other hop. Nodes may come later to a launch in which ranks that die are replaced: its filter is
set anew for each.
"""

from __future__ import annotations

import ctypes
import ipaddress
import os
import resource
import socket
import struct
import sys
import threading
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, NoReturn

from troupe import exceptions
from troupe._process.channel import ProcessChannel

SECRET_BYTES = 32
"""Of the secret that the launch's ranks get from the head: the store itself never has it."""
PEERS = "TROUPE_STORE_PEERS"
"""Addresses and networks of the launch's nodes; the head says them (`kStorePeersVariable`)."""
MORE = "+"
"""Among those: nodes may come to the launch later (`kStorePeersMore`)."""
ALSO = "TROUPE_STORE_NETWORKS"
"""Networks that a worker's environment adds, for nodes that reach others from addresses which they
do not know themselves."""
_BACKLOG = 1024
_TIMEOUT = timedelta(seconds=300)

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def run(channel: ProcessChannel) -> NoReturn:
    """Serves until ProcessEnd (which the control thread obeys)."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (most, most)
    )  # each rank may have two connections: the program's, and its watching thread's
    peers = f"{os.environ.get(PEERS, '')} {os.environ.get(ALSO, '')}".split()
    host = os.environ.get("MASTER_ADDR") or "127.0.0.1"
    fence = Fence(host, [each for each in peers if each != MORE])
    try:
        store, port = fence.serve()
    except ImportError:
        store, port = None, 0
    channel.send("StoreReady", {"port": port, "group_secret": os.urandom(SECRET_BYTES)})
    if store is not None and MORE in peers:
        _follow_launch(channel, fence)
    threading.Event().wait()
    del store
    raise AssertionError("unreachable: the control thread ends the process")


def serve(host: str, peers: Iterable[str]) -> tuple[Any, int]:
    """Make a TCPStore that listens on `host` alone and takes connections from this host and from
    `peers` alone; return it and its port."""
    return Fence(host, peers).serve()


class Fence:
    """The socket of a store, and whom it takes connections from.

    A kernel that has no such filters (gVisor) takes them from everybody that reaches the port,
    which is written to stderr.
    """

    def __init__(self, host: str, peers: Iterable[str]) -> None:
        self._host = host
        self._peers = [host, "127.0.0.0/8", "::1", *peers]
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.socket(family, socket.SOCK_STREAM)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.admit(())

    def admit(self, peers: Iterable[str]) -> None:
        """Take connections from these addresses and networks, too, from now on."""
        self._peers += peers
        try:
            admit(self._listener, networks_of(self._peers))
        except OSError as error:
            print(
                f"troupe: the store at {self._host} takes connections from everybody who reaches "
                f"it: this system has no filters for sockets ({error})",
                file=sys.stderr,
                flush=True,
            )

    def admit_everybody(self, why: object) -> None:
        """Take connections from everybody, and write to stderr why."""
        print(
            f"troupe: the store at {self._host} takes connections from everybody who reaches it: "
            f"which nodes come to its launch is not known ({why})",
            file=sys.stderr,
            flush=True,
        )
        self.admit(["0.0.0.0/0", "::/0"])

    def serve(self) -> tuple[Any, int]:
        """Make the store; return it and its port."""
        from torch.distributed import TCPStore

        self._listener.bind((self._host, 0))
        self._listener.listen(_BACKLOG)
        port = self._listener.getsockname()[1]
        listener = self._listener.dup()  # the store closes its own
        return TCPStore(
            self._host,
            port,
            None,
            True,
            _TIMEOUT,
            wait_for_workers=False,
            master_listen_fd=listener.detach(),
        ), port


def _follow_launch(channel: ProcessChannel, fence: Fence) -> None:
    """Admit each node that comes to the launch, for as long as that is told. Blocks."""
    from troupe._cluster import session as _session

    launch = os.environ["TROUPE_LAUNCH_ID"]
    session = _session.Session.over_process(
        channel, launch=launch, epoch=int(os.environ["TROUPE_EPOCH"])
    )
    known: set[str] = set()
    while True:
        try:
            if not session.board.follows("launch", launch):
                returns = session.returns
                info = session.request("WatchLaunch", {"launch": launch})[1]["info"]
                session.board.post_reply("launch", launch, info)
                session.follow("launch", launch, returns)
            info, _ = session.board.wait("launch", launch, lambda info: _nodes_of(info) - known)
            fresh = _nodes_of(info) - known
            fence.admit(_addresses_of_nodes(session, fresh))
            known.update(fresh)
        except exceptions.GetTimeoutError:  # the head is away: it is asked again
            continue
        except exceptions.TroupeError as error:
            return fence.admit_everybody(error)


def _nodes_of(info: Mapping[str, Any]) -> set[str]:
    """Return the ids of the nodes that a launch's ranks are on."""
    return {each["node"] for each in info["rank_infos"]} - {""}


def _addresses_of_nodes(session: Any, nodes: set[str]) -> list[str]:
    """Return all addresses of these nodes, as the head knows them now."""
    from troupe._cluster import fabric, workers

    found = []
    for node in workers.node_infos(session):
        if node["node"] in nodes:
            found.append(node["listen_host"])
            for interface in fabric.of_node(node).interfaces:
                found += [address.partition("/")[0] for address in interface.addresses]
    return found


def addresses_of(nodes: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return all addresses of nodes as `state.list_nodes()` shows them: where each listens, and
    those of its interfaces."""
    found = []
    for node in nodes:
        found.append(node["address"].rpartition(":")[0].strip("[]"))
        found += [
            address.partition("/")[0]
            for interface in (node.get("network") or {}).get("interfaces", ())
            for address in interface["addresses"]
        ]
    return found


def networks_of(texts: Iterable[str]) -> list[Network]:
    """Return the addresses and networks of `texts`; what is neither is left out."""
    found: list[Network] = []
    for text in texts:
        try:
            found.append(ipaddress.ip_network(text.partition("%")[0], strict=False))
        except ValueError:
            print(
                f"troupe: {text!r} is no address and no network: the store does not admit it",
                file=sys.stderr,
                flush=True,
            )
    return found


# ---- the filter ----

_SO_ATTACH_FILTER = 26
_NETWORK_HEADER = 0xFFF00000  # SKF_NET_OFF: offsets count from the IP header
_LOAD, _STORE, _LOAD_STORED, _AND, _IF_EQUAL, _RETURN = 0x20, 0x02, 0x60, 0x54, 0x15, 0x06
_PASS, _DROP = 0xFFFFFFFF, 0
_INSTRUCTIONS_MAX = 2000
"""The kernel counts a filter as memory of its socket, of which a system may allow 20 KiB
(net.core.optmem_max)."""


def admit(listener: socket.socket, networks: Iterable[Network]) -> None:
    """Have the kernel drop all packets for `listener`, and for the connections it accepts, that
    come from outside `networks`. Before it is bound.

    Raises:
        OSError: if the system has no such filters.
    """
    version = 6 if listener.family == socket.AF_INET6 else 4
    code = filter_of([each for each in networks if each.version == version], version)
    instructions = ctypes.create_string_buffer(
        b"".join(struct.pack("HBBI", *each) for each in code)
    )
    listener.setsockopt(
        socket.SOL_SOCKET,
        _SO_ATTACH_FILTER,
        struct.pack("HP", len(code), ctypes.addressof(instructions)),
    )


def filter_of(networks: list[Network], version: int) -> list[tuple[int, int, int, int]]:
    """Return a classic BPF program that passes packets whose source is in `networks`, all of this
    IP version.

    Where there are too many for one program, neighbours are taken together in larger networks until
    they fit.
    """
    words, source = (1, 12) if version == 4 else (4, 8)
    few = list(ipaddress.collapse_addresses(networks))  # type: ignore[type-var]
    while (
        len(code := [each for network in few for each in _pass_if_from(network, words)])
        > _INSTRUCTIONS_MAX
    ):
        longest = max(network.prefixlen for network in few)
        few = list(
            ipaddress.collapse_addresses(  # type: ignore[type-var]
                network.supernet() if network.prefixlen == longest else network for network in few
            )
        )
    stored = [
        step
        for word in range(words)
        for step in ((_LOAD, 0, 0, _NETWORK_HEADER + source + 4 * word), (_STORE, 0, 0, word))
    ]
    return [*stored, *code, (_RETURN, 0, 0, _DROP)]


def _pass_if_from(network: Network, words: int) -> list[tuple[int, int, int, int]]:
    address, mask = int(network.network_address), int(network.netmask)
    checks: list[tuple[int, int]] = []
    for word in range(words):
        shift = 32 * (words - 1 - word)
        bits = mask >> shift & 0xFFFFFFFF
        if bits:
            checks.append((bits, address >> shift & 0xFFFFFFFF))
    steps: list[list[tuple[int, int, int, int]]] = []
    for word, (bits, value) in enumerate(checks):
        masked = [] if bits == 0xFFFFFFFF else [(_AND, 0, 0, bits)]
        steps.append([(_LOAD_STORED, 0, 0, word), *masked, (_IF_EQUAL, 0, 0, value)])
    left = 1 + sum(map(len, steps))  # to the end of this network's steps
    code: list[tuple[int, int, int, int]] = []
    for step in steps:
        left -= len(step)
        operation, _, _, value = step[-1]
        code += [*step[:-1], (operation, 0, left, value)]
    return [*code, (_RETURN, 0, 0, _PASS)]
