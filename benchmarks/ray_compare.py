"""Every operation of `ray microbenchmark`, by Troupe and by Ray alternately, with the ratio per
row.

Each row has a cluster of its own (8 logical CPUs), so that one row's processes are not the next
one's load. Beside them the floors of this machine: a ping-pong over a Unix socket, a copy into
memory that is used again. On the rows that they have also Ray's compiled graph,
torch.distributed.rpc and Monarch (torchmonarch), each in the interpreter given.

    python benchmarks/ray_compare.py --ray /path/to/python [--rpc PYTHON] [--monarch PYTHON] [--rounds 3] [--seconds 2]
                                     [--rows "1:1 actor calls sync" ...] [--keep]
"""

import argparse
import ast
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import report

PROGRAM = pathlib.Path(__file__).parent / "jobs/ray_compare_program.py"
PEERS = pathlib.Path(__file__).with_name("ray_compare_peers.py")
# Rows that each peer has.
PEER_ROWS = {
    "graph": ["1:1 actor calls sync"],
    "rpc": ["1:1 actor calls sync", "1:1 actor calls async"],
    "monarch": ["1:1 actor calls sync", "1:1 actor calls async"],
}
# Goals of the project, as multiples of Ray.
GOALS = {
    "1:1 actor calls sync": 50,
    "1:1 actor calls async": 200,
    "1:1 actor calls concurrent": 50,
    "1:n actor calls async": 150,
    "n:n actor calls async": 150,
    "n:n actor calls with arg async": 300,
    "1:1 async-actor calls sync": 25,
    "1:1 async-actor calls async": 25,
    "1:1 async-actor calls with args async": 25,
    "1:n async-actor calls async": 25,
    "n:n async-actor calls async": 25,
    "single client get calls": 60,
    "single client put calls": 150,
    "single client get object containing 10k refs": 10,
    "single client wait 1k refs": 25,
    "single client tasks sync": 40,
    "single client tasks async": 100,
    "placement group create/removal": 20,
}


def measure(which: str, python: str, seconds: float, row: str) -> float:
    """The rate of one row, in a process of its own."""
    environment = dict(os.environ)
    if which != "troupe":
        environment.pop("PYTHONPATH", None)
    program = PEERS if which in PEER_ROWS else PROGRAM
    done = subprocess.run(
        [python, str(program), which, str(seconds), row],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode != 0:
        sys.exit(f"{which}, {row}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])[row]


def floors() -> dict[str, dict[str, float]]:
    """Measure the machine's own floor for the rows."""
    import socket

    here, there = socket.socketpair()
    child = os.fork()
    if child == 0:
        here.close()
        while data := there.recv(64):
            there.send(data)
        os._exit(0)
    there.close()
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < 1:
        here.send(b"ok")
        here.recv(64)
        count += 1
    passed = time.perf_counter() - begin
    here.close()
    os.waitpid(child, 0)
    source, target = bytearray(b"x") * (800 << 20), bytearray(800 << 20)
    copies = []
    for _ in range(6):
        began = time.perf_counter()
        memoryview(target)[:] = source
        copies.append(0.8388608 / (time.perf_counter() - began))
    return {
        "floor: ping-pong over a Unix socket, Python": {"per_s": round(count / passed)},
        "floor: copy into memory that is used again": {
            "gb_per_s": round(statistics.median(copies[1:]), 1)
        },
    }


def rows_of_program() -> list[str]:
    """The names of its rows, without importing it (that connects to nothing, but needs numpy and a
    contender)."""
    tree = ast.parse(PROGRAM.read_text())
    return [
        decorator.args[0].value
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call) and decorator.func.id == "row"
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--ray", help="a Python that has Ray 2.60")
    parser.add_argument("--rpc", help="a Python that has torch")
    parser.add_argument("--monarch", help="a Python that has torchmonarch")
    parser.add_argument("--rows", nargs="*")
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    given = {
        "troupe": sys.executable,
        "ray": arguments.ray,
        "graph": arguments.ray,
        "rpc": arguments.rpc,
        "monarch": arguments.monarch,
    }
    found = floors()
    for name in arguments.rows or rows_of_program():
        contenders = {
            which: python
            for which, python in given.items()
            if python and name in PEER_ROWS.get(which, [name])
        }
        rates: dict[str, list[float]] = {which: [] for which in contenders}
        for _ in range(arguments.rounds):
            for which, python in contenders.items():
                rates[which].append(measure(which, python, arguments.seconds, name))
                report.settle()
        row = {f"{which}_per_s": round(statistics.median(each), 2) for which, each in rates.items()}
        if "ray" in contenders:
            row["times_ray"] = round(row["troupe_per_s"] / row["ray_per_s"], 1)
            if name in GOALS:
                row["goal"] = GOALS[name]
        for which in PEER_ROWS.keys() & contenders.keys():
            row[f"times_{which}"] = round(row["troupe_per_s"] / row[f"{which}_per_s"], 1)
        found[name] = row
        print(f"{name:46s} {json.dumps(row)}", file=sys.stderr, flush=True)
    report.keep("ray_compare", found, arguments.keep, part=bool(arguments.rows))


if __name__ == "__main__":
    main()
