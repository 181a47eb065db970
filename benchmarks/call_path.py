#!/usr/bin/env python3
"""Actor calls on one host and over TLS: latency, rate, and the raw socket's own figures in the same
run.

    cmake --build build/release --target _native call_floor call_native troupe-head troupe-worker
    python benchmarks/call_path.py [--build build/release] [--runs 5] [--json benchmarks/results/x.json]

Placement decides these figures (an idle CPU's wake-up costs more than the call), so every case pins
both processes: on one CPU nobody polls, on two both poll before they block.
"""

import argparse
import asyncio
import importlib.util
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import report

ROOT = pathlib.Path(__file__).resolve().parents[1]


def load(build):
    for file in sorted(pathlib.Path(build).glob("python/troupe/_native*.so")):
        spec = importlib.util.spec_from_file_location("troupe._native", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    sys.exit(f"no troupe._native below {build}: build the target _native first")


class Actor:
    def f(self):
        return b"ok"

    def g(self, i, x=None):
        return b"ok"

    async def later(self):
        return b"ok"

    def inc(self, n=[0]):  # noqa: B006  # one for all calls
        n[0] += 1
        return n[0]


def pin(cpu):
    os.sched_setaffinity(0, {cpu})


def compute():
    while True:
        sum(range(100))


def start(native, directory, cpu, spin, kind="plain", busy=False):
    """An actor process; (pid, path).

    `kind`: how its methods run. `busy`: another of its threads computes in Python.
    """
    path = os.path.join(directory, f"{time.monotonic_ns()}.sock")
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            pin(cpu)
            native._set_spinning(spin)
            server = native.CallServer(path)
            os.write(write, b"x")
            if busy:
                threading.Thread(target=compute, daemon=True).start()
            if kind == "async":
                server.serve_on_loop(asyncio.new_event_loop(), Actor())
            else:
                server.serve(Actor(), 4 if kind == "threaded" else 1)
        finally:
            os._exit(0)
    os.read(read, 1)
    os.close(read)
    os.close(write)
    return pid, path


def stop(pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def in_child(work):
    """Runs `work` in a forked process of its own, so that no case inherits another's threads."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, json.dumps(work()).encode())
        except BaseException as e:
            os.write(write, json.dumps({"error": repr(e)}).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as f:
        result = json.loads(f.read() or '{"error": "killed"}')
    os.waitpid(pid, 0)
    if isinstance(result, dict) and "error" in result:
        sys.exit(f"a case failed: {result['error']}")
    return result


def sync_case(native, path, cpu, spin, runs, calls, method, busy=False):
    def work():
        pin(cpu)
        native._set_spinning(spin)
        if busy:
            threading.Thread(target=compute, daemon=True).start()
        c, get, clock = native.CallChannel(path), native.get, time.perf_counter_ns
        args, kwargs = ((), {}) if method != "g" else ((1,), {"x": "a"})
        for _ in range(calls // 4):
            get(c.call(method, *args, **kwargs))
        results = []
        for _ in range(runs):
            took = [0] * calls
            if method == "f":
                for i in range(calls):
                    t = clock()
                    get(c.call("f"))
                    took[i] = clock() - t
            elif method == "later":
                for i in range(calls):
                    t = clock()
                    get(c.call("later"))
                    took[i] = clock() - t
            else:
                for i in range(calls):
                    t = clock()
                    get(c.call("g", 1, x="a"))
                    took[i] = clock() - t
            took.sort()
            results.append((took[calls // 2] / 1e3, took[calls * 99 // 100] / 1e3))
        return results

    return in_child(work)


def async_case(native, paths, cpu, spin, runs, n, method="inc"):
    def work():
        pin(cpu)
        native._set_spinning(spin)
        channels = [native.CallChannel(p) for p in paths]
        rates = []
        for _ in range(runs + 1):
            t = time.perf_counter()
            if len(channels) == 1:
                c = channels[0]
                refs = [c.call(method) for _ in range(n)]
            else:
                refs = [channels[i % len(channels)].call("f") for i in range(n)]
            values = native.get(refs)
            rates.append(n / (time.perf_counter() - t))
            assert len(values) == n
            if len(channels) == 1 and method == "inc":
                assert values == list(range(values[0], values[0] + n)), "results are not distinct"
        return rates[1:]

    return in_child(work)


def n_by_n(native, directory, n, calls, runs):
    cpus = sorted(os.sched_getaffinity(0))
    actors = [start(native, directory, cpus[i % len(cpus)], False) for i in range(n)]
    total = []
    for _ in range(runs):
        read, write = os.pipe()
        pids = []
        began = time.perf_counter()
        for i in range(n):
            pid = os.fork()
            if pid == 0:
                try:
                    pin(cpus[(i + 1) % len(cpus)])
                    native._set_spinning(False)
                    channels = [native.CallChannel(path) for _, path in actors]
                    refs = [channels[k % n].call("f") for k in range(calls)]
                    assert native.get(refs) == [b"ok"] * calls
                    os.write(write, b"x")
                finally:
                    os._exit(0)
            pids.append(pid)
        for pid in pids:
            os.waitpid(pid, 0)
        took = time.perf_counter() - began
        assert len(os.read(read, 100)) == n
        os.close(read)
        os.close(write)
        total.append(n * calls / took)
    stop([pid for pid, _ in actors])
    return total


def program(build, name, runs, *args):
    """Run a C++ program `runs` times and return its rows of numbers."""
    tool = pathlib.Path(build) / "bin" / name
    if not tool.exists():
        sys.exit(f"{tool} is missing: build the target {name} first")
    lines = [
        subprocess.run(
            [tool, *map(str, args)], check=True, capture_output=True, text=True
        ).stdout.split()
        for _ in range(runs)
    ]
    return [[float(each) for each in line] for line in lines]


def over_tls(build, runs, calls, pipelined):
    """Rows of call_path_tls.py: a caller and an actor on two nodes of this machine."""
    build = pathlib.Path(build).resolve()
    env = {**os.environ, "PYTHONPATH": str(build / "python")}
    env.setdefault("TROUPE_BIN_DIR", str(build / "bin"))
    if not (pathlib.Path(env["TROUPE_BIN_DIR"]) / "troupe-worker").exists():
        sys.exit(
            f"no troupe-worker in {env['TROUPE_BIN_DIR']}: build troupe-head and troupe-worker, or "
            "give --no-tls"
        )
    done = subprocess.run(
        [
            sys.executable,
            ROOT / "benchmarks" / "call_path_tls.py",
            str(runs),
            str(calls),
            str(pipelined),
        ],
        capture_output=True,
        text=True,
        env=env,
    )
    if done.returncode != 0:
        sys.exit(f"the rows over TLS failed\n{done.stderr}")
    return json.loads(done.stdout)


def busy_rows(native, directory, options, name, places, spin, show, base):
    """Shows calls beside a busy Python thread, at either end."""
    for where in (
        ("caller", "actor") if spin else ()
    ):  # a thread that blocks waits 5 ms for the interpreter's lock
        pid, path = start(native, directory, places[1], spin, busy=where == "actor")
        show(
            f"sync f(), a busy Python thread at the {where}, {name}",
            sync_case(
                native,
                path,
                places[0],
                spin,
                options.runs,
                options.calls // 5,
                "f",
                where == "caller",
            ),
            base,
        )
        stop([pid])


def kind_rows(native, directory, options, name, places, spin, show, show_rate, base):
    """Shows calls of actors that are async or threaded."""
    for kind, method in (("async", "later"), ("async", "f"), ("threaded", "f")):
        pid, path = start(native, directory, places[1], spin, kind)
        what = f"{kind} actor, {'async def' if method == 'later' else 'def'}, {name}"
        show(
            f"sync, {what}",
            sync_case(native, path, places[0], spin, options.runs, options.calls // 2, method),
            base,
        )
        show_rate(
            f"pipelined, {what}",
            async_case(
                native,
                [path],
                places[0],
                spin,
                options.runs,
                options.async_calls // 5,
                method,
            ),
        )
        stop([pid])


def on_one_host(options, cpus, show, show_rate):
    native = load(options.build)
    with tempfile.TemporaryDirectory(prefix="trp-") as directory:
        placements = [("one CPU, blocking", (cpus[0], cpus[0]), False)]
        if len(cpus) > 1:
            placements.append(("two CPUs, polling", (cpus[0], cpus[1]), True))
        for name, places, spin in placements:
            mode = "spin" if spin else "block"
            base = show(
                f"floor: raw socket, {name}",
                program(options.build, "call_floor", options.runs, options.calls, *places, mode),
            )
            native_rows = program(
                options.build,
                "call_native",
                options.runs,
                options.calls,
                10 * options.async_calls,
                *places,
                mode,
            )
            show(f"sync, C++ to C++, {name}", [row[:2] for row in native_rows], base)
            show_rate(f"pipelined, C++ to C++, {name}", [row[2] for row in native_rows])
            pid, path = start(native, directory, places[1], spin)
            for what in ("f", "g"):
                call = "f()" if what == "f" else "g(1, x='a')"
                show(
                    f"sync {call}, {name}",
                    sync_case(native, path, places[0], spin, options.runs, options.calls, what),
                    base,
                )
            show_rate(
                f"async, {options.async_calls}, {name}",
                async_case(native, [path], places[0], spin, options.runs, options.async_calls),
            )
            stop([pid])
            busy_rows(native, directory, options, name, places, spin, show, base)
            kind_rows(native, directory, options, name, places, spin, show, show_rate, base)
        for n in (2, 4):
            show_rate(
                f"{n} callers x {n} actors", n_by_n(native, directory, n, 20_000, options.runs)
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--calls", type=int, default=5000, help="sync calls per run")
    parser.add_argument("--async-calls", type=int, default=100_000)
    parser.add_argument("--no-tls", action="store_true", help="leave out the calls between nodes")
    parser.add_argument(
        "--only-tls", action="store_true", help="nothing but the calls between nodes"
    )
    parser.add_argument("--json", help="write the figures there")
    options = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    figures = {"machine": report.machine(), "build": pathlib.Path(options.build).name}

    def show(name, pairs, base=None):
        p50, p99 = [p[0] for p in pairs], [p[1] for p in pairs]
        figures[name] = {"p50_us": p50, "p99_us": p99}
        ratio = f"{statistics.median(p50) / base:5.2f} x floor" if base else ""
        print(
            f"{name:52s} p50 {min(p50):7.2f} / {statistics.median(p50):7.2f} us   "
            f"p99 {min(p99):7.2f} / {statistics.median(p99):7.2f} us   {ratio}",
            flush=True,
        )
        return statistics.median(p50)

    def show_rate(name, rates):
        figures[name] = {"calls_per_s": rates}
        print(
            f"{name:52s} {max(rates) / 1e6:7.2f} / {statistics.median(rates) / 1e6:.2f} M calls/s",
            flush=True,
        )

    print("best / median of runs")
    if not options.only_tls:
        on_one_host(options, cpus, show, show_rate)
    if not options.no_tls:
        for name, row in over_tls(
            options.build, options.runs, options.calls, options.async_calls
        ).items():
            (show if name.startswith("sync") else show_rate)(name, row)
    if options.json:
        pathlib.Path(options.json).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(options.json).write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
