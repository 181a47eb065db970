"""Parts shared by leader and followers of a run: programs that end with this process, signals, exit
codes."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from troupe import exceptions
from troupe._cluster import executables, home, node_start, scratch, session as _session, signals
from troupe._run.place import Place

EXIT_FAILED, EXIT_USAGE, EXIT_UNKNOWN, EXIT_WRONG_CLUSTER, EXIT_CANCELLED = 1, 2, 75, 78, 130
STOP_GRACE_S = 5.0


@dataclass(frozen=True)
class RunOptions:
    """The options of the command line, checked."""

    place: Place
    secret_file: str
    command: tuple[str, ...]
    node_args: tuple[str, ...]
    head_args: tuple[str, ...]
    node_name: str
    listen: str
    wait_s: float
    lost_after_s: float
    grace_s: float


class Stopped(BaseException):
    """SIGTERM, SIGINT or SIGHUP: raised in the main thread, once; later ones change nothing."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def name(self) -> str:
        """`SIGTERM`."""
        return signal.Signals(self.number).name


_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def raise_on_signals() -> None:
    """From now on a signal that asks to stop raises Stopped; what is cleaned up then is not
    interrupted."""

    def stop(number: int, _: object) -> NoReturn:
        ignore_signals()
        raise Stopped(number)

    for each in _SIGNALS:
        if signal.getsignal(each) is not signal.SIG_IGN:  # as nohup leaves it
            signal.signal(each, stop)


def ignore_signals() -> None:
    """The end is decided: what is left is to clean up, which takes no long time."""
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)


def say(text: str) -> None:
    """A line for people, apart from the command's own output."""
    print(f"troupe run: {text}", file=sys.stderr, flush=True)


def say_marker(info: dict[str, Any]) -> None:
    """How the run ended, as its marker has it."""
    cause = f" · {info['cause']}" if info["cause"] else ""
    say(
        f"marker: {info['outcome']}, exit {info['exit_code']}, epoch {info['epoch']}, "
        f"{info['duration_ms'] / 1000:.1f} s{cause}"
    )


class Programs:
    """Head and worker of this node: they end with it, in whatever way that ends, and leave no
    folder."""

    def __init__(self) -> None:
        self._scratch = scratch.Folder("troupe-run-")
        self.folder = self._scratch.path
        self._lifeline = executables.Lifeline()
        self.head: executables.Started | None = None
        self.worker: executables.Started | None = None

    def start_head(self, args: list[str]) -> executables.Started:
        """A head whose state lasts as long as the run."""
        self.head = executables.start(
            "troupe-head",
            [f"--state_dir={self.folder}/state", "--embedded=true", *args],
            log=self.folder / "head.log",
            lifeline=self._lifeline.read_end,
        )
        return self.head

    def start_worker(
        self, head: str, args: list[str], token_file: str | None = None
    ) -> executables.Started:
        """This node's worker, joined to the head at `host:port` or `unix:/path`."""
        self.worker = node_start.start(
            head,
            self.folder / "node",
            args,
            log=self.folder / "worker.log",
            token_file=token_file,
            lifeline=self._lifeline.read_end,
        )
        return self.worker

    def start_command(
        self, command: list[str], environment: dict[str, str]
    ) -> subprocess.Popen[bytes]:
        """The command under its keeper, which ends as it does and leaves nothing of it behind."""
        keeper = str(Path(__file__).with_name("keeper.py"))
        return subprocess.Popen(
            [sys.executable, "-I", "-S", keeper, str(self._lifeline.read_end), *command],
            env=environment,
            pass_fds=[self._lifeline.read_end],
        )

    def last_words(self, name: str) -> str:
        """The end of a program's log."""
        return executables.tail(self.folder / f"{name}.log")

    def end_worker(self) -> None:
        """Ends this node's worker and what it runs."""
        if self.worker is not None:
            executables.end([self.worker.process], STOP_GRACE_S)

    def close(self) -> None:
        """Ends worker and head, in this order, and removes what they kept. Idempotent."""
        if self._lifeline.is_closed:
            return
        self.end_worker()
        if self.head is not None:
            executables.end([self.head.process], STOP_GRACE_S)
        for record in (self.folder / "state" / "head.json", self.folder / "node" / "node.json"):
            home.remove_socket_of(record)
        self._lifeline.close()
        self._scratch.remove()


class Watch:
    """Waits for the first of several ends: of processes, of the run, of the session with the
    head."""

    def __init__(self, session: _session.Session, launch: str) -> None:
        self._selector = selectors.DefaultSelector()
        self._pidfds: list[int] = []
        self._lock = threading.Lock()
        self._read, self._write = os.pipe()
        self._selector.register(self._read, selectors.EVENT_READ, "run")
        session.board.subscribe("launch", launch, self._on_update)
        session.on_end(self._wake)

    def process(self, pid: int, name: str) -> None:
        """`next` returns `name` when this child has ended."""
        descriptor = os.pidfd_open(pid)
        self._pidfds.append(descriptor)
        self._selector.register(descriptor, selectors.EVENT_READ, name)

    def next(self, timeout: float | None = None) -> list[str]:
        """Blocks until something ended, or `timeout` seconds: names of processes, "run" for a
        change of it."""
        names = []
        deadline = None if timeout is None else time.monotonic() + timeout
        ready: list[Any] = []
        while not ready:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready = self._selector.select(signals.at_most(left))
            if left == 0.0:
                break
        for key, _ in ready:
            names.append(key.data)
            if key.data == "run":
                os.read(self._read, 4096)
            else:
                self._selector.unregister(key.fileobj)
        return names

    def close(self) -> None:
        """Idempotent."""
        self._selector.close()
        while self._pidfds:
            os.close(self._pidfds.pop())
        with self._lock:
            if self._write >= 0:
                os.close(self._write)
                os.close(self._read)
            self._write = -1

    def _on_update(self, info: dict[str, Any], _: bytes) -> None:
        if info["state"] == "terminal":
            self._wake()

    def _wake(self) -> None:
        with self._lock:
            if self._write >= 0:
                os.write(self._write, b"x")


def terminal(session: _session.Session, launch: str) -> dict[str, Any] | None:
    """The run's end, when it is known here."""
    entry = session.board.get("launch", launch)
    return entry[0] if entry is not None and entry[0]["state"] == "terminal" else None


def claim_rank(
    session: _session.Session, launch: str, rank: int, holder: Callable[[], Any]
) -> dict[str, Any] | None:
    """Takes a rank of the run for this node; who has it, when somebody else does."""
    import json

    fields = {"scope": f"run/{launch}", "key": f"node/{rank}", "overwrite": False}
    try:
        session.request("KvPut", fields, json.dumps(holder()).encode())
        return None
    except exceptions.AlreadyExistsError:
        return claim_of(session, launch, rank)


def note_joined(session: _session.Session, launch: str, rank: int, holder: dict[str, Any]) -> None:
    """Writes down that a rank's node has joined, and under which name."""
    import json

    session.request(
        "KvPut",
        {"scope": f"run/{launch}", "key": f"node/{rank}", "overwrite": True},
        json.dumps({**holder, "joined": True}).encode(),
    )


def claim_of(session: _session.Session, launch: str, rank: int) -> dict[str, Any] | None:
    """Return the holder of a rank: host, pid and since when; None if nobody has claimed it."""
    import json

    _, value, data = session.request("KvGet", {"scope": f"run/{launch}", "key": f"node/{rank}"})
    return json.loads(data) if value["found"] else None
