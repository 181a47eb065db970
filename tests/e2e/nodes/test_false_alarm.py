"""A bad network is no lost node: some seconds of benchmarks/false_alarm.py, and what the proxy can
do.

Method: head and nodes on hosts of their own between which everything passes through fault_proxy.py.
Here the pauses are shorter and no chunk is lost twice, so that no silence comes near the lease even
on a busy machine; the whole is the benchmark. Skipped, with the reason, where namespaces cannot be
made.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import Home, eventually
from fault_proxy import PORT, FaultyHosts, Weather, enter
from namespaces import why_not

REASON = why_not()
pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON)
BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "false_alarm.py"


def test_pauses_jitter_and_loss_lose_no_node_no_launch_and_no_call(home: Home) -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--minutes", "0.15", "--mild"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {
        line.split(None, 1)[0]: json.loads(line.split(None, 1)[1])
        for line in done.stdout.splitlines()
    }
    assert rows["seen"]["nodes_lost"] == rows["seen"]["errors"] == 0
    assert rows["seen"]["calls"] > 10 and rows["seen"]["launches"] >= 1, rows
    assert rows["network"]["lost"] > 10, rows


class Echoing:
    """An echo on a host; connections to it from others."""

    def __init__(self, hosts: FaultyHosts, where: str) -> None:
        self._hosts, self.address = hosts, hosts[where].address
        self._listener = self._in(where, lambda: socket.create_server((self.address, PORT)))
        threading.Thread(target=self._serve, daemon=True).start()

    def _in(self, where: str, make: Callable[[], socket.socket]) -> socket.socket:
        def run() -> socket.socket:
            enter(self._hosts[where].namespace)
            return make()

        with ThreadPoolExecutor(1) as pool:  # in a thread of its own: this one stays where it is
            return pool.submit(run).result()

    def _serve(self) -> None:
        def answer(peer: socket.socket) -> None:
            try:
                while data := peer.recv(65536):
                    peer.sendall(data)
                peer.shutdown(socket.SHUT_WR)
            except OSError:
                pass

        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(peer,), daemon=True).start()

    def dial(self, where: str) -> socket.socket:
        return self._in(where, lambda: socket.create_connection((self.address, PORT), timeout=60))

    def close(self) -> None:
        with contextlib.suppress(OSError):  # may be closed already
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def echoing() -> Iterator[tuple[FaultyHosts, Echoing]]:
    with FaultyHosts("a", "b") as hosts:
        echo = Echoing(hosts, "a")
        yield hosts, echo
        echo.close()


def echoed(peer: socket.socket, data: bytes) -> bytes:
    sending = threading.Thread(target=peer.sendall, args=(data,))
    sending.start()
    back = b""
    while len(back) < len(data) and (more := peer.recv(65536)):
        back += more
    sending.join()
    return back


def test_what_passes_the_proxy_is_whole_and_in_order(echoing: tuple[FaultyHosts, Echoing]) -> None:
    hosts, echo = echoing
    hosts.weather(Weather(latency_ms=1, jitter_ms=2, loss=0.05, retransmit_ms=5))
    data = b"".join(i.to_bytes(4, "little") for i in range(100_000))
    with echo.dial("b") as peer:
        assert echoed(peer, data) == data
        peer.shutdown(socket.SHUT_WR)
        assert peer.recv(1) == b""
    assert hosts.figures()["lost"] > 0


def test_latency_slowness_pauses_and_a_cut(echoing: tuple[FaultyHosts, Echoing]) -> None:
    hosts, echo = echoing
    with echo.dial("b") as peer:
        hosts.weather(Weather(latency_ms=50))
        began = time.monotonic()
        assert echoed(peer, b"there and back") == b"there and back"
        assert time.monotonic() - began >= 0.1
        hosts.weather(Weather(kib_per_s=100))
        began = time.monotonic()
        assert echoed(peer, bytes(10 << 10)) == bytes(10 << 10)
        assert time.monotonic() - began >= 0.2
        hosts.weather(Weather(pause_s=0.2, pause_every_s=0.2))
        eventually(lambda: hosts.figures()["pauses"] >= 3, what="pauses")
        assert echoed(peer, b"after it") == b"after it"
        hosts.weather(Weather(user_timeout_s=0.3))
        hosts.cut("a")
        peer.sendall(b"lost")
        with pytest.raises(ConnectionResetError):
            peer.recv(1)
    hosts.heal()
    with echo.dial("b") as peer:
        assert echoed(peer, b"again") == b"again"


def test_nobody_who_listens_is_a_reset(echoing: tuple[FaultyHosts, Echoing]) -> None:
    _, echo = echoing
    echo.close()
    with pytest.raises(ConnectionResetError), echo.dial("b") as peer:
        peer.recv(1)
