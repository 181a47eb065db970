"""A head with 10,000 nodes and 80,000 GPUs: joins, groups a second, restart, memory (head_scale.cc
tells how).

python benchmarks/head_scale.py --program build/release/bin/head_scale --keep
"""

import argparse
import json
import subprocess
import tempfile

import report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/release/bin/head_scale")
    parser.add_argument("--nodes", type=int, nargs="*", default=[1000, 10_000])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    rows = {}
    for nodes in args.nodes:
        with tempfile.TemporaryDirectory(prefix="troupe-bench-") as folder:
            done = subprocess.run(
                [args.program, folder, f"--nodes={nodes}", f"--seconds={args.seconds}"],
                capture_output=True,
                text=True,
                check=True,
            )
        rows[f"{nodes} nodes"] = json.loads(done.stdout)
    report.keep("head_scale", rows, args.keep)


if __name__ == "__main__":
    main()
