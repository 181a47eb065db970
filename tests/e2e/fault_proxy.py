"""Hosts between which everything passes through a proxy that delays, loses, stalls, slows and cuts.

    with FaultyHosts("head", "a", "b") as hosts:
        hosts["a"].run([...])                      # a command on that host (namespaces.py)
        hosts.weather(Weather(loss=0.1))           # from now on
        hosts.cut("a")                             # nothing passes to or from a; heal() undoes it
        print(hosts.figures())                     # what it did so far

Each host is a network namespace with nothing but a loopback; the proxy has sockets in all of them
and is their only network. Whoever listens on a host does it at its address and PORT; in every other
namespace the proxy listens at that address, and passes on what comes. What it does is what a bad
network does to TCP:

* a chunk of data takes the latency and some jitter; chunks of one direction stay in order;
* a lost chunk stalls its direction by one retransmission timeout (200 ms), which doubles while the
  repeats are lost too; so does the setting up of a connection (from 1 s);
* a host pauses: nothing passes to or from it for a while;
* data that waits for 5 s (the TCP_USER_TIMEOUT of every connection here) ends its connection.

One thing it cannot show: that nobody listens. A connection is taken and then reset.
Needs root, as namespaces.py does (`why_not()` there). This file is also the program of the proxy.
"""

from __future__ import annotations

import asyncio
import ctypes
import dataclasses
import json
import os
import random
import socket
import struct
import subprocess
import sys
import uuid
from typing import Any

PORT = 7077
LIMIT_S = 30.0
CHUNK_BYTES = 16 << 10
CHUNKS_QUEUED_MAX = 64
_CLONE_NEWNET = 0x40000000


@dataclasses.dataclass(frozen=True)
class Weather:
    """How the network behaves; the default is a calm one."""

    latency_ms: float = 0.0
    jitter_ms: float = 0.0  # mean of an exponential distribution, ten times that at most
    loss: float = 0.0  # share of the chunks, of repeats too
    retransmit_ms: float = 200.0
    repeats_max: int = 10  # a chunk arrives after so many losses at the latest
    pause_s: float = 0.0  # pause of one host at a time, and as long again without any
    pause_every_s: float = 5.0  # mean time from there to the next one
    kib_per_s: float = 0.0  # limit for each direction of each connection; 0: as fast as it can
    user_timeout_s: float = 5.0


def enter(namespace: str) -> None:
    """The calling thread goes on in that network namespace, and so do threads it starts."""
    descriptor = os.open(f"/run/netns/{namespace}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns to {namespace}")
    finally:
        os.close(descriptor)


class _Figures:
    def __init__(self) -> None:
        self.connections = self.chunks = self.lost = self.bytes = self.pauses = (
            self.ended_by_a_stall
        ) = 0
        self.longest_stall_ms = 0.0


class _Network:
    """All hosts, their pauses and cuts; in the proxy's process."""

    def __init__(self, hosts: dict[str, dict[str, str]], seed: int) -> None:
        self.hosts = hosts
        self.weather = Weather()
        self.random = random.Random(seed)
        self.figures = _Figures()
        self.cut: set[str] = set()
        self.changed = asyncio.Event()  # replaced at every change of weather or cuts
        self._paused_until = dict.fromkeys(hosts, 0.0)
        self._tasks: set[asyncio.Task] = set()

    def spawn(self, task: Any) -> asyncio.Task:
        made = asyncio.ensure_future(task)
        self._tasks.add(made)
        made.add_done_callback(self._tasks.discard)
        return made

    def change(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def open_until(self, ends: tuple[str, str]) -> float:
        """From when on something passes between the two; infinity while there is a cut."""
        if self.cut.intersection(ends):
            return float("inf")
        return max(self._paused_until[end] for end in ends)

    def delay(self, first_timeout_ms: float) -> float:
        """Seconds that the next chunk takes."""
        now = self.weather
        jitter = (
            min(self.random.expovariate(1 / now.jitter_ms), 10 * now.jitter_ms)
            if now.jitter_ms
            else 0.0
        )
        stall = 0.0
        for repeat in range(now.repeats_max):
            if self.random.random() >= now.loss:
                break
            self.figures.lost += 1
            stall += first_timeout_ms * 2**repeat
        self.figures.longest_stall_ms = max(self.figures.longest_stall_ms, stall)
        return (now.latency_ms + jitter + stall) / 1000

    async def pauses(self) -> None:
        """Pauses, never two at once nor one right after the other: those would add up to a longer
        one."""
        while True:
            changed, now = self.changed, self.weather
            wait = self.random.expovariate(1 / now.pause_every_s) if now.pause_s else None
            try:
                await asyncio.wait_for(changed.wait(), wait)
            except TimeoutError:
                self.figures.pauses += 1
                host = self.random.choice(list(self.hosts))
                self._paused_until[host] = asyncio.get_running_loop().time() + now.pause_s
                await asyncio.sleep(2 * now.pause_s)  # lint-ok: the pause, and the calm after it

    async def listen(self) -> None:
        self.spawn(self.pauses())
        for here in self.hosts:
            for there in self.hosts:
                if there != here:
                    enter(self.hosts[here]["namespace"])
                    listening = socket.create_server(
                        (self.hosts[there]["address"], PORT), backlog=512
                    )
                    await asyncio.start_server(
                        lambda reader, writer, ends=(here, there): self._connect(
                            reader, writer, ends
                        ),
                        sock=listening,
                        limit=CHUNK_BYTES,
                    )

    async def _connect(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, ends: tuple[str, str]
    ) -> None:
        self.figures.connections += 1
        here, there = (self.hosts[end] for end in ends)
        await asyncio.sleep(
            self.delay(first_timeout_ms=1000)
        )  # lint-ok: the time a connection takes
        upstream = None
        try:
            enter(there["namespace"])
            taken = socket.socket()
            taken.setblocking(False)
            taken.bind((here["address"], 0))
            await asyncio.get_running_loop().sock_connect(taken, (there["address"], PORT))
            upstream = await asyncio.open_connection(sock=taken, limit=CHUNK_BYTES)
            ways = [_Way(self, ends, reader, upstream[1]), _Way(self, ends, upstream[0], writer)]
            running = [self.spawn(way.run()) for way in ways]
            _, left = await asyncio.wait(running, return_when=asyncio.FIRST_EXCEPTION)
            for each in left:
                each.cancel()
            if not any(
                await asyncio.gather(*running, return_exceptions=True)
            ):  # run gives nothing, or an error
                writer.close()
                upstream[1].close()
                return
        except OSError:
            pass
        for each in [writer, *([upstream[1]] if upstream else [])]:
            _reset(each)


class _Way:
    """A direction of one connection."""

    def __init__(
        self,
        network: _Network,
        ends: tuple[str, str],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.network, self.ends, self.reader, self.writer = network, ends, reader, writer
        self.queue: asyncio.Queue[tuple[bytes, float, float]] = asyncio.Queue(CHUNKS_QUEUED_MAX)

    async def run(self) -> None:
        """To the end of the data; raises OSError when the connection is lost."""
        sending = self.network.spawn(self._send())
        taking = self.network.spawn(self._take())
        try:
            await asyncio.gather(taking, sending)
        finally:
            taking.cancel()
            sending.cancel()

    async def _take(self) -> None:
        clock, release = asyncio.get_running_loop().time, 0.0
        while True:
            data = await self.reader.read(CHUNK_BYTES)
            now = clock()
            figures, weather = self.network.figures, self.network.weather
            figures.chunks += 1
            figures.bytes += len(data)
            release = max(release, now + self.network.delay(weather.retransmit_ms))
            if weather.kib_per_s:
                release += len(data) / 1024 / weather.kib_per_s
            await self.queue.put((data, now, release))
            if not data:
                return

    async def _send(self) -> None:
        while True:
            data, since, release = await self.queue.get()
            await self._until(release, since + self.network.weather.user_timeout_s)
            if not data:
                self.writer.write_eof()
                return
            self.writer.write(data)
            await self.writer.drain()

    async def _until(self, release: float, limit: float) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            changed, moment = self.network.changed, max(release, self.network.open_until(self.ends))
            if moment <= clock():
                return
            if moment > limit and limit <= clock():
                self.network.figures.ended_by_a_stall += 1
                raise ConnectionResetError("nothing was acknowledged for the TCP_USER_TIMEOUT")
            try:
                await asyncio.wait_for(changed.wait(), max(0.0, min(moment, limit) - clock()))
            except TimeoutError:
                pass


def _reset(writer: asyncio.StreamWriter) -> None:
    """Ends a connection as a router does that has forgotten it."""
    taken = writer.get_extra_info("socket")
    if taken is not None and taken.fileno() >= 0:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _serve(config: dict[str, Any]) -> None:
    network = _Network(config["hosts"], config["seed"])
    await network.listen()
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), sys.stdin
    )
    print("ready", flush=True)
    while line := await lines.readline():
        order = json.loads(line)
        if "weather" in order:
            network.weather = Weather(**order["weather"])
        if "cut" in order:
            network.cut = set(order["cut"])
        network.change()
        print(json.dumps(vars(network.figures)), flush=True)


class FaultyHosts:
    """A context manager of hosts by name with the addresses 10.78.0.1, .2 and so on."""

    def __init__(self, *names: str, seed: int = 1) -> None:
        from namespaces import Host

        tag = uuid.uuid4().hex[:6]
        self._hosts = {
            name: Host(name, f"tt-{tag}-{name}", f"10.78.0.{number}")
            for number, name in enumerate(names, 1)
        }
        self._seed = seed
        self._cut: list[str] = []
        self._proxy: subprocess.Popen | None = None

    def __enter__(self) -> FaultyHosts:
        from namespaces import ip

        try:
            for host in self._hosts.values():
                ip("netns", "add", host.namespace)
                ip("-n", host.namespace, "link", "set", "lo", "up")
                for each in self._hosts.values():
                    ip("-n", host.namespace, "addr", "add", f"{each.address}/32", "dev", "lo")
            hosts = {
                name: {"namespace": host.namespace, "address": host.address}
                for name, host in self._hosts.items()
            }
            config = json.dumps({"hosts": hosts, "seed": self._seed})
            self._proxy = subprocess.Popen(
                [sys.executable, __file__, config],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert self._proxy.stdout.readline() == "ready\n", "the proxy did not start"
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._proxy is not None:
            self._proxy.stdin.close()
            try:
                self._proxy.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                self._proxy.kill()
                self._proxy.wait()
            self._proxy.stdout.close()
        for host in self._hosts.values():
            subprocess.run(
                ["ip", "netns", "del", host.namespace], capture_output=True, timeout=LIMIT_S
            )

    def __getitem__(self, name: str) -> Any:
        return self._hosts[name]

    def _order(self, **order: object) -> dict[str, Any]:
        assert self._proxy is not None
        self._proxy.stdin.write(json.dumps(order) + "\n")
        self._proxy.stdin.flush()
        return json.loads(self._proxy.stdout.readline())

    def weather(self, weather: Weather) -> None:
        """From now on."""
        self._order(weather=dataclasses.asdict(weather))

    def cut(self, name: str) -> None:
        """Nothing passes to or from that host."""
        self._cut.append(name)
        self._order(cut=self._cut)

    def heal(self) -> None:
        """Undoes every cut."""
        self._cut.clear()
        self._order(cut=[])

    def figures(self) -> dict[str, Any]:
        """Return the proxy's counts so far."""
        return self._order()


if __name__ == "__main__":
    asyncio.run(_serve(json.loads(sys.argv[1])))
