"""Costs of an idle cluster: memory of head and worker, processor time; the head's memory with many
actors.

A head and a worker of their own, a driver that is connected and has one actor. For the directory
the node's one CPU is taken and 10,000 actors wait for it: each is known to the head as one that
runs is, with its class and its options.

    python benchmarks/footprint.py [--seconds 30] [--actors 10000] [--keep]
"""

import argparse
import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from contender import start_head, troupe_command  # noqa: E402
from report import keep  # noqa: E402

import troupe  # noqa: E402
from troupe import state  # noqa: E402


class Actor:
    def f(self) -> None:
        pass


def cluster_processes(home: str) -> dict[int, str]:
    """Return the processes of this TROUPE_HOME, with the program's name."""
    found = {}
    for entry in os.listdir("/proc"):
        try:
            line = (
                pathlib.Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
                if entry.isdigit()
                else [b""]
            )
            environment = pathlib.Path(f"/proc/{entry}/environ").read_bytes() if line[0] else b""
        except OSError:
            continue
        if (
            int(entry if entry.isdigit() else 0) != os.getpid()
            and f"TROUPE_HOME={home}".encode() in environment
        ):
            found[int(entry)] = os.path.basename(line[0].decode(errors="replace"))
    return found


def memory_mib(pid: int) -> float:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return round(int(status.split("VmRSS:")[1].split()[0]) / 1024, 1)


def processor_s(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(home: str, address: str, seconds: float, actors: int) -> dict[str, dict]:
    troupe.init(address)
    first = troupe.remote(num_cpus=1)(Actor).remote()
    troupe.get(first.f.remote())
    time.sleep(10)  # lint-ok: what starting left to do is not what idling costs
    programs = cluster_processes(home)
    head = next(pid for pid, name in programs.items() if name == "troupe-head")
    worker = next(pid for pid, name in programs.items() if name == "troupe-worker")
    idle = {
        "head_mib": memory_mib(head),
        "worker_mib": memory_mib(worker),
        "processes": len(programs),
    }
    before = {pid: processor_s(pid) for pid in [*programs, os.getpid()]}
    time.sleep(seconds)  # lint-ok: the time that is measured
    for name, pids in (("head", [head]), ("worker", [worker]), ("all", [*programs, os.getpid()])):
        idle[f"{name}_percent_of_a_cpu"] = round(
            sum(processor_s(pid) - before[pid] for pid in pids) / seconds * 100, 2
        )
    waiting = [troupe.remote(num_cpus=1)(Actor).remote() for _ in range(actors)]
    known = sum(each["class_name"] == "Actor" for each in state.list_actors())
    directory = {"head_mib_before": idle["head_mib"], "head_mib": memory_mib(head), "actors": known}
    del waiting
    troupe.shutdown()
    return {"idle": idle, f"a directory of {actors} actors": directory}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--actors", type=int, default=10_000)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="troupe-bench-") as home:
        os.environ["TROUPE_HOME"] = home
        try:
            address, _ = start_head(home, "--num-cpus", "1")
            rows = measure(home, address, options.seconds, options.actors)
        finally:
            troupe_command(home, "stop", "--all")
    keep("footprint", rows, options.keep)


if __name__ == "__main__":
    main()
