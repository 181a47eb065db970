"""Placement's pure decisions: cost against the size of the cluster, 100 to 100,000 nodes of 8 GPUs.

Runs placement_plans (what it measures is told at its top) for each size, prints and keeps the
figures; --plot draws them (with matplotlib).

    python benchmarks/placement.py --program build/release/bin/placement_plans --keep --plot benchmarks/results/placement.svg
"""

import argparse
import collections
import json
import pathlib
import subprocess

import report


def plot(rows: dict[str, dict], file: pathlib.Path) -> None:
    """The median of each kind of request over the number of nodes."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "placement"  # names must not change between drawings
    from matplotlib import pyplot

    lines: dict[str, list[tuple[int, float]]] = collections.defaultdict(list)
    for name, row in rows.items():
        kind, _, nodes = name.rpartition(", ")
        lines[kind.replace(" (some fit)", "")].append((int(nodes.split()[0]), row["median_us"]))
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for kind, points in lines.items():
        axes.plot(*zip(*sorted(points)), marker="o", label=kind)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="nodes of 8 GPUs",
        ylabel="median of one decision, us",
        title="Cost of a placement decision against the size of the cluster",
    )
    axes.grid(True, which="major", alpha=0.3)
    axes.legend()
    figure.savefig(file, bbox_inches="tight", metadata={"Date": None})
    print(f"drawn in {file}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/release/bin/placement_plans")
    parser.add_argument("--nodes", type=int, nargs="*", default=[100, 1000, 10_000, 100_000])
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--plot", type=pathlib.Path, help="an SVG file")
    args = parser.parse_args()
    rows = {}
    for nodes in args.nodes:
        done = subprocess.run(
            [args.program, f"--nodes={nodes}"], capture_output=True, text=True, check=True
        )
        for line in done.stdout.splitlines():
            row = json.loads(line)
            rows[row.pop("row")] = row
    report.keep("placement", rows, args.keep)
    if args.plot:
        plot(rows, args.plot)


if __name__ == "__main__":
    main()
