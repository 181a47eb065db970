"""The fence of a store: which sources its filter passes, for any set of networks, and what the
kernel makes of it.

Method of the first: the program is run here, instruction by instruction, as the kernel's classic
BPF defines them. Between hosts: tests/e2e/nodes/test_namespaces.py.
"""

from __future__ import annotations

import ipaddress
import random
import socket

import pytest

from troupe._process import store_host

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def passes(code: list[tuple[int, int, int, int]], source: Address) -> bool:
    """Return what the filter says of a packet from `source`."""
    first = store_host._NETWORK_HEADER + (12 if source.version == 4 else 8)
    held, stored, at = 0, [0] * 16, 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        if operation == store_host._LOAD:
            held = int.from_bytes(source.packed[value - first : value - first + 4], "big")
        elif operation == store_host._STORE:
            stored[value] = held
        elif operation == store_host._LOAD_STORED:
            held = stored[value]
        elif operation == store_host._AND:
            held &= value
        elif operation == store_host._IF_EQUAL:
            at += if_true if held == value else if_false
        else:
            return value != 0


def any_address(numbers: random.Random, version: int) -> Address:
    return (
        ipaddress.IPv4Address(numbers.getrandbits(32))
        if version == 4
        else ipaddress.IPv6Address(numbers.getrandbits(128))
    )


@pytest.mark.parametrize("version", [4, 6])
def test_a_filter_passes_its_networks_and_nothing_else(version: int) -> None:
    bits = 32 if version == 4 else 128
    for seed in range(20):
        numbers = random.Random(seed)
        inside = [any_address(numbers, version) for _ in range(numbers.choice([0, 1, 3, 20]))]
        networks = [
            ipaddress.ip_network(
                f"{each}/{numbers.choice([bits, bits - 5, bits // 2 + 3, 16])}", strict=False
            )
            for each in inside
        ]
        code = store_host.filter_of(networks, version)
        edges = [
            each[place] + step
            for each in networks
            for place, step in ((0, -1), (0, 0), (-1, 0), (-1, 1))
            if 0 < int(each[place]) < 2**bits - 1
        ]
        for source in [*inside, *edges, *(any_address(numbers, version) for _ in range(50))]:
            assert passes(code, source) == any(source in each for each in networks), (
                source,
                networks,
            )


@pytest.mark.parametrize("version", [4, 6])
def test_a_filter_of_many_nodes_fits_and_keeps_none_of_them_out(version: int) -> None:
    numbers = random.Random(7)
    inside = [any_address(numbers, version) for _ in range(5000)]
    code = store_host.filter_of([ipaddress.ip_network(each) for each in inside], version)
    assert len(code) < 2100
    assert all(passes(code, each) for each in numbers.sample(inside, 200))  # each takes 10 ms


def test_what_is_no_address_admits_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    assert store_host.networks_of(["10.0.0.1", "10.1.2.3/16", "fe80::1%eth0", "node-b", ""]) == [
        ipaddress.ip_network(each) for each in ("10.0.0.1/32", "10.1.0.0/16", "fe80::1/128")
    ]
    assert "'node-b' is no address" in capsys.readouterr().err


def test_the_kernel_drops_connections_from_elsewhere() -> None:
    """Loopback has a whole network of addresses: 127.0.0.1 is admitted here and 127.0.0.9 is
    not."""
    listener = socket.socket()
    try:
        store_host.admit(listener, [ipaddress.ip_network("127.0.0.1"), ipaddress.ip_network("::1")])
    except OSError as error:
        pytest.skip(f"this system has no filters for sockets: {error}")
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    with listener:
        with pytest.raises(TimeoutError):
            socket.create_connection(
                listener.getsockname(), timeout=2, source_address=("127.0.0.9", 0)
            )
        with socket.create_connection(
            listener.getsockname(), timeout=60, source_address=("127.0.0.1", 0)
        ) as caller:
            taken, _ = listener.accept()
            with taken:
                caller.sendall(b"x" * 100_000)
                assert len(taken.recv(10, socket.MSG_WAITALL)) == 10
        admitted = [ipaddress.ip_network(each) for each in ("127.0.0.1", "127.0.0.9")]
        store_host.admit(listener, admitted)
        with socket.create_connection(
            listener.getsockname(), timeout=60, source_address=("127.0.0.9", 0)
        ):
            listener.accept()[0].close()
