"""How soon a killed head serves again, with many registered nodes.

A real head and 1,000 simulated nodes (head_nodes.cc: real sessions, registrations and heartbeats in
one process). The head is killed by SIGKILL and started again with the same state; counted from that
start: the head says it is ready, a driver has its first answer, the last of the nodes is registered
again. Over Unix sockets as the same user, and over TLS with node certificates (two cores then do
2,000 handshakes, both sides of each).

    python benchmarks/head_restart.py --keep
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

import report

from troupe._base.bridge import native
from troupe._cluster import executables


def nodes_program() -> str:
    return str(pathlib.Path(executables.find("troupe-head")).parent / "head_nodes")


def start_head(folder: pathlib.Path, port: int) -> executables.Started:
    return executables.start(
        "troupe-head",
        [f"--state-dir={folder / 'cluster'}", f"--port={port}"],
        log=folder / "head.log",
        timeout=120,
    )


def registered_at(program: subprocess.Popen) -> float:
    line = program.stdout.readline()
    if not line:
        raise SystemExit(f"head_nodes ended: {program.stderr.read()}")
    return json.loads(line)["at_s"]


def measure(count: int, rounds: int, tls: bool) -> dict:
    with tempfile.TemporaryDirectory(prefix="restart-") as name:
        folder = pathlib.Path(name)
        head = start_head(folder, 0)
        port = int(head.ready["address"].rpartition(":")[2])
        socket = str(head.ready["socket"])
        client = native.ControlClient.connect_unix(socket)
        arguments = [f"--address=unix:{socket}"]
        if tls:
            token = folder / "token"
            token.touch(mode=0o600)
            token.write_text(client.request("CreateToken", {"role": "worker"})[1]["token"])
            arguments = [f"--address={head.ready['address']}", f"--token={token}"]
        nodes = subprocess.Popen(
            [nodes_program(), f"--nodes={count}", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        times: dict[str, list[float]] = {"ready": [], "first_answer": [], "all_registered": []}
        try:
            began = time.monotonic()
            joined = registered_at(nodes) - began
            for _ in range(rounds):
                client.close()
                os.kill(head.pid, signal.SIGKILL)
                head.process.wait()
                began = time.monotonic()
                head = start_head(folder, port)
                times["ready"].append(time.monotonic() - began)
                client = native.ControlClient.connect_unix(socket, timeout=60)
                status = client.request("GetStatus", {}, b"", 60)[1]
                times["first_answer"].append(time.monotonic() - began)
                assert len(status["nodes"]) == count
                times["all_registered"].append(registered_at(nodes) - began)
            client.close()
        finally:
            nodes.kill()
            nodes.communicate()
            executables.end([head.process])
        return {
            **{what: report.summary(seconds) for what, seconds in times.items()},
            "first_join_of_all_ms": round(1000 * joined, 1),
            "nodes": count,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    report.keep(
        "head_restart",
        {
            "unix sockets": measure(options.nodes, options.rounds, False),
            "tls": measure(options.nodes, options.rounds, True),
        },
        options.keep,
    )


if __name__ == "__main__":
    main()
