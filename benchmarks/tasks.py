"""Remote functions: one after the other, and many at once, as `ray microbenchmark` does it.

With --ray PYTHON (an interpreter that has Ray 2.60) Ray runs the same program, alternately, and the
ratio is printed.

    python benchmarks/tasks.py [--rounds 5] [--ray /path/to/python] [--keep]
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from report import keep, settle  # noqa: E402

PROGRAM = """
import json, sys, time
{start}

@ray.remote
def small_value():
    return b"ok"

def rate(run, count, at_least_s=2.0):
    run()
    begin, done = time.perf_counter(), 0
    while time.perf_counter() - begin < at_least_s:
        run()
        done += count
    return done / (time.perf_counter() - begin)

def one():
    ray.get(small_value.remote())

def many():
    ray.get([small_value.remote() for _ in range({batch})])

begin = time.perf_counter()
one()
first = time.perf_counter() - begin
many()
print(json.dumps({{"first_ms": first * 1e3, "sync": rate(one, 1), "async": rate(many, {batch})}}))
ray.shutdown()
"""
STARTS = {
    "troupe": "import troupe as ray\nray.init(num_cpus=2)",
    "ray": "import ray\nray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)",
}
BATCHES = {"troupe": 10_000, "ray": 1_000}  # Ray's own; ten times as many take it no less time each


def measure(which: str, python: str) -> dict[str, float]:
    """Run the program once in a process of its own and return its times."""
    environment = dict(os.environ)
    if which == "ray":
        environment.pop("PYTHONPATH", None)
    program = PROGRAM.format(start=STARTS[which], batch=BATCHES[which])
    done = subprocess.run(
        [python, "-c", program], env=environment, capture_output=True, text=True, timeout=300
    )
    if done.returncode != 0:
        sys.exit(f"{which}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ray", help="a Python that has Ray 2.60")
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    contenders = {"troupe": sys.executable, **({"ray": arguments.ray} if arguments.ray else {})}
    measured: dict[str, list[dict[str, float]]] = {which: [] for which in contenders}
    for _ in range(arguments.rounds):
        for which, python in contenders.items():
            measured[which].append(measure(which, python))
            settle()
    rows = {}
    for what, unit in (
        ("sync", "tasks one after the other, per s"),
        ("async", "tasks, many at once, per s"),
        ("first_ms", "the first task, ms"),
    ):
        row = {
            which: round(statistics.median(each[what] for each in found), 1)
            for which, found in measured.items()
        }
        if "ray" in row:
            row["times_ray"] = round(
                row["ray"] / row["troupe"] if what == "first_ms" else row["troupe"] / row["ray"], 1
            )
        rows[unit] = row
    keep("tasks", rows, arguments.keep)


if __name__ == "__main__":
    main()
