"""Placement groups created, waited for and removed, 100 in flight, as Ray's own microbenchmark does
it.

A cluster of its own per contender, on this machine: one node, and four nodes with one bundle on
each. Troupe's groups are durable: every one is in the head's journal, synced, before it is CREATED.
With --ray PYTHON (an interpreter that has Ray 2.60) both are measured in one run, round by round.

    python benchmarks/placement_groups.py [--rounds 5] [--ray /path/to/python] [--keep]
"""

import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from contender import Contender, options_of, start_head, troupe_command  # noqa: E402
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

RAY_SCRIPT = (
    """
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
"""
    + ROUNDS
    + """
ray.shutdown()
cluster.shutdown()
"""
)

TROUPE_SCRIPT = (
    """
import sys, time
import troupe
from troupe.util.placement_group import placement_group, remove_placement_group
nodes = int(sys.argv[1])
troupe.init(sys.argv[2])
"""
    + ROUNDS
    + """
troupe.shutdown()
"""
)


def start_cluster(home: str, nodes: int) -> str:
    offer = ["--num-cpus", "1", "--resources", '{"slot": 100}']
    address, token = start_head(home, "--node-name", "n0", *offer)
    for number in range(1, nodes):
        troupe_command(
            home,
            "start",
            "--address",
            address,
            "--token-file",
            token,
            "--node-name",
            f"n{number}",
            *offer,
        )
    return address


def best_and_median(rates: list[float]) -> dict:
    return {
        "groups_per_s": round(sorted(rates)[len(rates) // 2]),
        "best": round(max(rates)),
        "worst": round(min(rates)),
        "rounds": len(rates),
    }


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
                    rate = contender.round(SECONDS, IN_FLIGHT)
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
    parser = options_of(__doc__)
    parser.add_argument("--nodes", type=int, nargs="*", default=[1, 4])
    options = parser.parse_args()
    rows = {
        f"create, wait, remove: {nodes} node{'s' * (nodes > 1)}": measure(
            nodes, options.rounds, options.ray
        )
        for nodes in options.nodes
    }
    keep("placement_groups", rows, options.keep)


if __name__ == "__main__":
    main()
