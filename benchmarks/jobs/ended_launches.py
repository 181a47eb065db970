"""Memory and start of a head whose launches are over, by how many there have been.

Launches that wait for nodes are submitted to a real head without any, and cancelled, by several
clients at once. Measured at each count: the head's memory, its files' sizes, the answer to
`GetLaunch` of the first launch and to a page of 500; after the last, the time of a start of that
head, killed before.

    python benchmarks/jobs/ended_launches.py --launches 1000000 [--keep]
"""

import argparse
import pathlib
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from report import keep, settle  # noqa: E402

from troupe._base.bridge import native  # noqa: E402
from troupe._base.identity import new_id  # noqa: E402
from troupe._cluster import executables  # noqa: E402

CLIENTS = 16
REST_S = 2


def boot(state: pathlib.Path) -> tuple[executables.Started, float]:
    """Start the head, and return it with the seconds until it is ready."""
    began = time.monotonic()
    started = executables.start(
        "troupe-head", [f"--state-dir={state}"], log=state.parent / "head.log"
    )
    return started, time.monotonic() - began


def end_launches(socket: str, count: int) -> list[str]:
    """Submit and cancel `count` launches, and return their ids."""
    client = native.ControlClient.connect_unix(socket)
    ids = []
    for _ in range(count):
        spec = {"mode": "command", "ranks": 1, "attempts_max": 1, "name": "waits for nodes"}
        launch = client.request("SubmitLaunch", {"spec": spec, "request": new_id()})[1]["launch"]
        client.request("CancelLaunch", {"launch": launch, "hard": True, "reason": "it is over"})
        ids.append(launch)
    client.close()
    return ids


def rss_mib(pid: int) -> float:
    """Return the resident memory of a process."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} has ended")


def median_ms(act) -> float:
    """Return the median of 20 times that `act` takes."""
    times = []
    for _ in range(20):
        began = time.monotonic()
        act()
        times.append((time.monotonic() - began) * 1e3)
    return round(statistics.median(times), 2)


def sample(head: executables.Started, state: pathlib.Path, first: str) -> dict:
    """Return the figures of this moment."""
    client = native.ControlClient.connect_unix(str(head.ready["socket"]))
    found = {
        "rss_mib": round(rss_mib(head.process.pid), 1),
        "files_mib": {
            each.name: round(each.stat().st_size / 2**20, 1)
            for each in sorted((state / "head").iterdir())
        },
        "get_first_ms": median_ms(lambda: client.request("GetLaunch", {"launch": first})),
        "page_of_500_ms": median_ms(lambda: client.request("ListLaunches", {"limit": 500})),
    }
    client.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launches", type=int, default=100_000)
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        state = pathlib.Path(folder) / "state"
        head, first_start_s = boot(state)
        rows: dict[str, dict] = {"start, empty": {"seconds": round(first_start_s, 3)}}
        first, done, began = "", 0, time.monotonic()
        for count in (options.launches // 10, options.launches):
            each = (count - done) // CLIENTS
            results: list[list[str]] = []
            threads = [
                threading.Thread(
                    target=lambda: results.append(end_launches(head.ready["socket"], each))
                )
                for _ in range(CLIENTS)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            done += each * CLIENTS
            first = first or results[0][0]
            settle(REST_S)
            rows[f"{done} launches"] = sample(head, state, first)
            rows[f"{done} launches"]["seconds"] = round(time.monotonic() - began, 1)
        head.process.kill()
        head.process.wait()
        head, start_s = boot(state)
        rows[f"start after {done}"] = {"seconds": round(start_s, 3)} | sample(head, state, first)
        executables.end([head.process])
    keep("ended_launches", rows, options.keep)


if __name__ == "__main__":
    main()
