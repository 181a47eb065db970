"""An hour of everything at once on one cluster: does anything grow?

Calls of all kinds (of plain, threaded and async actors), tasks, large objects, refs inside values,
streams, placement groups, cancelled work and wrong calls, while actors and the processes of tasks
are killed every few seconds and restarted. Every answer is checked. Sampled every ten seconds,
while the load rests: memory, descriptors and threads of head, worker, driver, an async actor and
one with threads, the blocks Python has allocated in the driver, the number of processes, the
descriptors of shared memory (soak_samples.py). What is there in the last sixth of the time is
compared with what was there after the first: more than a tenth and a little is growth, and the
program exits with 1. SIGUSR1 has the load rest after the next sample, once more has it go on: time
at rest does not count.

    python benchmarks/soak.py --minutes 60 [--keep]
"""

import argparse
import asyncio
import collections
import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from report import keep  # noqa: E402
from soak_samples import Samples, give_back_freed_memory  # noqa: E402

import troupe  # noqa: E402
from troupe import exceptions  # noqa: E402
from troupe.util import placement_group, remove_placement_group  # noqa: E402
from troupe.util.scheduling_strategies import PlacementGroupSchedulingStrategy  # noqa: E402

SAMPLE_EVERY_S = 10.0
KILL_EVERY_S = 3.0
WAIT_S = 120.0


@troupe.remote
def square(x: int) -> int:
    return x * x


@troupe.remote(max_retries=-1)
def die_sometimes(share: float) -> int:
    if random.random() < share:
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def numbered_arrays(count: int):
    for number in range(count):
        yield np.full(40_000 if number % 2 else 10, number)


numbers = troupe.remote(numbered_arrays)


@troupe.remote
def start_tasks(count: int) -> int:
    return sum(troupe.get([square.remote(i) for i in range(count)]))


@troupe.remote
def wait_for_ever() -> None:
    threading.Event().wait()


@troupe.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)
class Worker:
    def __init__(self) -> None:
        self.kept: object = None

    def pid(self) -> int:
        return os.getpid()

    def echo(self, value: object) -> object:
        return value

    def total(self, array: np.ndarray) -> float:
        return float(array.sum())

    def keep(self, holder: dict) -> int:
        self.kept = holder
        return int(troupe.get(holder["ref"])[0])

    def tasks(self, count: int) -> int:
        return sum(troupe.get([square.remote(i) for i in range(count)]))


@troupe.remote(num_cpus=0)
class Async:
    """Lives for the whole time."""

    def __init__(self) -> None:
        self.waiting = 0

    async def pid(self) -> int:
        return os.getpid()

    async def echo(self, value: object) -> object:
        return value

    async def wait(self) -> None:
        self.waiting += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.waiting -= 1

    async def waits(self) -> int:
        return self.waiting


@troupe.remote
def wait_for(actor: object) -> None:
    troupe.get(actor.wait.remote())


@troupe.remote(num_cpus=0, max_concurrency=4)
class Threaded:
    """A threaded actor, which lives for the whole time."""

    def pid(self) -> int:
        return os.getpid()

    def echo(self, value: object) -> object:
        return value

    def count(self, count: int):
        yield from numbered_arrays(count)

    def until_cancelled(self) -> str:
        nobody = threading.Event()
        while not troupe.get_runtime_context().is_canceled():
            nobody.wait(0.001)
        return "asked"

    def wait(self) -> None:
        threading.Event().wait()

    def leave(self) -> None:
        troupe.actor.exit_actor()


def must_fail(error: type[Exception], call: Callable[[], object]) -> None:
    try:
        call()
    except error:
        return
    raise AssertionError(f"{error.__name__} was to be raised")


class Load:
    """Threads of work against one cluster, until `done`. Any wrong answer ends them all."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.asked_to_rest = False  # by a signal
        self.rests = False  # no part begins
        self.busy = 0  # parts
        self.changed = threading.Condition()  # rests, busy
        self.errors: list[str] = []
        self.counts: collections.Counter[str] = collections.Counter()
        self.workers = [Worker.remote() for _ in range(3)]
        self.async_actor = Async.remote()
        self.threaded = Threaded.remote()
        self.parts = [
            self.calls,
            self.on_threads,
            self.objects,
            self.tasks,
            self.churn,
            self.groups,
            self.wrong,
            self.kills,
        ]
        self.threads = [
            threading.Thread(target=self._run, args=(part,), name=part.__name__)
            for part in self.parts
        ]

    def _run(self, part) -> None:
        while not self.done.is_set():
            with self.changed:
                self.changed.wait_for(lambda: not self.rests)
                self.busy += 1
            try:
                part()
            except Exception:
                self.errors.append(f"{part.__name__}: {traceback.format_exc()}")
                self.done.set()
            self.counts[part.__name__] += 1
            with self.changed:
                self.busy -= 1
                self.changed.notify_all()
            self.done.wait(KILL_EVERY_S if part == self.kills else 0.05)

    def calls(self) -> None:
        worker = random.choice(self.workers)
        assert troupe.get(worker.echo.remote(7), timeout=WAIT_S) == 7
        assert troupe.get([worker.echo.remote(i) for i in range(300)], timeout=WAIT_S) == list(
            range(300)
        )
        assert troupe.get(
            [self.async_actor.echo.remote(i) for i in range(100)], timeout=WAIT_S
        ) == list(range(100))
        assert len(troupe.get(worker.echo.remote(b"x" * 90_000), timeout=WAIT_S)) == 90_000

    def on_threads(self) -> None:
        actor = self.threaded
        asked = actor.until_cancelled.remote()
        assert [troupe.get(actor.echo.remote(i), timeout=WAIT_S) for i in range(20)] == list(
            range(20)
        )
        assert troupe.get([actor.echo.remote(i) for i in range(300)], timeout=WAIT_S) == list(
            range(300)
        )
        assert [int(troupe.get(ref, timeout=WAIT_S)[0]) for ref in actor.count.remote(6)] == list(
            range(6)
        )
        troupe.cancel(asked)
        try:
            assert troupe.get(asked, timeout=WAIT_S) == "asked"
        except exceptions.TaskCancelledError:  # the task had not begun
            pass
        leaver = Threaded.remote()
        refs = [leaver.wait.remote() for _ in range(3)] + [leaver.leave.remote()]
        for ref in refs:
            must_fail(exceptions.ActorDiedError, lambda ref=ref: troupe.get(ref, timeout=WAIT_S))

    def objects(self) -> None:
        worker, other = random.sample(self.workers, 2)
        array = np.ones(random.choice([20_000, 500_000, 2_000_000]))
        ref = troupe.put(array)
        assert (
            troupe.get([worker.total.remote(ref), other.total.remote(array)], timeout=WAIT_S)
            == [array.size] * 2
        )
        assert troupe.get(worker.echo.remote(ref), timeout=WAIT_S)[-1] == 1
        assert troupe.get(self.async_actor.echo.remote({"ref": ref}), timeout=WAIT_S)["ref"] == ref
        # An object held by a dead process is lost: the call is made again, and finds the ref alive.
        assert (
            troupe.get(other.keep.remote({"ref": troupe.put(np.full(30_000, 5))}), timeout=WAIT_S)
            == 5
        )

    def tasks(self) -> None:
        assert troupe.get([square.remote(i) for i in range(200)], timeout=WAIT_S)[-1] == 199 * 199
        troupe.get([die_sometimes.remote(0.05) for _ in range(4)], timeout=WAIT_S)
        assert [int(troupe.get(ref, timeout=WAIT_S)[0]) for ref in numbers.remote(6)] == list(
            range(6)
        )
        assert troupe.get(start_tasks.remote(10), timeout=WAIT_S) == 285
        assert troupe.get(random.choice(self.workers).tasks.remote(20), timeout=WAIT_S) == 2470
        stuck = wait_for_ever.remote()
        troupe.cancel(stuck)
        must_fail(exceptions.TaskCancelledError, lambda: troupe.get(stuck, timeout=WAIT_S))
        calls = wait_for.remote(self.async_actor)
        until = time.monotonic() + WAIT_S
        for waiting in (1, 0):
            while troupe.get(self.async_actor.waits.remote(), timeout=WAIT_S) != waiting:
                assert time.monotonic() < until, (
                    f"what a task called on an actor: {waiting} did not come"
                )
            if waiting:
                troupe.cancel(calls)
        must_fail(exceptions.TaskCancelledError, lambda: troupe.get(calls, timeout=WAIT_S))

    def churn(self) -> None:
        actor = Worker.options(
            max_restarts=0, max_task_retries=0, name=f"churned-{self.counts['churn']}"
        ).remote()
        pid = troupe.get(
            troupe.get_actor(f"churned-{self.counts['churn']}").pid.remote(), timeout=WAIT_S
        )
        if random.random() < 0.5:
            os.kill(pid, signal.SIGKILL)
            must_fail(
                exceptions.ActorDiedError, lambda: troupe.get(actor.echo.remote(1), timeout=WAIT_S)
            )
        else:
            troupe.kill(actor)

    def groups(self) -> None:
        group = placement_group([{"CPU": 1}])
        assert group.wait(WAIT_S)
        inside = PlacementGroupSchedulingStrategy(group)
        assert troupe.get(square.options(scheduling_strategy=inside).remote(3), timeout=WAIT_S) == 9
        remove_placement_group(group)
        self.done.wait(0.2)

    @contextlib.contextmanager
    def resting(self) -> Iterator[None]:
        """Within it no part works: what is there then is kept, not in use.

        A part that goes on is an error.
        """
        with self.changed:
            self.rests = True
            if not self.changed.wait_for(lambda: self.busy == 0, 2 * WAIT_S):
                self.errors.append(
                    f"{self.busy} parts were to rest, and worked on for {2 * WAIT_S:g} s"
                )
                self.done.set()
        try:
            yield
        finally:
            with self.changed:
                self.rests = False
                self.changed.notify_all()

    def rest_or_go_on(self, *_: object) -> None:
        """For a signal: the next sample is the last before the rest."""
        self.asked_to_rest = not self.asked_to_rest

    def wrong(self) -> None:
        stuck = wait_for_ever.remote()
        for call, error in (
            (lambda: troupe.get(self.workers[0].echo.remote(), timeout=WAIT_S), TypeError),
            (lambda: self.workers[0].echo.remote(threading.Lock()), TypeError),
            (
                lambda: troupe.get(self.workers[0].total.remote("no array"), timeout=WAIT_S),
                AttributeError,
            ),
            (lambda: troupe.get(stuck, timeout=0.01), exceptions.GetTimeoutError),
        ):
            must_fail(error, call)
        troupe.cancel(stuck)
        self.done.wait(0.3)

    def kills(self) -> None:
        worker = random.choice(self.workers)
        os.kill(troupe.get(worker.pid.remote(), timeout=WAIT_S), signal.SIGKILL)


def start_cluster(home: str) -> dict:
    command = [
        sys.executable,
        "-m",
        "troupe",
        "start",
        "--head",
        "--port",
        "0",
        "--num-cpus",
        "6",
        "--json",
    ]
    return json.loads(
        subprocess.run(
            command,
            env={**os.environ, "TROUPE_HOME": home},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    )


def process_called(name: str, home: str) -> int:
    """The program of this cluster."""
    for entry in os.listdir("/proc"):
        try:
            line = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes() if entry.isdigit() else b""
        except OSError:
            continue
        if line.split(b"\0")[0].endswith(name.encode()) and home.encode() in line:
            return int(entry)
    raise SystemExit(f"no {name} runs for {home}")


def soak(minutes: float) -> tuple[dict[str, dict], list[str]]:
    with tempfile.TemporaryDirectory(prefix="troupe-soak-") as home:
        os.environ["TROUPE_HOME"] = home
        address = start_cluster(home)["address"]
        try:
            troupe.init(address, log_to_driver=False)
            samples = Samples(
                process_called("troupe-head", home), process_called("troupe-worker", home)
            )
            load = Load()
            samples.roles["actor"] = troupe.get(load.async_actor.pid.remote())
            samples.roles["threaded actor"] = troupe.get(load.threaded.pid.remote())
            for thread in load.threads:
                thread.start()
            signal.signal(signal.SIGUSR1, load.rest_or_go_on)
            worked_s, since = 0.0, time.monotonic()
            while worked_s < minutes * 60 and not load.done.wait(SAMPLE_EVERY_S):
                worked_s += time.monotonic() - since
                with load.resting():
                    samples.take()
                    while load.asked_to_rest and not load.done.wait(SAMPLE_EVERY_S):
                        pass
                since = time.monotonic()
            load.done.set()
            for thread in load.threads:
                thread.join()
            troupe.shutdown()
        finally:
            subprocess.run(
                [sys.executable, "-m", "troupe", "stop", "--all"], check=True, capture_output=True
            )
    rows = {
        "rounds": {**load.counts, "minutes": round(worked_s / 60, 1), "failed": len(load.errors)}
    }
    return {**rows, **(samples.growth() if samples.rows else {})}, load.errors


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    give_back_freed_memory()
    rows, errors = soak(options.minutes)
    keep("soak", rows, options.keep)
    for error in errors:
        print(error, file=sys.stderr)
    if errors or any(row.get("grew") for row in rows.values()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
