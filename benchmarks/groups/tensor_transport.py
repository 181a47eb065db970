"""A tensor from one actor to another of a host, and back to its own: staying in its actor
(tensor_transport="auto") against as an ordinary result.

Each measurement is a call that makes nothing but returns a tensor that is there, and a call of the
taker with its ref, which looks at the first and the last element: together, from the driver, one
after the other. "read": the taker reads all of it. By turns in one run.

    python benchmarks/groups/tensor_transport.py [--rounds 15] [--keep]
"""

import argparse
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from report import keep, settle, summary  # noqa: E402

SIZES = {"4 KB": 1 << 10, "1 MB": 1 << 18, "64 MB": 1 << 24}  # floats
INNER = {"4 KB": 50, "1 MB": 20, "64 MB": 3}  # so many within one measurement
WAYS = ("auto", "object_store")


class Actor:
    """Has tensors of each size, gives them, and takes others'."""

    def __init__(self) -> None:
        import torch

        torch.set_num_threads(1)
        self.tensors = {what: torch.ones(count) for what, count in SIZES.items()}

    def give(self, what: str) -> object:
        """Return one of the tensors."""
        return self.tensors[what]

    def look(self, tensor: object) -> float:
        """At both of its ends."""
        return float(tensor[0] + tensor[-1])

    def read(self, tensor: object) -> float:
        """All of it."""
        return float(tensor.sum())


def measure(rounds: int) -> dict:
    """{what: {way: [seconds, ...]}}."""
    import troupe

    owner, other = (troupe.remote(Actor).remote() for _ in range(2))
    gives = {way: owner.give.options(tensor_transport=way) for way in WAYS}
    takes = {
        "to another actor": other.look,
        "to another actor, read": other.read,
        "to its own actor": owner.look,
    }

    def run(what: str, take: object, way: str) -> None:
        for _ in range(INNER[what]):
            troupe.get(take.remote(gives[way].remote(what)))

    found = {f"{what} {where}": {way: [] for way in WAYS} for where in takes for what in SIZES}
    for number in range(rounds + 1):
        for where, take in takes.items():
            for what in SIZES:
                for way in WAYS if number % 2 else reversed(WAYS):
                    begin = time.perf_counter()
                    run(what, take, way)
                    if number:  # the first round connects, and makes the memory
                        found[f"{what} {where}"][way].append(
                            (time.perf_counter() - begin) / INNER[what]
                        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--keep", action="store_true", help="write benchmarks/results/tensor_transport.json"
    )
    options = parser.parse_args()
    import troupe

    os.environ.pop("TROUPE_ADDRESS", None)
    settle()
    troupe.init(num_cpus=4)
    rows = {}
    for what, of_way in measure(options.rounds).items():
        row = {way: summary(seconds) for way, seconds in of_way.items()}
        pairs = zip(of_way["object_store"], of_way["auto"], strict=True)
        row["object_store / auto, median of pairs"] = round(
            statistics.median(ordinary / ours for ordinary, ours in pairs), 3
        )
        rows[what] = row
    troupe.shutdown()
    keep("tensor_transport", rows, options.keep)


if __name__ == "__main__":
    main()
