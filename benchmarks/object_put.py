"""Puts of large values into recycled shared memory, beside plain copies of the same size.

Usage: python benchmarks/object_put.py [--rounds N] [--keep]; build the target object_put of the
release preset first. The program does all ways alternately in one process; GB/s are 1e9 bytes a
second.
"""

import argparse
import json
import os
import pathlib
import subprocess

import report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--clients", type=int, default=2, help="processes that put at once, in the last rows"
    )
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    folder = (
        os.environ.get("TROUPE_BIN_DIR")
        or pathlib.Path(__file__).resolve().parent.parent / "build/release/bin"
    )
    command = [str(pathlib.Path(folder) / "object_put"), "--rounds", str(args.rounds)]
    rows = {}
    for clients in (1, args.clients):
        report.settle()
        running = [
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(clients)
        ]
        outputs = [process.communicate()[0] for process in running]
        if any(process.returncode for process in running):
            raise SystemExit("object_put failed")
        for lines in zip(*(output.splitlines() for output in outputs)):
            parts = [json.loads(line) for line in lines]
            name = f"{parts[0]['way']}, {parts[0]['mb']} MB" + (
                f", {clients} clients" if clients > 1 else ""
            )
            rows[name] = row_of(parts)
    for mb in (8, 100, 800):
        put = rows[f"put, {mb} MB"]
        put["of_rep_movsb"] = round(
            put["median_gb_s"] / rows[f"rep movsb, {mb} MB"]["median_gb_s"], 2
        )
        put["of_memcpy"] = round(put["median_gb_s"] / rows[f"memcpy, {mb} MB"]["median_gb_s"], 2)
    report.keep("object_put", rows, args.keep)


def row_of(parts: list[dict]) -> dict:
    if parts[0]["way"].startswith("get"):
        return {
            "median_us": round(max(p["median_s"] for p in parts) * 1e6, 2),
            "rounds": parts[0]["rounds"],
        }
    size = parts[0]["mb"] / 1e3
    return {
        "median_gb_s": round(sum(size / p["median_s"] for p in parts), 1),
        "best_gb_s": round(sum(size / p["best_s"] for p in parts), 1),
        "median_ms": round(max(p["median_s"] for p in parts) * 1e3, 3),
        "rounds": parts[0]["rounds"],
    }


if __name__ == "__main__":
    main()
