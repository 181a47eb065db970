"""A shell on each node of a job, for the driver on its first node: an actor that runs command lines
and passes on what they print.

View: `NodeShell` is a process of a node, in the job's directory there, with the devices that the
job has there; `Shells` is the driver's.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import troupe
from troupe import _pickled
from troupe._cluster import session as _session
from troupe.azure import _mpi, _processes, _rank
from troupe.azure._data import inputs

COMMANDS_MAX = 64  # at one time, of one node
END_GRACE_S = 10.0
_AHEAD = 16  # pieces of output that a node is ahead of who reads them
_PIECE_BYTES = 64 << 10


@dataclass(frozen=True)
class Place:
    """The launch, attempt and node of a shell, from which the job's directory is named."""

    launch: str
    epoch: int
    node: str
    node_count: int


class NodeShell:
    """The actor. Each command is a child of it; ends with the launch."""

    def __init__(
        self, job: _rank.JobStart, place: Any, master: str, variables: Mapping[str, str]
    ) -> None:
        self._folder = job.enter(_session.current(), Place(*place))
        job.settle(self._folder, Place(*place))
        self._environment = {**_mpi.environment(os.environ, root=False, master=master), **variables}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._ended: set[str] = set()

    def where(self) -> tuple[str, str]:
        """(the job's directory, the devices that it sees: CUDA_VISIBLE_DEVICES)."""
        return str(self._folder), os.environ.get("CUDA_VISIBLE_DEVICES", "")

    def run(self, key: str, text: str) -> Iterator[tuple[int, bytes]]:
        """Runs `text` in a shell, in the job's code; gives (1 or 2, what it printed there) as it
        comes, and (0, its code as text) at last."""
        if key in self._ended:
            return
        line = [_rank.SHELL, "-c", inputs.with_mounts(self._folder, text, _rank.SHELL)]
        with (
            _processes.guarded(
                line,
                cwd=self._folder / "code",
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            ) as child,
            selectors.DefaultSelector() as ready,
        ):
            self._running[key] = child
            try:
                for number, pipe in ((1, child.stdout), (2, child.stderr)):
                    ready.register(pipe, selectors.EVENT_READ, number)  # type: ignore[arg-type]
                while ready.get_map():
                    for each, _ in ready.select():
                        data = os.read(each.fd, _PIECE_BYTES)
                        if data:
                            yield each.data, data
                        else:
                            ready.unregister(each.fileobj)
                code = child.wait()
                yield 0, str(128 - code if code < 0 else code).encode()
            finally:
                self._running.pop(key)
                _processes.end(child, signal.SIGTERM, END_GRACE_S)

    def end(self, key: str) -> None:
        """Ends that command with all it has started: SIGTERM, and SIGKILL after END_GRACE_S; one
        that has not begun never does."""
        self._ended.add(key)
        child = self._running.get(key)
        if child is not None:
            _processes.end(child, signal.SIGTERM, END_GRACE_S)


_pickled.named_in("troupe._pickled", NodeShell)


class Shells:
    """The shells of a job, one on each node. A context: they end with it. Methods may be called
    from any thread."""

    def __init__(
        self,
        job: _rank.JobStart,
        context: Any,
        nodes: Mapping[str, str],
        gpus: float,
        master: str,
        variables: Mapping[str, str],
    ) -> None:
        """`nodes`: of each host's name the node."""
        made = troupe.remote(NodeShell)
        self._actors: dict[str, Any] = {}
        for host, node in nodes.items():
            where = troupe.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
                node, soft=False
            )
            self._actors[host] = made.options(
                num_cpus=0, num_gpus=gpus, max_concurrency=COMMANDS_MAX, scheduling_strategy=where
            ).remote(
                job,
                (context.launch, context.epoch, node, context.node_count),
                master,
                dict(variables),
            )
        self.where: dict[str, tuple[str, str]] = {
            host: troupe.get(actor.where.remote()) for host, actor in self._actors.items()
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for actor in self._actors.values():
            troupe.kill(actor)

    def run(self, host: str, key: str, text: str) -> Iterator[tuple[int, bytes]]:
        """Yield the output of `NodeShell.run`. Raises ActorDiedError where the node is lost."""
        method = self._actors[host].run.options(
            num_returns="streaming", _generator_backpressure_num_objects=_AHEAD
        )
        for ref in method.remote(key, text):
            yield troupe.get(ref)

    def end(self, host: str, key: str) -> None:
        """Ends that command."""
        with contextlib.suppress(troupe.exceptions.TroupeError):
            troupe.get(self._actors[host].end.remote(key))


class Watch:
    """Calls `action` once who asked has ended the connection; one thread, until it is closed."""

    def __init__(self, asked: socket.socket, action: Callable[[], None]) -> None:
        self._asked, self._action, self._over = asked, action, threading.Event()
        self._thread = threading.Thread(target=self._wait, name="troupe-asked", daemon=True)
        self._thread.start()

    def _wait(self) -> None:
        with contextlib.suppress(OSError):
            while self._asked.recv(1):
                pass
        if not self._over.is_set():
            self._action()

    def close(self) -> None:
        """The end of the connection means nothing any more.

        Nothing reads it from then on: its number may be that of another one soon.
        """
        self._over.set()
        with contextlib.suppress(OSError):
            self._asked.shutdown(socket.SHUT_RD)
        self._thread.join()
