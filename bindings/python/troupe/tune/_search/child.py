"""A searcher in a process of its own: what it computes takes no time of the engine's interpreter.

The process is this interpreter again, and ends with the connection, so it never outlives who has
started it. The connection is a pair of sockets that nobody else has. What travels is pickled by
value where it is the program's own, as functions that travel to ranks are.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle

from troupe._cluster import session
from troupe._code import environment
from troupe.tune._core.deciding import End, Proposal, Report, Searcher

_ANSWER_BYTES_MAX = 256 << 20


class SearcherProcessError(RuntimeError):
    """The searcher's process has ended by itself, or its answer cannot be read."""


class Child:
    """The calls of a searcher, each answered by the one in the process.

    Raises what the searcher raises, and SearcherProcessError.

    View: one thread at a time calls; `close` may come from another.
    """

    def __init__(self, searcher: Searcher) -> None:
        self._name = type(getattr(searcher, "_search", searcher)).__name__
        here, there = socket.socketpair()
        own = environment.of_own_process()
        own.setdefault("OMP_NUM_THREADS", "1")
        with there:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-c",
                    _PROGRAM,
                    str(there.fileno()),
                    os.pathsep.join(environment.import_path()),
                ],
                pass_fds=[there.fileno()],
                stdin=subprocess.DEVNULL,
                env=own,
            )
        self._connection = Connection(here.detach())
        self._finished = False
        self._is_closed = False
        try:
            self._connection.send_bytes(cloudpickle.dumps(searcher))
        except (OSError, ValueError) as error:
            raise self._death() from error

    def propose(self, trial: str) -> Proposal | None:
        """As `Searcher.propose`, and what `finished` says after it."""
        answer, self._finished = self._call("propose", trial)
        found: Proposal | None = answer
        return found

    def finished(self) -> bool:
        """As it was after the last proposal."""
        return self._finished

    def proposed(self, trial: str, proposal: Proposal) -> None:
        """As `Searcher.proposed`."""
        self._call("proposed", trial, proposal)

    def reported(self, report: Report) -> None:
        """As `Searcher.reported`."""
        self._call("reported", report)

    def ended(self, trial: str, end: End, last: Report | None) -> None:
        """As `Searcher.ended`."""
        self._call("ended", trial, end, last)

    def over(self) -> None:
        """As `Searcher.over`."""
        self._call("over")

    def _call(self, name: str, *arguments: Any) -> Any:
        try:
            self._connection.send_bytes(cloudpickle.dumps((name, arguments)))
            kind, value = pickle.loads(self._connection.recv_bytes(_ANSWER_BYTES_MAX))
        except (EOFError, OSError) as error:
            raise self._death() from error
        if kind == "raised":
            raise value
        return value

    def _death(self) -> SearcherProcessError:
        if self._is_closed:
            return SearcherProcessError(f"the process of {self._name} was told to end")
        code = self._process.wait()
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return SearcherProcessError(
            f"the process of {self._name} (pid {self._process.pid}) has ended {how} while the "
            "sweep needed it; its last words "
            "are on stderr. The sweep can be resumed: it goes on with the same suggestions"
        )

    def close(self) -> None:
        """Ends the process; it is over when this returns."""
        self._is_closed = True
        self._process.kill()
        self._process.wait()


_PROGRAM = """import sys
from troupe.tune._search.child import serve
serve(int(sys.argv[1]), sys.argv[2])"""
_IN_NO_CLUSTER = (
    "this process has a sweep's searcher, and is in no cluster: a searcher computes, "
    "and starts neither tasks nor actors"
)


def serve(descriptor: int, folders: str) -> None:
    """The process: a searcher, and calls to it, until nobody asks any more.

    `folders`: the program's import path, for classes of its own; the libraries that the searcher
    imports are the installed ones.
    """
    session.refusal = _IN_NO_CLUSTER
    sys.path += filter(None, folders.split(os.pathsep))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the engine's to hear
    connection = Connection(descriptor)
    try:
        searcher = pickle.loads(connection.recv_bytes())
        while True:
            name, arguments = pickle.loads(connection.recv_bytes())
            try:
                value = getattr(searcher, name)(*arguments)
                answer = ("returned", (value, searcher.finished()) if name == "propose" else value)
                data = cloudpickle.dumps(answer)
            except Exception as error:  # a searcher of the user's may raise anything
                data = _raised(error)
            connection.send_bytes(data)
    except (EOFError, OSError):
        pass


def _raised(error: Exception) -> bytes:
    try:
        data = cloudpickle.dumps(("raised", error))
        pickle.loads(data)
    except Exception:  # an exception that does not survive its pickle
        data = pickle.dumps(("raised", RuntimeError(f"{type(error).__name__}: {error}")))
    found: bytes = data
    return found
