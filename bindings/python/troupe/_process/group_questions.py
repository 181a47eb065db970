"""Questions that a rank of a group asks all others by the group's store: how far are you?

A question is a number in the store, which each rank looks at while its count stands still; it
answers the latest one, and anew when what it would say has changed. What is asked for different
reasons has keys of its own, so that no question takes the answers of another one.
"""

from __future__ import annotations

import json
import os
import socket
from typing import Any

from troupe._code import failures
from troupe._process.late_ranks import Answer


class Questions:
    """Questions of one group and one reason, as one rank asks and answers them. Used by the
    watching thread only."""

    def __init__(self, key: str, rank: int, size: int) -> None:
        self._key, self._rank, self._size = key, rank, size
        self._answered: tuple[int, int, bool] | None = None

    def ask_first(self, store: Any, begun: int, turn: int = 0) -> int:
        """Asks, and returns the question; 0 where another rank has asked about this operation in
        this turn."""
        if store.add(f"{self._key}/{begun}/{turn}", 1) != 1:
            return 0
        found: int = store.add(f"{self._key}/asked", 1)
        return found

    def answer(self, store: Any, begun: int, waits: bool, still_s: float) -> None:
        """Answers the latest question, unless it knows that already."""
        question = store.add(f"{self._key}/asked", 0)
        if question == 0 or self._answered == (question, begun, waits):
            return
        self._answered = (question, begun, waits)
        where = "" if waits else failures.where()
        store.set(
            f"{self._key}/{question}/{self._rank}",
            json.dumps([begun, waits, socket.gethostname(), os.getpid(), where, still_s]),
        )

    def answers(self, store: Any, question: int) -> list[Answer | None]:
        """By rank of the group; None: it has said nothing."""
        found: list[Answer | None] = []
        for rank in range(self._size):
            key = f"{self._key}/{question}/{rank}"
            found.append(Answer(*json.loads(store.get(key))) if store.check([key]) else None)
        return found
