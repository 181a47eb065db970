"""An hour of a bad network between a head and its nodes: does anybody take a slow node for a lost
one?

A head and four nodes on hosts of their own, everything between which passes through a proxy
(tests/e2e/fault_proxy.py): latency, jitter, 10 % of the chunks lost, and one host or another
pausing for 2 s every 8 s. All the while a gang with a rank on every node runs, launches of four
ranks come and go, and actors on all nodes call each other. Nothing may be lost: no node, no launch,
no call. The driver is on the head's host.

    python benchmarks/false_alarm.py --minutes 60 [--seed 1] [--keep]

Needs root (network namespaces). How late this program's own timers were says what the machine
added.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

sys.path[:0] = [
    str(pathlib.Path(__file__).parent),
    str(pathlib.Path(__file__).parents[1] / "tests" / "e2e"),
]
from fault_proxy import PORT, FaultyHosts, Weather, enter  # noqa: E402
from report import keep  # noqa: E402

NODES = ("a", "b", "c", "d")
WEATHER = Weather(latency_ms=5, jitter_ms=10, loss=0.1, pause_s=2.0, pause_every_s=4.0)
GET_TIMEOUT_S = 120.0
LOOK_EVERY_S = 0.1
LAUNCH_EVERY_S = 5.0
TROUPE = [sys.executable, "-m", "troupe"]


class Peer:
    """An actor that counts what it was asked, and asks others."""

    def __init__(self) -> None:
        self.count = 0

    def add(self) -> int:
        self.count += 1
        return self.count

    def ask(self, other: object) -> int:
        import troupe

        return troupe.get(other.add.remote(), timeout=120)


def resident_mib() -> float:
    """The memory of this process."""
    return (
        int(pathlib.Path("/proc/self/statm").read_text().split()[1])
        * os.sysconf("SC_PAGE_SIZE")
        / 2**20
    )


def quantiles_ms(seconds: list[float]) -> dict:
    ordered = sorted(seconds)
    if not ordered:
        return {}
    return {
        name: round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1)
        for name, share in (
            ("p50", 0.5),
            ("p90", 0.9),
            ("p99", 0.99),
            ("p999", 0.999),
            ("most", 1.0),
        )
    }


class Load:
    """The load while the weather is bad; a thread for each part, until `done`."""

    def __init__(self, folder: pathlib.Path) -> None:
        import troupe
        from troupe.launch import distributed
        from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

        self.done = threading.Event()
        self.errors: list[str] = []  # each ends its part, but for a failed launch
        self.call_s: list[float] = []
        self.launch_s: list[float] = []
        self.late_s: list[float] = []
        self.longest_silence_s = 0.0
        self.suspects = dict.fromkeys(NODES, 0)
        self.lost = dict.fromkeys(NODES, 0)
        self.load_1min: list[float] = []
        self.driver_mib = self.driver_mib_before = 0.0
        ids = {node["NodeName"]: node["NodeID"] for node in troupe.nodes()}
        self._incarnations = {node["node"]: node["incarnation"] for node in self._nodes()}
        make = troupe.remote(Peer)
        askers, asked = (
            [make.options(scheduling_strategy=On(ids[name], soft=False)).remote() for name in NODES]
            for _ in range(2)
        )  # two on each node: one that waits for an answer serves nobody
        self._pairs = [(asker, asked[i - 1]) for i, asker in enumerate(askers)]
        assert troupe.get(
            [here.ask.remote(there) for here, there in self._pairs], timeout=GET_TIMEOUT_S
        ) == [1] * len(NODES)
        self._pipes = [str(folder / f"rank-{rank}") for rank in range(len(NODES))]
        for pipe in self._pipes:
            os.mkfifo(pipe)

        def rank(pipes: list[str]) -> str:
            with open(
                pipes[int(os.environ["RANK"])]
            ) as told:  # opens when the driver does, at the end
                return told.read()

        self._gang = distributed(processes=len(NODES), remote=True, strategy="STRICT_SPREAD")(
            rank
        ).submit(self._pipes)
        self._gang.wait_state(lambda info: info["state"] == "running", 60)
        parts = [self._launch, self._look, self._time]
        self._threads = [
            threading.Thread(target=self._run, args=(part,), daemon=True) for part in parts
        ]
        self._threads += [
            threading.Thread(target=self._run, args=(self._call, i), daemon=True)
            for i in range(len(NODES))
        ]
        self.driver_mib_before = resident_mib()
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _nodes() -> list[dict]:
        from troupe._cluster import session

        return session.current().request("GetStatus", {})[1]["nodes"]

    def _run(self, part, *args) -> None:
        try:
            part(*args)
        except BaseException as error:
            self.errors.append(f"{part.__name__} gave up: {error!r}")

    def _call(self, number: int) -> None:
        """Driver -> one actor -> the next one; each call must have run exactly once."""
        import troupe

        here, there = self._pairs[number]
        expected = 1
        while not self.done.is_set():
            began = time.monotonic()
            try:
                expected += 1
                if (count := troupe.get(here.ask.remote(there), timeout=GET_TIMEOUT_S)) != expected:
                    self.errors.append(
                        f"the call to {NODES[number - 1]} ran as number {count}, not {expected}"
                    )
                    expected = count
            except Exception as error:
                self.errors.append(f"a call from {NODES[number]} failed: {error!r}")
                return
            self.call_s.append(time.monotonic() - began)

    def _launch(self) -> None:
        from troupe.launch import distributed

        number = 0
        while not self.done.wait(LAUNCH_EVERY_S):
            number += 1
            began = time.monotonic()
            try:
                handle = distributed(processes=len(NODES), remote=True, strategy="STRICT_SPREAD")(
                    abs
                ).submit(-number)
                if (results := handle.result(GET_TIMEOUT_S)) != [number] * len(NODES):
                    self.errors.append(f"launch {number} gave {results}")
            except Exception as error:
                self.errors.append(f"launch {number} failed: {error!r}")
            self.launch_s.append(time.monotonic() - began)

    def _look(self) -> None:
        """Changes of the nodes' states, at the head."""
        before = dict.fromkeys(NODES, "alive")
        while not self.done.wait(LOOK_EVERY_S):
            for node in self._nodes():
                name, state = node["name"], node["state"]
                self.longest_silence_s = max(self.longest_silence_s, node["heard_ms"] / 1000)
                if state != before[name] and state == "suspect":
                    self.suspects[name] += 1
                if (
                    state != before[name]
                    and state == "dead"
                    or node["incarnation"] != self._incarnations[node["node"]]
                ):
                    self.lost[name] += 1
                    self._incarnations[node["node"]] = node["incarnation"]
                before[name] = state

    def _time(self) -> None:
        """How late a timer of 50 ms is: what the machine did to all of this."""
        while not self.done.is_set():
            began = time.monotonic()
            self.done.wait(0.05)
            self.late_s.append(max(0.0, time.monotonic() - began - 0.05))
            self.load_1min.append(os.getloadavg()[0])
            self.driver_mib = max(self.driver_mib, resident_mib())

    def end(self) -> dict:
        """Ends it, in calm weather; what was seen."""
        self.done.set()
        for thread in self._threads:
            thread.join(2 * GET_TIMEOUT_S)
            assert not thread.is_alive(), "a call or launch hangs"
        status = self._gang.status()
        if status["epoch"] == 1 and status["state"] == "running":
            for pipe in self._pipes:
                with open(pipe, "w") as out:
                    out.write("told")
        else:
            self.errors.append(
                f"the gang is {status['state']} in epoch {status['epoch']}: {status['cause']}"
            )
        try:
            assert self._gang.result(GET_TIMEOUT_S) == ["told"] * len(NODES)
        except Exception as error:
            self.errors.append(f"the gang failed: {error!r}")
        return {
            "suspects": sum(self.suspects.values()),
            "longest_silence_s": round(self.longest_silence_s, 2),
            "nodes_lost": sum(self.lost.values()),
            "errors": len(self.errors),
            "first_errors": self.errors[:10],
            "calls": len(self.call_s),
            "call_ms": quantiles_ms(self.call_s),
            "launches": len(self.launch_s),
            "launch_ms": quantiles_ms(self.launch_s),
            "driver_mib": {"before": round(self.driver_mib_before), "most": round(self.driver_mib)},
        }


def command(hosts: FaultyHosts, where: str, *args: str) -> str:
    return hosts[where].run([*TROUPE, *args]).stdout


def run(seconds: float, seed: int, weather: Weather, folder: pathlib.Path) -> dict:
    import cloudpickle

    import troupe

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with FaultyHosts("head", *NODES, seed=seed) as hosts:
        try:
            started = json.loads(
                command(
                    hosts,
                    "head",
                    "start",
                    "--head",
                    "--no-worker",
                    "--listen",
                    hosts["head"].address,
                    "--port",
                    str(PORT),
                    "--json",
                )
            )
            token = folder / "token"
            token.touch(mode=0o600)
            token.write_text(command(hosts, "head", "token", "create"))
            for name in NODES:
                command(
                    hosts,
                    name,
                    "start",
                    "--address",
                    started["address"],
                    "--token-file",
                    str(token),
                    "--node-name",
                    name,
                    "--num-cpus",
                    "4",
                    "--force-tcp",
                    "--listen",
                    f"{hosts[name].address}:{PORT}",
                )
            enter(hosts["head"].namespace)
            troupe.init(started["address"])
            load = Load(folder)
            hosts.weather(weather)
            began = time.monotonic()
            load.done.wait(seconds)
            took = time.monotonic() - began
            network = hosts.figures()
            hosts.weather(Weather())
            seen = load.end()
            troupe.shutdown()
        finally:
            subprocess.run([*TROUPE, "stop", "--all"], capture_output=True)
    return {
        "seen": {"seconds": round(took, 1), "nodes": len(NODES), **seen},
        "network": {**dataclasses.asdict(weather), **network},
        "machine": {
            "timer_late_ms": quantiles_ms(load.late_s),
            "load": {
                "mean": round(sum(load.load_1min) / len(load.load_1min), 2),
                "most": round(max(load.load_1min), 2),
            },
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--mild",
        action="store_true",
        help="more and shorter pauses, no chunk lost twice: no silence comes near the lease",
    )
    parser.add_argument(
        "--keep", action="store_true", help="write benchmarks/results/false_alarm.json"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trp-") as name:
        os.environ.update(TROUPE_HOME=name, XDG_RUNTIME_DIR=name)
        weather = (
            dataclasses.replace(WEATHER, repeats_max=1, pause_s=1.5, pause_every_s=1.0)
            if options.mild
            else WEATHER
        )
        rows = run(options.minutes * 60, options.seed, weather, pathlib.Path(name))
    keep("false_alarm", rows, options.keep)
    if rows["seen"]["nodes_lost"] or rows["seen"]["errors"]:
        raise SystemExit("there was a false alarm, or something was lost with it")


if __name__ == "__main__":
    main()
