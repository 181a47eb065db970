"""The head killed again and again, at numbered places, under clients that go on.

A head, a worker and clients of three kinds run; the head gets TROUPE_FAULTS="*=kill@N" with another
N in each life, so that it dies at the N-th passage of any place that has a name (before and after a
commit, around an fsync, a message received, an answer about to leave), and is started again at
once. Every third life ends in a snapshot: before, in the middle of and after its transaction in
turn. Clients are never told:

* writers put, create, erase and read values and record what they asked and were answered
  (history.py);
* a launcher submits launches, each of which leaves a line in a file, and fetches their results;
* an observer waits for the marker of each launch.

At the end nothing acknowledged may be lost and nothing doubled: the history has an order, every
launch has one outcome and ran once, every result is right.

    python tests/e2e/kill_sweep.py --kills 1000 --output benchmarks/results/kill_sweep.json
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import queue
import random
import re
import select
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from history import Recorder, violations

RETURN_TIMEOUT_S = 120.0
OPERATIONS_PER_KEY = 40
# Most lives are short; in a longer one a launch gets through all of its steps.
PASSAGES_MAX = (100, 300, 1000, 3000)
SNAPSHOT_EVERY = 60  # events: a life has several
SNAPSHOT_PLACES = ("before", "middle", "after")


class SweptHead:
    """A head that is started again whenever it dies, with another fault each time."""

    def __init__(self, folder: Path, kills: int, seed: int) -> None:
        self.folder = folder
        self.kills_wanted = kills
        self.random = random.Random(seed)
        self.places: collections.Counter[str] = collections.Counter()
        self.lives: list[float] = []  # seconds from start to ready, of lives that became ready
        self.ready: dict[str, Any] = {}
        self.error: BaseException | None = None
        self.process: Any = None
        self.done = threading.Event()
        self._port = 0
        self._start(fault=False)
        self._thread = threading.Thread(target=self._run, name="sweep", daemon=True)

    @property
    def kills(self) -> int:
        return sum(self.places.values())

    def begin(self) -> None:
        """The present head is killed once, plainly; from then on by faults."""
        self._thread.start()
        os.kill(self.process.pid, 9)

    def _start(self, *, fault: bool) -> None:
        from troupe._cluster import executables

        args = [
            f"--state-dir={self.folder / 'cluster'}",
            f"--port={self._port}",
            f"--snapshot-every={SNAPSHOT_EVERY}",
        ]
        os.environ["TROUPE_FAULTS"] = self._fault() if fault else ""
        began = time.monotonic()
        started = executables.start("troupe-head", args, log=self.folder / "head.log")
        self.lives.append(time.monotonic() - began)
        self.process, self.ready = started.process, started.ready
        self._port = int(str(started.ready["address"]).rpartition(":")[2])

    def _fault(self) -> str:
        """Return the fault that ends the next life."""
        if self.kills % 3 == 0:
            place = SNAPSHOT_PLACES[self.kills // 3 % len(SNAPSHOT_PLACES)]
            return f"journal.snapshot.{place}=kill@{self.random.randint(1, 3)}"
        return f"*=kill@{self.random.randint(1, self.random.choice(PASSAGES_MAX))}"

    def _run(self) -> None:
        from troupe import exceptions

        try:
            read = 0
            while True:
                with contextlib.closing(os.fdopen(os.pidfd_open(self.process.pid), "rb")) as end:
                    select.select([end], [], [])
                self.process.wait()
                while True:
                    log = (self.folder / "head.log").read_text(errors="replace")
                    found = re.findall(r"fault at ([\w.]+), passage", log[read:])
                    read = len(log)
                    self.places[found[-1] if found else "anywhere"] += 1
                    try:
                        self._start(fault=self.kills < self.kills_wanted)
                        break
                    except exceptions.TroupeError as error:  # killed before it was ready
                        if "ended with -9" not in str(error):
                            raise
                if self.kills >= self.kills_wanted:
                    return
        except BaseException as error:
            self.error = error
        finally:
            self.done.set()

    def close(self) -> None:
        from troupe._cluster import executables

        executables.end([self.process])


class Writer:
    """A client of values; a thread of its own."""

    def __init__(self, socket: str, recorder: Recorder, number: int, done: threading.Event) -> None:
        from troupe._base.bridge import native

        self.control = native.ControlClient.connect_unix(socket, return_timeout=RETURN_TIMEOUT_S)
        self.recorder, self.number, self.done = recorder, number, done
        self.random = random.Random(number)
        self.error: BaseException | None = None
        self.count = 0
        self.thread = threading.Thread(target=self._run, name=f"writer-{number}", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            while not self.done.is_set():
                self._one(f"k{self.count // OPERATIONS_PER_KEY}-{self.random.randrange(2)}")
                self.count += 1
                while self.control.next_push(0) is not None:  # messages about its head
                    pass
        except BaseException as error:
            self.error = error

    def _one(self, key: str) -> None:
        from troupe import exceptions

        kind = self.random.choice(["put", "put", "create", "erase", "get", "get"])
        value = f"{self.number}.{self.count}"
        operation = self.recorder.begin(key, kind, value)
        fields: dict[str, Any] = {"scope": "sweep", "key": key}
        try:
            if kind == "get":
                _, answer, data = self.control.request("KvGet", fields, b"", RETURN_TIMEOUT_S)
                self.recorder.end(
                    operation, (data.decode(), answer["version"]) if answer["found"] else None
                )
                return
            if kind == "erase":
                self.control.request("KvDelete", fields, b"", RETURN_TIMEOUT_S)
            else:
                self.control.request(
                    "KvPut",
                    {**fields, "overwrite": kind == "put"},
                    value.encode(),
                    RETURN_TIMEOUT_S,
                )
            self.recorder.end(operation, "ok")
        except exceptions.AlreadyExistsError:
            self.recorder.end(operation, "exists")
        except exceptions.NotFoundError:
            self.recorder.end(operation, "missing")


class Launcher:
    """Submits launches one after the other; an observer waits for each marker on a connection of
    its own."""

    def __init__(self, socket: str, recorder: Recorder, trace: Path, done: threading.Event) -> None:
        from troupe._base.bridge import native
        from troupe._cluster import connect, session

        self.session = connect.connect(f"unix:{socket}", return_timeout=RETURN_TIMEOUT_S)
        session.set_current(self.session)
        self.observer = native.ControlClient.connect_unix(socket, return_timeout=RETURN_TIMEOUT_S)
        self.recorder, self.trace, self.done = recorder, trace, done
        self.launches: dict[str, int] = {}
        self.longest = 0.0
        self.errors: list[BaseException] = []
        self._accepted: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.threads = [
            threading.Thread(target=run, daemon=True) for run in (self._submit, self._observe)
        ]
        for thread in self.threads:
            thread.start()

    def _submit(self) -> None:
        from troupe.launch import distributed

        def work(token: int, trace: str) -> int:
            descriptor = os.open(trace, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(descriptor, b"%d\n" % token)
            os.close(descriptor)
            return 2 * token

        try:
            token = 0
            while not self.done.is_set():
                token += 1
                handle = distributed(processes=1, remote=True)(work).submit(token, str(self.trace))
                self.launches[handle.id] = token
                self._accepted.put(handle.id)
                began = time.monotonic()
                assert handle.result(RETURN_TIMEOUT_S) == [2 * token]
                self.longest = max(self.longest, time.monotonic() - began)
                self.recorder.outcome(handle.id, "succeeded")
        except BaseException as error:
            self.errors.append(error)
        finally:
            self._accepted.put(None)

    def _observe(self) -> None:
        try:
            while (launch := self._accepted.get()) is not None:
                _, reply, _ = self.observer.request(
                    "WaitMarker", {"launch": launch}, b"", RETURN_TIMEOUT_S
                )
                self.recorder.outcome(launch, reply["marker"]["outcome"])
        except BaseException as error:
            self.errors.append(error)

    def check(self) -> list[str]:
        """Return the faults of the launches, asked of the last head."""
        found = []
        ran = collections.Counter(int(line) for line in self.trace.read_text().split())
        for launch, token in self.launches.items():
            info = self.session.request("GetLaunch", {"launch": launch})[1]["info"]
            self.recorder.outcome(launch, info["outcome"])
            if info["outcome"] != "succeeded" or ran[token] != 1:
                found.append(
                    f"launch {launch} of token {token}: {info['outcome']} ({info['cause']}), ran "
                    f"{ran[token]} times"
                )
        if set(ran) != set(self.launches.values()):
            found.append(
                f"tokens without an accepted launch: {set(ran) - set(self.launches.values())}"
            )
        return found


def sweep(kills: int, seed: int, *, writers: int = 3) -> dict[str, Any]:
    """Runs a sweep; returns its figures, with `violations`."""
    from troupe._cluster import executables, node_start, session

    recorder = Recorder()
    with tempfile.TemporaryDirectory(prefix="sweep-") as name:
        folder = Path(name)
        head = SweptHead(folder, kills, seed)
        socket = str(head.ready["socket"])
        os.environ["TROUPE_FAULTS"] = ""
        worker = node_start.start(
            f"unix:{socket}",
            folder / "node",
            node_start.offer(num_cpus=4),
            log=folder / "worker.log",
        )
        began = time.monotonic()
        clients = [Writer(socket, recorder, number, head.done) for number in range(writers)]
        launcher = Launcher(socket, recorder, folder / "trace", head.done)
        try:
            head.begin()
            head.done.wait()
            for thread in [each.thread for each in clients] + launcher.threads:
                thread.join(RETURN_TIMEOUT_S)
            if head.error is not None:
                log = (folder / "head.log").read_text(errors="replace").splitlines()[-5:]
                raise RuntimeError(
                    "the head did not come back: " + "\n".join([str(head.error), *log])
                ) from head.error
            errors = [each.error for each in (head, *clients) if each.error] + launcher.errors
            wrong = (
                [f"a client failed: {error!r}" for error in errors]
                + launcher.check()
                + violations(recorder)
            )
        finally:
            launcher.session.close()
            launcher.observer.close()
            for client in clients:
                client.control.close()
            session.set_current(None)
            executables.end([worker.process])
            head.close()
            os.environ.pop("TROUPE_FAULTS", None)
        return {
            "kills": head.kills,
            "seed": seed,
            "seconds": round(time.monotonic() - began, 1),
            "kills_by_place": dict(sorted(head.places.items())),
            "operations": len(recorder.operations),
            "launches": len(launcher.launches),
            "longest_launch_s": round(launcher.longest, 1),
            "start_to_ready_ms": {
                "median": round(1000 * statistics.median(head.lives), 1),
                "most": round(1000 * max(head.lives), 1),
            },
            "violations": wrong,
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    result = sweep(options.kills, options.seed)
    print(json.dumps(result, indent=2))
    if options.output:
        options.output.write_text(json.dumps(result, indent=2) + "\n")
    return 1 if result["violations"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
