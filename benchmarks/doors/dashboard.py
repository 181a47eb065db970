"""Pages of `troupe dashboard` with 1,000 nodes and 10,000 actors: from the request to the last
byte, and in a real browser to the end of loading; memory of the process that serves them.

The nodes are those of `head_nodes`, which start nothing, so the actors are on their way for ever.

    python benchmarks/doors/dashboard.py --program build/dev/bin/head_nodes
        [--nodes 1000] [--actors 10000] [--rounds 9] [--keep]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent.parent), str(HERE.parents[2] / "tests/dashboard")]
sys.path.insert(0, str(HERE.parents[2] / "tests"))
PAGES = ("/", "/nodes", "/actors", "/actors?q=measured", "/launches", "/queue", "/events")
LOADED = "return performance.getEntriesByType('navigation')[0].loadEventEnd"


class Measured:
    """An actor of the benchmark."""


@contextlib.contextmanager
def cluster(args: argparse.Namespace, home: Any) -> Iterator[str]:
    """A head with many nodes, and actors of this process; gives its address."""
    import troupe

    started = home.json("start", "--head", "--no-worker", "--port", "0")
    nodes = subprocess.Popen(
        [args.program, f"--nodes={args.nodes}", f"--address=unix:{started['socket']}"],
        stdout=subprocess.PIPE,
    )
    try:
        assert nodes.stdout is not None
        nodes.stdout.readline()
        troupe.init(started["address"], log_to_driver=False)
        cls = troupe.remote(num_cpus=0)(Measured)
        handles = [cls.remote() for _ in range(args.actors)]
        while len(troupe.state.list_actors()) < args.actors:
            threading.Event().wait(0.5)
        yield str(started["address"])
        del handles
    finally:
        nodes.kill()
        nodes.wait()
        troupe.shutdown()


def seconds_of(page: Any, path: str) -> float:
    """Time of a request whose lists are asked for anew."""
    threading.Event().wait(1.1)  # a list is kept for a second
    began = time.perf_counter()
    answer = page.get(path)
    assert answer.status == 200, answer.text
    return time.perf_counter() - began


def in_browser(page: Any, rounds: int) -> dict[str, list[float]]:
    """Times from the beginning of a navigation to the end of loading."""
    from browser import opened

    found: dict[str, list[float]] = {path: [] for path in PAGES}
    base = f"http://{page.host}:{page.port}"
    with opened(60) as window:
        window.open(f"{base}{page.login}")
        (cookie,) = window.driver.get_cookies()
        page.cookie = f"{cookie['name']}={cookie['value']}"
        for _ in range(rounds):
            for path in PAGES:
                window.open(f"{base}{path}")
                found[path].append(window.run(LOADED) / 1e3)
    return found


def resident_mib(pid: int) -> float:
    """Memory of a process."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/dev/bin/head_nodes")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--actors", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    import report
    from e2e_conftest import Home
    from page_client import served

    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="troupe-bench-") as folder:
        os.environ["TROUPE_HOME"] = folder
        home = Home(pathlib.Path(folder), "")
        try:
            with cluster(args, home), served(home) as page:
                browsed = in_browser(page, args.rounds)
                for path in PAGES:
                    times = [seconds_of(page, path) for _ in range(args.rounds)]
                    rows[f"{path}, lists anew"] = report.summary(times)
                    rows[f"{path}, in chromium"] = report.summary(browsed[path])
                rows["memory"] = {"resident_mib": round(resident_mib(page.pid), 1)}
        finally:
            home.run("stop", "--all", ok=False)
    report.keep("dashboard", rows, args.keep)


if __name__ == "__main__":
    main()
