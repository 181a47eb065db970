"""Stages done by threads of this process: for plans without functions of the user's, which pyarrow
reads without Python's lock, and where there is no cluster."""

from __future__ import annotations

import os
import queue
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from troupe.data import _work
from troupe.data._apply import Runner
from troupe.data._plan import Stage
from troupe.data._sources.pieces import Held, Part

Events = queue.SimpleQueue[tuple[int, Any]]


def cpus() -> int:
    """How many CPUs this process may use."""
    return len(os.sched_getaffinity(0))


class Threads:
    """A stage run by threads.

    Its classes have an instance for each piece of work at a time, made when it is first needed.
    """

    def __init__(
        self,
        stage: Stage,
        events: Events,
        pool: ThreadPoolExecutor,
        scatter: _work.Scatter | None = None,
    ) -> None:
        self._stage, self._events, self._pool, self._scatter = stage, events, pool, scatter
        self._idle: queue.SimpleQueue[Runner] = queue.SimpleQueue()

    @property
    def limit(self) -> int:
        """How many may be under way: more than threads, so that these have work while the consumer
        has it too."""
        most, there = self._stage.compute.most, cpus()
        return most or (there if self._stage.compute.kind == "actors" else 2 * there)

    def start(self, number: int, piece: Any) -> None:
        """Begins; an event says how it ended."""
        self._pool.submit(self._run, number, piece)

    def _run(self, number: int, piece: Any) -> None:
        try:
            try:
                runner = self._idle.get_nowait()
            except queue.Empty:
                runner = Runner(self._stage)
            rows, size, tables = _work.done(runner, piece, number, self._scatter)
            self._idle.put(runner)
            held = piece.piece if isinstance(piece, Part) else piece
            own = not self._stage.of_user and not isinstance(held, Held)
            self._events.put(
                (number, _work.block(piece, rows, size, tables, scatter=self._scatter, own=own))
            )
        except BaseException as error:  # the consumer's thread raises it
            self._events.put((number, error))

    def close(self) -> None:
        """The pool is ended by who made it."""
