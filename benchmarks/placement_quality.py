"""How well jobs are placed: generated traces and small clusters, against others
(placement_quality.cc tells how).

python benchmarks/placement_quality.py --program build/release/bin/placement_quality --keep
"""

import argparse
import json
import subprocess

import report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/release/bin/placement_quality")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    done = subprocess.run(
        [args.program, f"--jobs={args.jobs}"], capture_output=True, text=True, check=True
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    report.keep("placement_quality", {row.pop("row"): row for row in rows}, args.keep)


if __name__ == "__main__":
    main()
