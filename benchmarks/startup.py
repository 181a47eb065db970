"""Start and stop: a cluster, the first actor, an actor from the zygote, the way back from a driver.

With --ray PYTHON (an interpreter that has Ray 2.60) the same is measured for Ray in the same run.

    python benchmarks/startup.py [--rounds 5] [--ray /path/to/python] [--keep]
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from contender import options_of, start_head, troupe_command  # noqa: E402
from report import keep, settle, summary  # noqa: E402

RAY_SCRIPT = """
import json, time
begin = time.perf_counter()
import ray
ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
@ray.remote
class Echo:
    def ping(self): return 1
a = Echo.remote(); ray.get(a.ping.remote())
first = time.perf_counter() - begin
spawn = []
for _ in range(5):
    t = time.perf_counter(); b = Echo.remote(); ray.get(b.ping.remote()); spawn.append(time.perf_counter() - t)
t = time.perf_counter(); ray.shutdown()
print(json.dumps({"first": first, "spawn": spawn, "shutdown": time.perf_counter() - t}))
"""


class Echo:
    """The smallest actor."""

    def ping(self) -> int:
        return 1


def cluster_up() -> tuple[float, float]:
    """(seconds until a head and two workers that joined by address are ready, seconds to stop
    them)."""
    with tempfile.TemporaryDirectory(prefix="troupe-bench-") as home:
        begin = time.perf_counter()
        address, token = start_head(home, "--no-worker")
        for name in ("a", "b"):
            troupe_command(
                home,
                "start",
                "--address",
                address,
                "--token-file",
                token,
                "--num-cpus",
                "1",
                "--node-name",
                name,
            )
        up = time.perf_counter() - begin
        begin = time.perf_counter()
        troupe_command(home, "stop", "--all")
        return up, time.perf_counter() - begin


COLD_SCRIPT = """
import json, time
begin = time.perf_counter()
import troupe
from startup import Echo
troupe.init(num_cpus=4, log_to_driver=False)
a = troupe.remote(Echo).remote(); troupe.get(a.ping.remote())
first = time.perf_counter() - begin
begin = time.perf_counter(); troupe.shutdown()
print(json.dumps({"first": first, "shutdown": time.perf_counter() - begin}))
"""


def cold_init() -> dict:
    env = {
        **os.environ,
        "PYTHONPATH": f"{pathlib.Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}",
    }
    done = subprocess.run(
        [sys.executable, "-c", COLD_SCRIPT], env=env, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.strip().split("\n")[-1])


def warm_spawn(rounds: int) -> list[float]:
    """Actors forked from a zygote that has torch loaded, creation to first answer."""
    import troupe
    from troupe.launch import distributed

    with troupe.init(num_cpus=64, log_to_driver=False):
        distributed(processes=1, remote=True)(
            lambda: None
        ).distributed()  # the zygote is up after it
        settle(3.0)  # and has compacted its memory: this is about a cluster that is warm
        actor_class, taken = troupe.remote(Echo), []
        for _ in range(rounds):
            begin = time.perf_counter()
            actor = actor_class.remote()
            troupe.get(actor.ping.remote())
            taken.append(time.perf_counter() - begin)
            troupe.kill(actor)
        return taken


def driver_return(rounds: int) -> list[float]:
    """From the driver's return on rank 0 to the caller holding the result, durable marker
    included."""
    import troupe
    from troupe.launch import ray_launch

    def driver() -> float:
        import time as clock

        return clock.clock_gettime(clock.CLOCK_MONOTONIC)

    with troupe.init(num_cpus=4, log_to_driver=False):
        launch, taken = ray_launch(processes=1, remote=True)(driver), []
        for _ in range(rounds):
            returned = launch.distributed()[0]
            taken.append(time.clock_gettime(time.CLOCK_MONOTONIC) - returned)
        return taken


def ray_figures(python: str) -> dict:
    done = subprocess.run([python, "-c", RAY_SCRIPT], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.strip().split("\n")[-1])


def main() -> None:
    options = options_of(__doc__).parse_args()
    clusters = [cluster_up() for _ in range(options.rounds)]
    cold = [cold_init() for _ in range(options.rounds)]
    rows = {
        "cluster up: head and two workers": {"troupe": summary([up for up, _ in clusters])},
        "cluster stop": {"troupe": summary([down for _, down in clusters])},
        "init() to the first actor's answer, cold": {"troupe": summary([c["first"] for c in cold])},
        "shutdown()": {"troupe": summary([c["shutdown"] for c in cold])},
        "actor from the zygote to its first answer": {
            "troupe": summary(warm_spawn(10 * options.rounds))
        },
        "driver's return to the caller": {"troupe": summary(driver_return(4 * options.rounds))},
    }
    if options.ray:
        ray = [ray_figures(options.ray) for _ in range(options.rounds)]
        pairs = {
            "init() to the first actor's answer, cold": [r["first"] for r in ray],
            "shutdown()": [r["shutdown"] for r in ray],
            "actor from the zygote to its first answer": [t for r in ray for t in r["spawn"]],
        }
        for name, taken in pairs.items():
            rows[name]["ray"] = summary(taken)
            rows[name]["times_faster"] = round(
                rows[name]["ray"]["median_ms"] / rows[name]["troupe"]["median_ms"], 1
            )
    keep("startup", rows, options.keep)


if __name__ == "__main__":
    main()
