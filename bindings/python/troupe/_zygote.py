"""The zygote: an interpreter that has imported what ranks and actors need, and forks them on demand.

Started by a worker as `python -m troupe._zygote --fd N`, N being a SEQPACKET socket. It never runs
user code, never touches CUDA and has one thread; it forks from its main thread only. It reaps its
children by their pidfds, without signals. The end of its socket is its own end.

Messages are control frames, one per datagram: ForkRequest with three descriptors (control, stdout,
stderr) is answered by ForkReply; ChildExit follows when the child has ended.
"""
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # a thread pool started by an import would make fork unsafe

import array
import gc
import importlib
import select
import socket
import sys
import time
from typing import NoReturn

from troupe import _bootstrap, _leave, _os
from troupe._identity import PYTHON_VERSION

DATAGRAM_BYTES_MAX = 1 << 20
PROBE_DEADLINE_S = 20.0
PREIMPORT = ("numpy", "numpy.random", "cloudpickle", "torch", "torch.distributed", "torch._dynamo",
             "torch.nn.parallel.distributed")
OWN_MODULES = ("troupe._bridge", "troupe._calls", "troupe._process_channel", "troupe._rank", "troupe._actor_host",
               "troupe._store", "troupe._driver", "troupe.launch", "troupe._api", "traceback", "json",
               "logging", "selectors", "concurrent.futures", "inspect", "hashlib")


def preimport(names: tuple[str, ...]) -> list[str]:
    """Imports what is installed of `names`; the list of what now is."""
    found = []
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        found.append(name)
    return found


def probe() -> str:
    """Forks a child that looks for what would make children unusable; the reason, or ""."""
    if _os.thread_count() != 1:
        return f"{_os.thread_count()} threads after the imports"
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
    """The socket to the worker and the children that are alive. Main thread only."""

    def __init__(self, sock: socket.socket) -> None:
        from troupe import _native

        self._native = _native
        self._socket = sock
        self._pids: dict[int, int] = {}  # pidfd -> pid
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self._base_path = _bootstrap.base_path_of_interpreter(os.getcwd())

    def send(self, kind: str, fields: dict) -> None:
        self._socket.send(self._native.encode_message(kind, fields, b""))

    def run(self) -> None:
        """Serves until the worker's end of the socket is closed; compacts its memory while idle."""
        compaction = _os.collapse_memory()
        idle_ms: int | None = 0
        while True:
            events = self._poll.poll(idle_ms)
            if not events and next(compaction, None) is None:
                idle_ms = None
            for descriptor, _ in events:
                if descriptor != self._socket.fileno():
                    self._reap(descriptor)
                elif not self._receive():
                    return

    def _receive(self) -> bool:
        fds = array.array("i")
        data, ancillary, _, _ = self._socket.recvmsg(DATAGRAM_BYTES_MAX, socket.CMSG_SPACE(3 * fds.itemsize),
                                                     socket.MSG_CMSG_CLOEXEC)
        for level, kind, raw in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(raw[: len(raw) - len(raw) % fds.itemsize])
        if not data:
            return False
        try:
            self._fork(data, list(fds))
        finally:
            for descriptor in fds:
                os.close(descriptor)
        return True

    def _fork(self, data: bytes, fds: list[int]) -> None:
        kind, request, _ = self._native.decode_message(data)[:3]
        if kind != "ForkRequest":
            return
        reply = {"process": request["process"], "pid": 0, "error": ""}
        threads = _os.thread_count()
        if len(fds) != 3:
            reply["error"] = f"the request carries {len(fds)} descriptors, not 3"
        elif threads != 1:
            reply["error"] = f"the zygote has {threads} threads; forking would not be safe"
        else:
            parent = os.getpid()
            try:
                pid = os.fork()
            except OSError as error:
                reply["error"] = f"fork failed: {error}"
            else:
                if pid == 0:
                    _run_child(request, (fds[0], fds[1], fds[2]), parent, self._base_path)
                reply["pid"] = pid
                descriptor = os.pidfd_open(pid)
                self._pids[descriptor] = pid
                self._poll.register(descriptor, select.POLLIN)
        self.send("ForkReply", reply)

    def _reap(self, descriptor: int) -> None:
        pid = self._pids.pop(descriptor)
        self._poll.unregister(descriptor)
        os.close(descriptor)
        _, status, usage = os.wait4(pid, 0)
        self.send("ChildExit", {"pid": pid, "status": status, "max_rss_kib": usage.ru_maxrss})


def _run_child(request: dict, fds: tuple[int, int, int], parent: int, base_path: list[str]) -> NoReturn:
    try:
        control = _bootstrap.become_child(fds, parent)
        _leave.forget_inherited_exit_handlers()
        gc.enable()
        _bootstrap.apply_request(request, base_path)
        _bootstrap.serve(control, request["kind"])
    except BaseException as error:
        os.write(2, f"troupe: the process could not start: {error}\n".encode())
    os._exit(70)


def main() -> None:
    """Imports, probes, reports, serves."""
    if len(sys.argv) != 3 or sys.argv[1] != "--fd" or not sys.argv[2].isdigit():
        raise SystemExit("usage: python -m troupe._zygote --fd N (started by troupe-worker)")
    _os.die_with_parent()
    started = time.monotonic()
    sock = socket.socket(fileno=int(sys.argv[2]))
    os.set_inheritable(sock.fileno(), False)
    modules = preimport(PREIMPORT)
    preimport(OWN_MODULES)
    gc.collect()
    gc.disable()
    gc.freeze()
    reason = probe()
    zygote = Zygote(sock)
    try:
        zygote.send("ZygoteReady", {
            "pid": os.getpid(), "import_ms": int((time.monotonic() - started) * 1000),
            "threads": _os.thread_count(), "usable": not reason, "reason": reason,
            "python_version": PYTHON_VERSION, "modules": modules})
        zygote.run()
    except (BrokenPipeError, ConnectionResetError):
        return  # the worker is gone


if __name__ == "__main__":
    main()
