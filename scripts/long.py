"""Suites that take longer than a run of continuous integration has for them: `./test long NAME`.

How it ended is kept in tests/long/NAME.json.

scripts/long.py           the names, what each does, and how its last run ended
scripts/long.py NAME      runs it (`./test long NAME` builds first); exit code as its command's
"""

from __future__ import annotations

import collections
import datetime
import hashlib
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable

import builds

ROOT = builds.ROOT
# Files that a run reads, where it reads no others: its result holds until one of them is changed.
READS = {
    "models": (
        "head/model/*",
        "placement/model/*",
        "runtime/store/model/*",
        "scripts/spin_verdict.sh",
    )
}
KEPT = ROOT / "tests" / "long"
LINES_KEPT = 60
PYTHON = ".venv/bin/python"
NAMES = {
    "fuzz": ("each fuzz target for ten minutes", "scripts/fuzz 600"),
    "simulator": (
        "a hundred thousand seeds of the simulator",
        "build/dev/bin/troupe_sim --seeds 100000 --first 1 --once",
    ),
    "kill_sweep": (
        "a head killed at a thousand numbered places",
        f"{PYTHON} tests/e2e/kill_sweep.py --kills 1000",
    ),
    "sweep_kills": (
        "sweeps whose engine, trials, nodes and head are killed, ten rounds",
        f"{PYTHON} tests/sweeps/sweep_kills.py --rounds 10",
    ),
    "stress": (
        "tests through real processes, five times beside a busy loop on each core",
        "scripts/stress tests/e2e 5",
    ),
    "stress_actors": ("the same of what actors are made of", "scripts/stress tests/actors 5"),
    "frameworks": (
        "each framework's program in each way to run it, beside torchrun",
        ".venv-frameworks/bin/python -m pytest -v -rs -o addopts=--strict-markers tests/frameworks",
    ),
    "tensorflow": (
        "trainings of TensorFlow as command jobs: MultiWorkerMirroredStrategy, a parameter server, "
        "a killed worker",
        ".venv-tensorflow/bin/python -m pytest -v -rs -o addopts=--strict-markers "
        "tests/frameworks/tensorflow",
    ),
    "doors": (
        "what of the front doors takes long and is shown by another test too: other distributions, "
        "hosts, guides, losses",
        f"{PYTHON} -m pytest -v -rs -o addopts=--strict-markers -m long tests/doors tests/guides "
        "--ignore=tests/doors/real_ray",
    ),
    "real_ray": (
        "real Ray clusters in launches: each process of theirs killed, two at once",
        ".venv-frameworks/bin/python -m pytest -v -rs -o addopts=--strict-markers "
        "tests/doors/real_ray",
    ),
    "core": (
        "what of actors, tasks, launches, jobs and HTTP takes long and is shown by another test "
        "too, and the boards of figures through a real Prometheus",
        f"{PYTHON} -m pytest -v -rs -o addopts=--strict-markers -m long tests/e2e tests/jobs "
        "tests/http_api",
    ),
    "cpp": (
        "the training in C++, built against torch, on two hosts, with one of its actors killed",
        f"{PYTHON} -m pytest -v -rs -o addopts=--strict-markers -m long tests/cpp",
    ),
    "models": (
        "the Spin models of the protocols, and each mutant of theirs",
        "ctest --preset dev -L model -j 2 --output-on-failure",
    ),
    "clang": (
        "the C++ tests, built by the other compiler",
        ".ci/run --inside clang",
    ),
    "upgrade": (
        "a head and workers of the previous commit's wheel, upgraded one after the other",
        f"{PYTHON} scripts/upgrade.py",
    ),
    "failure": (
        "how launches end, each way 40 times, beside torchrun",
        f"{PYTHON} benchmarks/failure.py --blame 40 --ends 200",
    ),
}


def digests(patterns: Iterable[str]) -> dict[str, str]:
    """SHA-256 of each file that one of these names, by its path from the root."""
    paths = sorted(path for pattern in patterns for path in ROOT.glob(pattern))
    return {
        str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths
    }


def record(
    name: str, command: str, status: int, seconds: float, last: list[str]
) -> dict[str, object]:
    """Return the stored record of a run."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    return {
        "name": name,
        "command": command,
        "commit": commit.stdout.strip(),
        "date": datetime.date.today().isoformat(),
        "cpus": os.cpu_count(),
        "minutes": round(seconds / 60, 1),
        "status": status,
        "passed": status == 0,
        "reads": digests(READS.get(name, ())),
        "last_lines": last,
    }


def listed() -> str:
    """Return a line for each suite."""
    lines = []
    for name, (what, _) in NAMES.items():
        kept = KEPT / f"{name}.json"
        ended = "never kept"
        if kept.exists():
            last = json.loads(kept.read_text())
            ended = (
                f"{'passed' if last['passed'] else 'FAILED'} at {last['commit']} on "
                f"{last['date']}, {last['minutes']} minutes"
            )
        lines.append(f"{name:14} {what}; {ended}")
    return "\n".join(lines)


def run(name: str) -> int:
    """Runs it, its output shown; keeps how it ended."""
    command = NAMES[name][1]
    began = time.monotonic()
    last: collections.deque[str] = collections.deque(maxlen=LINES_KEPT)
    with subprocess.Popen(
        shlex.split(command),
        cwd=ROOT,
        env=builds.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            print(line, end="", flush=True)
            last.append(line.rstrip("\n").replace(str(ROOT), "."))
    KEPT.mkdir(exist_ok=True)
    kept = KEPT / f"{name}.json"
    kept.write_text(
        json.dumps(
            record(name, command, child.returncode, time.monotonic() - began, list(last)), indent=1
        )
        + "\n"
    )
    print(f"kept: {kept}")
    return child.returncode


def main() -> int:
    names = sys.argv[1:]
    if not names:
        print(listed())
        return 0
    if len(names) > 1 or names[0] not in NAMES:
        print(f"usage: ./test long [{' | '.join(NAMES)}]", file=sys.stderr)
        return 2
    return run(names[0])


if __name__ == "__main__":
    sys.exit(main())
