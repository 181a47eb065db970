"""The caller's side of a store that is the caller's own: takes what the ranks ask of it, and brings
the answers.

The store is asked in the process beside this one (`store_process`). One request is asked after the
other, as such a store is written by one at a time anyway.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from troupe import exceptions
from troupe._base import calls as _calls
from troupe._tracking import loopback
from troupe._tracking.store_process import StoreProcess, StoreProcessError

AGAIN_S = 1.0


class Relay:
    """The relay of one launch; a thread. `say` is called with errors."""

    def __init__(self, tracker: Any, store: StoreProcess, say: Callable[[str], None]) -> None:
        self._tracker, self._store, self._say = tracker, store, say
        self._over = threading.Event()
        threading.Thread(target=self._carry, name="troupe-store", daemon=True).start()

    def end(self) -> None:
        """The launch is over: nothing is carried any more."""
        self._over.set()

    def _carry(self) -> None:
        answers: list[tuple[int, int, str, bytes]] = []
        while not self._over.is_set():
            try:
                asked = _calls.get(self._tracker.exchange.remote(answers))
            except exceptions.ActorDiedError:
                return
            except exceptions.TroupeError:  # the actor is started anew elsewhere
                if self._over.wait(AGAIN_S):
                    return
                continue
            answers = [(number, *self._ask(*request)) for number, *request in asked]

    def _ask(self, method: str, path: str, kind: str, body: bytes) -> loopback.Answer:
        try:
            header, content = self._store.ask({"method": method, "path": path, "type": kind}, body)
        except StoreProcessError as error:
            if not self._over.is_set():
                self._say(str(error))
            return 503, "application/json", loopback.problem("TEMPORARILY_UNAVAILABLE", str(error))
        return header["status"], header["type"], content
