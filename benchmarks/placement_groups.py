"""Placement groups created, waited for and removed, 100 in flight, as Ray's own microbenchmark does it.

A cluster of its own per contender, on this machine: one node, and four nodes with one bundle on each. Troupe's
groups are durable: every one is in the head's journal, synced, before it is CREATED. With --ray PYTHON (an
interpreter that has Ray 2.60) both are measured in one run, round by round.

    python benchmarks/placement_groups.py [--rounds 5] [--ray /path/to/python] [--keep]
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from report import keep, settle  # noqa: E402

IN_FLIGHT = 100
SECONDS = 2.0

# Each line "SECONDS IN_FLIGHT" is a round, answered with groups a second.
ROUNDS = """
print("ready", flush=True)
for line in sys.stdin:
    seconds, in_flight = float(line.split()[0]), int(line.split()[1])
    done, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        groups = [placement_group([{"slot": 0.001}] * nodes, "PACK" if nodes == 1 else "STRICT_SPREAD")
                  for _ in range(in_flight)]
        for group in groups:
            assert group.wait(timeout_seconds=60)
        for group in groups:
            remove_placement_group(group)
        done += in_flight
    print(done / (time.perf_counter() - begin), flush=True)
"""

RAY_SCRIPT = """
import sys, time
import ray
from ray.cluster_utils import Cluster
from ray.util.placement_group import placement_group, remove_placement_group
nodes = int(sys.argv[1])
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "resources": {"slot": 100}})
for _ in range(nodes - 1):
    cluster.add_node(num_cpus=1, resources={"slot": 100})
ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
cluster.wait_for_nodes()
""" + ROUNDS + """
ray.shutdown()
cluster.shutdown()
"""

TROUPE_SCRIPT = """
import sys, time
import troupe
from troupe.util.placement_group import placement_group, remove_placement_group
nodes = int(sys.argv[1])
troupe.init(sys.argv[2])
""" + ROUNDS + """
troupe.shutdown()
"""


class Contender:
    """A process that runs rounds when it is told to."""

    def __init__(self, python: str, script: str, *arguments: str) -> None:
        self.process = subprocess.Popen([python, "-c", script, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.line()

    def line(self) -> str:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"a contender ended with {self.process.wait()}")
        return line.strip()

    def round(self) -> float:
        """Groups a second."""
        self.process.stdin.write(f"{SECONDS} {IN_FLIGHT}\n")
        self.process.stdin.flush()
        return float(self.line())

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def troupe_command(home: str, *args: str) -> str:
    return subprocess.run([sys.executable, "-m", "troupe", *args], env={**os.environ, "TROUPE_HOME": home}, check=True,
                          capture_output=True, text=True).stdout


def start_cluster(home: str, nodes: int) -> str:
    offer = ["--num-cpus", "1", "--resources", '{"slot": 100}']
    head = json.loads(troupe_command(home, "start", "--head", "--port", "0", "--node-name", "n0", "--json", *offer))
    token = pathlib.Path(home) / "token"
    token.touch(mode=0o600)
    token.write_text(troupe_command(home, "token", "create"))
    for number in range(1, nodes):
        troupe_command(home, "start", "--address", head["address"], "--token-file", str(token), "--node-name",
                       f"n{number}", *offer)
    return head["address"]


def best_and_median(rates: list[float]) -> dict:
    return {"groups_per_s": round(sorted(rates)[len(rates) // 2]), "best": round(max(rates)), "worst": round(min(rates)),
            "rounds": len(rates)}


def measure(nodes: int, rounds: int, ray: str | None) -> dict:
    with tempfile.TemporaryDirectory(prefix="troupe-bench-") as home:
        address = start_cluster(home, nodes)
        os.environ["TROUPE_HOME"] = home
        contenders = {"troupe": Contender(sys.executable, TROUPE_SCRIPT, str(nodes), address)}
        try:
            if ray:
                contenders["ray"] = Contender(ray, RAY_SCRIPT, str(nodes))
            rates: dict[str, list[float]] = {name: [] for name in contenders}
            for number in range(rounds + 1):  # the first is for warmth
                for name, contender in contenders.items():
                    settle()
                    rate = contender.round()
                    if number > 0:
                        rates[name].append(rate)
            for contender in contenders.values():
                contender.end()
        finally:
            troupe_command(home, "stop", "--all")
    row: dict = {name: best_and_median(each) for name, each in rates.items()}
    if ray:
        row["times_ray"] = round(row["troupe"]["groups_per_s"] / row["ray"]["groups_per_s"], 1)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--nodes", type=int, nargs="*", default=[1, 4])
    parser.add_argument("--ray", help="a Python interpreter that has Ray")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    rows = {f"create, wait, remove: {nodes} node{'s' * (nodes > 1)}": measure(nodes, options.rounds, options.ray)
            for nodes in options.nodes}
    keep("placement_groups", rows, options.keep)


if __name__ == "__main__":
    main()
