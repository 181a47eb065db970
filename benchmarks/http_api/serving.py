"""The head's HTTP server with 1,000 nodes, and what it costs the reducer.

A real head and simulated nodes with 8 GPUs each (head_nodes.cc), which send heartbeats and
measures. `/metrics` and the first page of `/api/v1/nodes` are asked for over TLS, one connection
each time, with `Cache-Control: no-cache`: the view is made anew. Streams: placement groups are
made and removed, 20 in flight, in turns of some seconds with and without 100 readers of
`/api/v1/stream`; of each turn the 99th percentile of a reducer's step, from the head's own
histogram, and of the answer to a KvGet.

    cmake --build build/release --target head_nodes
    python benchmarks/http_api/serving.py --keep
"""

from __future__ import annotations

import argparse
import http.client
import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import head_restart  # noqa: E402
import report  # noqa: E402

from troupe._base.bridge import native  # noqa: E402
from troupe._cluster import executables  # noqa: E402

STREAMS = 100


class Head:
    """A head with simulated nodes, a client of it, and an observer's token."""

    def __init__(self, folder: pathlib.Path, count: int) -> None:
        self.started = head_restart.start_head(folder, 0)
        host, _, port = self.started.ready["address"].rpartition(":")
        self.host, self.port = host, int(port)
        socket_path = str(self.started.ready["socket"])
        self.client = native.ControlClient.connect_unix(socket_path)
        self.token = self.client.request("CreateToken", {"role": "observer"})[1]["token"]
        self.nodes = subprocess.Popen(
            [head_restart.nodes_program(), f"--nodes={count}", f"--address=unix:{socket_path}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        head_restart.registered_at(self.nodes)
        self.context = ssl.create_default_context(
            cafile=str(folder / "cluster" / "head" / "ca.crt")
        )
        self.context.set_alpn_protocols(["http/1.1"])

    def get(self, path: str) -> bytes:
        """The body of a GET, on a connection of its own."""
        connection = http.client.HTTPSConnection(
            self.host, self.port, timeout=60, context=self.context
        )
        headers = {"Authorization": f"Bearer {self.token}", "Cache-Control": "no-cache"}
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status} {body[:200]!r}")
        return body

    def end(self) -> None:
        """End the nodes and the head."""
        self.client.close()
        self.nodes.kill()
        self.nodes.communicate()
        executables.end([self.started.process])


def answers(head: Head, path: str, rounds: int) -> dict[str, Any]:
    """Times of a GET, a quarter of a second apart, as a view is at most made."""
    head.get(path)
    seconds = []
    for _ in range(rounds):
        report.settle(0.3)
        began = time.perf_counter()
        body = head.get(path)
        seconds.append(time.perf_counter() - began)
    return {**report.summary(seconds), "bytes": len(body), "lines": body.count(b"\n")}


@contextmanager
def readers(head: Head, count: int) -> Iterator[list[int]]:
    """So many streams that are read; gives the numbers of bytes that came."""
    got = [0] * count
    open_: list[ssl.SSLSocket] = []
    request = (
        f"GET /api/v1/stream HTTP/1.1\r\nHost: {head.host}\r\n"
        f"Authorization: Bearer {head.token}\r\n\r\n"
    ).encode()

    def read(index: int, stream: ssl.SSLSocket) -> None:
        try:
            while data := stream.recv(65536):
                got[index] += len(data)
        except OSError:
            pass

    for index in range(count):
        plain = socket.create_connection((head.host, head.port), timeout=60)
        stream = head.context.wrap_socket(plain, server_hostname=head.host)
        stream.sendall(request)
        open_.append(stream)
        got[index] += len(stream.recv(65536))  # only so many of a host may be unauthenticated
        threading.Thread(target=read, args=(index, stream), daemon=True).start()
    try:
        yield got
    finally:
        for stream in open_:
            stream.close()


def steps(head: Head) -> list[tuple[float, float]]:
    """The head's own histogram of reducer steps: bounds and counts up to each."""
    name = "troupe_reducer_step_seconds_bucket{le="
    lines = head.get("/metrics?scope=head").decode().splitlines()
    found = [
        line[len(name) :].split('"')[1::2] + [line.split()[-1]]
        for line in lines
        if line.startswith(name)
    ]
    return [(float(bound), float(count)) for bound, count in found]


def percentile(before: list[tuple[float, float]], after: list[tuple[float, float]]) -> float:
    """The 99th percentile of what came between, linear within its bucket."""
    counts = [(bound, now - then) for (bound, now), (_, then) in zip(after, before, strict=True)]
    wanted = 0.99 * counts[-1][1]
    low = below = 0.0
    for bound, count in counts:
        if count >= wanted:
            share = (wanted - below) / (count - below) if count > below else 1.0
            return low + (bound - low) * share
        low, below = bound, count
    return low


def turn(head: Head, seconds: float) -> dict[str, float]:
    """Work for some seconds; the 99th percentiles of a step and of an answer, in ms."""
    before = steps(head)
    end = time.monotonic() + seconds
    made: list[str] = []
    asked = []
    while time.monotonic() < end:
        group = uuid.uuid4().hex
        bundle = {"index": 0, "resources": [{"name": "CPU", "ten_thousandths": 10000}]}
        head.client.request("CreateGroup", {"group": group, "bundles": [bundle]})
        made.append(group)
        if len(made) > 20:
            head.client.request("RemoveGroup", {"group": made.pop(0)})
        began = time.perf_counter()
        head.client.request("KvGet", {"scope": "s", "key": "k"})
        asked.append(time.perf_counter() - began)
    for group in made:
        head.client.request("RemoveGroup", {"group": group})
    asked.sort()
    return {
        "step_p99_ms": 1000 * percentile(before, steps(head)),
        "answer_p99_ms": 1000 * asked[int(len(asked) * 0.99)],
        "requests": len(asked) * 2,
    }


def with_streams(head: Head, rounds: int, seconds: float) -> dict[str, Any]:
    """Turns with and without streams, alternately: medians of each side, and their difference."""
    sides: dict[str, list[dict[str, float]]] = {"without": [], "with": []}
    came = 0
    for _ in range(rounds):
        sides["without"].append(turn(head, seconds))
        with readers(head, STREAMS) as got:
            report.settle(1)
            sides["with"].append(turn(head, seconds))
            came += sum(got)
    medians: dict[str, Any] = {
        side: {what: sorted(each[what] for each in turns)[len(turns) // 2] for what in turns[0]}
        for side, turns in sides.items()
    }
    added = {
        what: medians["with"][what] - medians["without"][what]
        for what in ("step_p99_ms", "answer_p99_ms")
    }
    return {**medians, "added": added, "streams": STREAMS, "bytes_of_streams": came}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="http-") as name:
        head = Head(pathlib.Path(name), options.nodes)
        try:
            report.settle(6)  # all nodes have sent their measures
            rows = {
                f"/metrics, {options.nodes} nodes": answers(head, "/metrics", options.rounds),
                "/metrics?scope=head": answers(head, "/metrics?scope=head", options.rounds),
                "/api/v1/nodes": answers(head, "/api/v1/nodes", options.rounds),
                f"{STREAMS} streams": with_streams(head, options.turns, options.seconds),
            }
        finally:
            head.end()
    report.keep("http", rows, options.keep)


if __name__ == "__main__":
    main()
