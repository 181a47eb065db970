"""Placement's pure decisions: cost against the size of the cluster, 100 to 100,000 nodes of 8 GPUs.

Runs placement_plans (what it measures is told at its top) for each size, prints and keeps the figures.

    python benchmarks/placement.py --program build/release/bin/placement_plans --keep
"""
import argparse
import json
import subprocess

import report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/release/bin/placement_plans")
    parser.add_argument("--nodes", type=int, nargs="*", default=[100, 1000, 10_000, 100_000])
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    rows = {}
    for nodes in args.nodes:
        done = subprocess.run([args.program, f"--nodes={nodes}"], capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            row = json.loads(line)
            rows[row.pop("row")] = row
    report.keep("placement", rows, args.keep)


if __name__ == "__main__":
    main()
