#!/usr/bin/env python3
"""Actor calls over TLS between two nodes of this machine (--force-tcp): latency and rate, as JSON.

Run by call_path.py, which shows the rows. A head and two workers are started in a directory of
their own and stopped at the end; caller and actor are actors, one on either node, pinned like the
other cases.
"""

import json
import os
import subprocess
import sys
import tempfile
import time


class Callee:
    """The called actor."""

    def pin(self, cpu, spin):
        from troupe import _native

        os.sched_setaffinity(0, {cpu})
        _native._set_spinning(spin)

    def f(self):
        return b"ok"

    def inc(self, n=[0]):  # noqa: B006  # one for all calls
        n[0] += 1
        return n[0]


class Caller(Callee):
    """The calling actor; it measures the channel itself, as in call_path.py."""

    def sync(self, callee, runs, calls):
        from troupe import _native, get

        get(callee.f.remote())
        call, take, clock = callee._link._channel.call, _native.get, time.perf_counter_ns
        for _ in range(calls // 4):
            take(call("f"))
        results = []
        for _ in range(runs):
            took = [0] * calls
            for i in range(calls):
                t = clock()
                take(call("f"))
                took[i] = clock() - t
            took.sort()
            results.append((took[calls // 2] / 1e3, took[calls * 99 // 100] / 1e3))
        return results

    def pipelined(self, callee, runs, n):
        from troupe import _native, get

        get(callee.f.remote())
        call = callee._link._channel.call
        rates = []
        for _ in range(runs + 1):
            t = time.perf_counter()
            values = _native.get([call("inc") for _ in range(n)])
            rates.append(n / (time.perf_counter() - t))
            assert values == list(range(values[0], values[0] + n)), "results are not distinct"
        return rates[1:]


def command(*args):
    done = subprocess.run([sys.executable, "-m", "troupe", *args], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"troupe {' '.join(args)} failed\n{done.stderr}")
    return done.stdout


def measure(runs, calls, pipelined):
    import cloudpickle

    import troupe
    from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    head = json.loads(command("start", "--head", "--no-worker", "--port", "0", "--json"))
    token = os.path.join(os.environ["TROUPE_HOME"], "token")
    with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
        f.write(command("token", "create"))
    for name in ("a", "b"):
        command(
            "start",
            "--address",
            head["address"],
            "--token-file",
            token,
            "--node-name",
            name,
            "--num-cpus",
            "1",
            "--force-tcp",
        )
    troupe.init(head["address"])
    nodes = {node["NodeName"]: node["NodeID"] for node in troupe.nodes()}
    caller, callee = (
        troupe.remote(cls).options(scheduling_strategy=On(nodes[name], soft=False)).remote()
        for name, cls in (("a", Caller), ("b", Callee))
    )
    cpus = sorted(os.sched_getaffinity(0))
    placements = [("one CPU, blocking", cpus[0], cpus[0], False)]
    if len(cpus) > 1:
        placements.append(("two CPUs, polling", cpus[0], cpus[1], True))
    rows = {}
    for name, one, other, spin in placements:
        troupe.get([caller.pin.remote(one, spin), callee.pin.remote(other, spin)])
        rows[f"sync f() over TLS, {name}"] = troupe.get(caller.sync.remote(callee, runs, calls))
        rows[f"async over TLS, {pipelined}, {name}"] = troupe.get(
            caller.pipelined.remote(callee, runs, pipelined)
        )
    troupe.shutdown()
    return rows


def main():
    runs, calls, pipelined = (int(each) for each in sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="trp-") as home:
        os.environ.update(TROUPE_HOME=home, XDG_RUNTIME_DIR=home)
        try:
            rows = measure(runs, calls, pipelined)
        finally:
            subprocess.run([sys.executable, "-m", "troupe", "stop", "--all"], capture_output=True)
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
