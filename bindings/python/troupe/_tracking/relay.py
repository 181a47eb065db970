"""The caller's side of a store that is the caller's own: takes what the ranks ask of it, and brings the answers.

The store is asked in a process beside this one (`local_store`), which imports what a server of MLflow's needs: the program itself is neither slowed
nor changed. One request is asked after the other, as such a store is written by one at a time anyway.
"""
from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from troupe import _calls, exceptions
from troupe._tracking import local_store, loopback

AGAIN_S = 1.0
ENDS_S = 10.0


class Relay:
    """Of one launch; a thread, and a process. `say` hears of what does not work."""

    def __init__(self, tracker: Any, uri: str, say: Callable[[str], None]) -> None:
        self._tracker, self._say = tracker, say
        self._over = threading.Event()
        path = os.pathsep.join(each or os.getcwd() for each in sys.path)  # this program's, wherever it has it from
        self._process = subprocess.Popen(
            [sys.executable, "-m", local_store.__name__, uri], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path}, start_new_session=True)
        self._errors = b""
        threading.Thread(target=self._read_errors, name="troupe-store-errors", daemon=True).start()
        threading.Thread(target=self._carry, name="troupe-store", daemon=True).start()

    def end(self) -> None:
        """The launch is over: the process ends."""
        self._over.set()
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        try:
            self._process.wait(ENDS_S)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _read_errors(self) -> None:
        for line in self._process.stderr:  # type: ignore[union-attr]
            self._errors = (self._errors + line)[-4000:]

    def _carry(self) -> None:
        answers: list[tuple[int, int, str, bytes]] = []
        while not self._over.is_set():
            try:
                asked = _calls.get(self._tracker.exchange.remote(answers))
            except exceptions.ActorDiedError:
                return
            except exceptions.TroupeError:  # it is made anew elsewhere
                if self._over.wait(AGAIN_S):
                    return
                continue
            answers = [(number, *self._ask(*request)) for number, *request in asked]

    def _ask(self, method: str, path: str, kind: str, body: bytes) -> loopback.Answer:
        try:
            local_store.write(self._process.stdin, {"method": method, "path": path, "type": kind}, body)  # type: ignore[arg-type]
            answer = local_store.read(self._process.stdout)  # type: ignore[arg-type]
        except (OSError, ValueError) as error:
            return self._lost(str(error))
        if answer is None:
            return self._lost("it has ended")
        header, content = answer
        return header["status"], header["type"], content

    def _lost(self, why: str) -> loopback.Answer:
        last = self._errors.decode(errors="replace").strip().rpartition("\n")[2]
        text = f"the process that has this program's tracking store cannot be asked: {why}" + (f" ({last})" if last else "")
        if not self._over.is_set():
            more = "\n  pip install mlflow: mlflow-skinny has no server, which the store of several processes needs" if "No module named" in last else ""
            self._say(text + more)
        return 503, "application/json", loopback.problem("TEMPORARILY_UNAVAILABLE", text)
