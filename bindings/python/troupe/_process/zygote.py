"""The zygote: an interpreter that has imported what ranks and actors need, and forks them on
demand.

Started by a worker as `python -m troupe._process.zygote --fd N`, N being a SEQPACKET socket. It
never runs user code, never touches CUDA and has one thread; it forks from its main thread only.
What it forks are the worker's children: the worker reaps them, and the end of the zygote is not
theirs. The end of its socket is its own end. Where the worker itself has ended, what its processes
have started is ended first (`_process.survivors`).

No folder of a program's is on its import path: the worker starts it by `python -P` and with a
PYTHONPATH that has none (`worker/python_path.h`).

`--module NAME`, any number of times, adds modules that its processes have loaded, from `--path
FOLDER`s before its own and `--last-path FOLDER`s behind them, with `--directory FOLDER` as its
directory: one that cannot be imported makes it unusable. `--setup JSON` comes before all that: what
a runtime_env puts on the import path (`_code.runtime_env.enter_paths`), so that nothing is loaded
but from there. `--light` leaves numpy and torch to who needs them: it is ready ten times as soon.

Messages are control frames, one per datagram. Each child is announced by a ForkReply without a
process's id, with a pidfd of it, before the worker is its parent. ForkRequest with three
descriptors (control, stdout, stderr) is answered by the ForkReply that says which child becomes it.
While nothing is asked, it keeps some children forked ahead (`_process.prefork`), so that a start
does not wait for a fork.
"""

from __future__ import annotations

import os
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_name] = "1"  # a thread pool started by an import would make fork unsafe
os.environ.pop(
    "MKL_NUM_THREADS", None
)  # MKL takes OpenMP's number, and would never let go of one of its own

import argparse
import gc
import importlib
import json
import select
import socket
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable

from troupe import exceptions
from troupe._base.identity import PYTHON_VERSION
from troupe._cluster import session, variables
from troupe._code import packages, runtime_env, sources
from troupe._process import (
    os_calls,
    prefork,
    preimports,
    survivors,
    threads as _threads,
)

WORKER_ENDS_S = 10.0  # once its socket is closed; one that runs on has let go of this zygote alone
START_S = 1.0  # from its request on, a rank's start counts as under way for this long at most
LOST_IN_A_ROW_MAX = 3
PROBE_DEADLINE_S = 20.0
_IN_NO_CLUSTER = (
    "this process is a worker's zygote: it imports modules for the processes that are forked from "
    "it, and is in no cluster\n"
    "  a module that is named in preimport= must not use the cluster while it is imported: move "
    "that into a function"
)
REASON_CHARACTERS_MAX = (
    300  # limit because it travels with each heartbeat of a node that was asked for the modules
)


def enter(setup: str) -> tuple[str, bool]:
    """Puts requirements and packages in front of the import path; why it could not, or "", and
    whether it may be able to later."""
    if not setup:
        return "", False
    try:
        runtime_env.enter_paths(json.loads(setup), None)
    except (exceptions.TroupeError, OSError, ValueError) as error:
        print(error, file=sys.stderr, flush=True)
        return _line(error), isinstance(error, packages.NotHereYet)
    return "", False


def preimport_named(asked: argparse.Namespace, own_path: list[str]) -> str:
    """Imports the modules that were named, `own_path` last; why it could not, or ""."""
    if not asked.module:
        return ""
    sys.path[:] = [
        *sys.path[: len(sys.path) - len(own_path)],
        *asked.path,
        *own_path,
        *asked.last_path,
    ]
    try:
        if asked.directory:
            os.chdir(asked.directory)
        for name in asked.module:
            importlib.import_module(name)
    except BaseException as error:  # a module's code may raise anything, or exit
        traceback.print_exc()
        return f"{type(error).__name__}: {_line(error)}"
    return ""


def _line(error: BaseException) -> str:
    return (str(error).split("\n")[0])[:REASON_CHARACTERS_MAX]


def probe() -> str:
    """Forks a child that looks for what would make children unusable; the reason, or ""."""
    if os_calls.thread_count() != 1:
        return f"{os_calls.thread_count()} threads after the imports"
    pid = os.fork()
    if pid == 0:
        torch = sys.modules.get("torch")
        bad = torch is not None and torch.cuda._is_in_bad_fork()
        os._exit(3 if bad else 0)
    descriptor = os.pidfd_open(pid)
    ready, _, _ = select.select([descriptor], [], [], PROBE_DEADLINE_S)
    os.close(descriptor)
    if not ready:
        os.kill(pid, 9)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status == 3:
        return "CUDA was initialised by an import, so children could not use it"
    return "" if status == 0 else f"a probe child ended with {status}"


class Zygote:
    """The socket to the worker, the children that are parked, and the actors that start.

    Main thread only.
    """

    def __init__(self, sock: socket.socket, parked: int, loaded: prefork.Loaded) -> None:
        from troupe import _native

        self._native = _native
        self._socket = sock
        self._worker = os.getppid()
        self._wanted = parked
        self._parked: deque[prefork.Child] = deque()
        self._starting: dict[int, float] = {}  # pid -> when its start counts as over
        self._lost_in_a_row = 0
        self._poll = select.poll()
        self._actions: dict[int, Callable[[], None]] = {}
        self._loaded = loaded
        self._open = True
        self._watch(sock.fileno(), self._receive)
        self._worker_end = os.pidfd_open(self._worker)
        self._watch(self._worker_end, self._close)

    def send(self, kind: str, fields: dict[str, Any]) -> None:
        """Tells the worker."""
        self._socket.send(self._native.encode_message(kind, fields, b""))

    def run(self) -> None:
        """Serves until the worker's end of the socket is closed, or the worker has ended.

        While nothing is asked, it compacts its memory, then parks children: in that order, for
        pages that a child shares cannot be compacted without leaving it the old ones.
        """
        compaction = os_calls.collapse_memory()
        compacting = True
        while self._open:
            timeout_ms = 0 if compacting else self._until_parking_ms()
            events = self._poll.poll(timeout_ms)
            if not events and compacting:
                compacting = next(compaction, None) is not None
            elif not events and self._until_parking_ms() == 0:
                self._park()
            for descriptor, _ in events:
                action = self._actions.get(descriptor)
                if action is not None:
                    action()

    def worker_has_ended(self) -> bool:
        """Return True if only the remains of an ended worker keep this process alive.

        A worker that ends has closed its socket before.
        """
        ending = select.poll()
        ending.register(self._worker_end, select.POLLIN)
        return bool(ending.poll(WORKER_ENDS_S * 1000))

    def _close(self) -> None:
        self._open = False

    def _watch(self, descriptor: int, action: Callable[[], None]) -> None:
        self._actions[descriptor] = action
        self._poll.register(descriptor, select.POLLIN)

    def _forget(self, descriptor: int) -> None:
        if self._actions.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def _until_parking_ms(self) -> int | None:
        """When to fork ahead: never while a start is under way, for it would slow that down."""
        if len(self._parked) >= self._wanted:
            return None
        now = time.monotonic()
        over = max(self._starting.values(), default=now)
        if over <= now:
            self._starting.clear()
            return 0
        return int((over - now) * 1000) + 1

    def _park(self) -> None:
        try:
            self._parked.append(self._fork(ahead=True))
        except (OSError, RuntimeError) as error:
            self._stop_parking(str(error))

    def _stop_parking(self, why: str) -> None:
        self._wanted = 0
        print(f"no more processes are parked: {why}", file=sys.stderr, flush=True)

    def _fork(self, *, ahead: bool) -> prefork.Child:
        threads = os_calls.thread_count()
        if threads != 1:
            raise RuntimeError(f"the zygote has {threads} threads; forking would not be safe")
        child = prefork.fork(
            self._native, self._loaded, self._socket, worker=self._worker, ahead=ahead
        )
        self._watch(child.socket.fileno(), lambda: self._closed(child))
        return child

    def _receive(self) -> None:
        data, fds = prefork.receive(self._socket)
        self._open = bool(data)
        try:
            if data:
                self._start(data, fds)
        finally:
            for descriptor in fds:
                os.close(descriptor)

    def _start(self, data: bytes, fds: list[int]) -> None:
        kind, request, _ = self._native.decode_message(data)[:3]
        if kind != "ForkRequest":
            return
        reply = {"process": request["process"], "pid": 0, "error": ""}
        if len(fds) != 3:
            reply["error"] = f"the request carries {len(fds)} descriptors, not 3"
            self.send("ForkReply", reply)
            return
        try:
            child = self._take() or self._fork(ahead=False)
        except (OSError, RuntimeError) as error:
            reply["error"] = f"fork failed: {error}"
            self.send("ForkReply", reply)
            return
        reply["pid"] = child.pid
        self.send("ForkReply", reply)  # first: the worker knows the pid before the process speaks
        child.give(data, fds)
        self._starting[child.pid] = time.monotonic() + START_S
        if request["kind"] != "actor":
            self._forget(child.socket.fileno())
            child.socket.close()

    def _take(self) -> prefork.Child | None:
        """A parked child that is alive; the dead are told of by their sockets in their turn."""
        while self._parked:
            child = self._parked.popleft()
            if child.alive():
                self._lost_in_a_row = 0
                return child
        return None

    def _closed(self, child: prefork.Child) -> None:
        """The child's end is closed: an actor is ready for calls or has ended, a parked child has
        ended."""
        self._forget(child.socket.fileno())
        child.socket.close()
        self._starting.pop(child.pid, None)
        if child.given:
            return
        if child in self._parked:
            self._parked.remove(child)
        self._lost_in_a_row += 1
        if self._lost_in_a_row >= LOST_IN_A_ROW_MAX:
            self._stop_parking(f"{self._lost_in_a_row} in a row ended before their use")


def main() -> None:
    """Imports, probes, reports, serves."""
    parser = argparse.ArgumentParser(
        prog="python -m troupe._process.zygote", description="Started by troupe-worker."
    )
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--module", action="append", default=[])
    parser.add_argument("--path", action="append", default=[])
    parser.add_argument("--last-path", action="append", default=[])
    parser.add_argument("--directory", default="")
    parser.add_argument("--setup", default="")
    parser.add_argument("--light", action="store_true")
    asked = parser.parse_args()
    os_calls.die_with_parent()
    started = time.monotonic()
    session.refusal = _IN_NO_CLUSTER
    base_path = list(sys.path)
    sock = socket.socket(fileno=asked.fd)
    os.set_inheritable(sock.fileno(), False)
    own_path = list(sys.path)
    failed, later = enter(asked.setup)
    once = os.environ.get(variables.ONE_LAUNCH) == "1"
    modules = (
        []
        if failed or asked.light
        else preimports.preimport(
            each for each in preimports.LIBRARIES if not (once and each in preimports.OFTEN_UNUSED)
        )
    )
    preimports.preimport(preimports.OWN_MODULES)
    libraries = preimports.loaded_libraries(base_path)
    failed = failed or preimport_named(asked, own_path)
    if "torch" in sys.modules:
        from troupe import _native

        _native.gloo_tells_of_ends()  # once here, and not in each rank that makes a group
    _threads.find()
    sources.note_loaded()
    gc.collect()
    gc.disable()
    gc.freeze()
    reason = failed or probe()
    zygote = Zygote(
        sock, 0 if reason else prefork.default_count(), prefork.Loaded(base_path, libraries)
    )
    os_calls.die_with_parent(False)
    try:
        zygote.send(
            "ZygoteReady",
            {
                "pid": os.getpid(),
                "import_ms": int((time.monotonic() - started) * 1000),
                "threads": os_calls.thread_count(),
                "usable": not reason,
                "reason": reason,
                "later": later,
                "python_version": PYTHON_VERSION,
                "modules": modules,
            },
        )
        zygote.run()
    except (BrokenPipeError, ConnectionResetError):
        pass  # the worker is gone
    below = os.environ.get(variables.UNDER_WORKERS, "").rpartition(",")[2]
    if below and zygote.worker_has_ended():
        survivors.end_of(below)
    os._exit(
        0
    )  # nothing of its own is left to do, and of what it has imported no handler is to run


if __name__ == "__main__":
    main()
