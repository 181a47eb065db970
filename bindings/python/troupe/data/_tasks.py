"""Stages done by processes of the cluster: tasks, and pools of actors for functions that are
classes."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import troupe
from troupe import _pickled, exceptions
from troupe.data import _errors, _work
from troupe.data._apply import Runner
from troupe.data._plan import Stage
from troupe.data._sources.pieces import Held
from troupe.data._threads import Events

ACTOR_RETRIES = 3
"""How often a block is begun again by another actor after its own has died."""
_ACTORS_KNOW = {
    "num_cpus",
    "num_gpus",
    "memory",
    "resources",
    "label_selector",
    "fallback_strategy",
    "runtime_env",
    "accelerator_type",
    "scheduling_strategy",
}


def result_of(
    runner: Runner, piece: Any, number: int, scatter: _work.Scatter | None
) -> tuple[Any, ...]:
    """Run a stage on a piece and return (rows, bytes), and the tables, each a result of its own
    that stays where it is until it is asked for."""
    rows, size, tables = _work.done(runner, piece, number, scatter)
    return (rows, size), *(_work.compact(each) for each in tables)


def sent(piece: Any) -> Any:
    """The piece as it travels: without memory that is not its own."""
    import dataclasses

    import pyarrow as pa

    if not isinstance(piece, Held) or not any(
        isinstance(block, pa.Table) for block, _, _ in piece.parts
    ):
        return piece
    parts = []
    for block, start, stop in piece.parts:
        if isinstance(block, pa.Table):
            block, start, stop = _work.compact(block.slice(start, stop - start)), 0, stop - start
        parts.append((block, start, stop))
    return dataclasses.replace(piece, parts=tuple(parts))


class Results:
    """Work that is under way elsewhere: refs of what will be said of it, and of its tables."""

    def __init__(self, events: Events, scatter: _work.Scatter | None, *, reads: bool) -> None:
        self.events, self.scatter, self.reads = events, scatter, reads
        self.under_way: dict[int, list[Any]] = {}

    def hear(
        self,
        number: int,
        piece: Any,
        refs: list[Any],
        over: Callable[[int, Any, Exception | None], bool],
    ) -> None:
        """An event says how it ended, unless `over(number, piece, error)`, which who handles the
        event calls, takes care of that."""
        self.under_way[number] = refs

        def ended(outcome: Any) -> None:
            if isinstance(outcome, BaseException):
                self.events.put((number, lambda: self._fail(number, piece, outcome, over)))
            else:
                self.events.put((number, lambda: self._end(number, piece, outcome, refs, over)))

        refs[0].future().add_done_callback(
            lambda future: ended(future.exception() or future.result())
        )

    def _end(
        self,
        number: int,
        piece: Any,
        said: Any,
        refs: list[Any],
        over: Callable[[int, Any, Exception | None], bool],
    ) -> Any:
        self.under_way.pop(number, None)
        over(number, piece, None)
        rows, size = said
        return _work.block(piece, rows, size, refs[1:], scatter=self.scatter)

    def _fail(
        self,
        number: int,
        piece: Any,
        error: BaseException,
        over: Callable[[int, Any, Exception | None], bool],
    ) -> Any:
        self.under_way.pop(number, None)
        if isinstance(error, Exception) and over(number, piece, error):
            return None
        return cause_of(error, piece.path if self.reads else "")

    def cancel(self) -> None:
        """Cancel the running tasks and stop waiting for them."""
        for refs in self.under_way.values():
            with contextlib.suppress(exceptions.TroupeError):
                troupe.cancel(refs[0])
        self.under_way.clear()


def cause_of(error: BaseException, path: str = "") -> BaseException:
    """Return what the user is told: what was raised where the data are, without what brought it
    here. `path`: the file that a process was reading, which is named where the process died."""
    cause = getattr(error, "cause", None)
    if isinstance(error, (exceptions.TaskError, exceptions.ActorDiedError)) and isinstance(
        cause, _errors.DataError
    ):
        return cause
    died = isinstance(
        error, (exceptions.WorkerCrashedError, exceptions.OutOfMemoryError)
    ) and not isinstance(error, exceptions.TaskPlacementGroupRemoved)
    if path and died:
        return exceptions.with_type_of(
            _errors.DataError,
            error,
            f"{path} cannot be read: each process that read it died: {error}\n  the file is "
            "damaged, or needs "
            "more memory than there is: leave it out",
            path=path,
        )
    return error


class Tasks:
    """A stage run by tasks: the runtime repeats those whose process is lost, with equal results, as
    pieces and functions are the same."""

    def __init__(
        self,
        stage: Stage,
        events: Events,
        parallel: int,
        options: Mapping[str, Any],
        scatter: _work.Scatter | None = None,
    ) -> None:
        self._results = Results(events, scatter, reads=stage.reader is not None)
        self.limit = stage.compute.most or 2 * parallel
        made: list[Runner] = []

        def data_task(piece: Any, number: int) -> tuple[Any, ...]:
            if not made:
                made.append(Runner(stage))
            return result_of(made[0], piece, number, scatter)

        names = [op.name for op in stage.ops if op.of_user] or ["read"]
        returns = 2 if scatter is None else 1 + scatter.parts
        self._function = troupe.remote(data_task).options(
            num_returns=returns, name="data: " + ", ".join(names), **{**options, **stage.options}
        )

    def start(self, number: int, piece: Any) -> None:
        """Begins; an event says how it ended."""
        self._results.hear(
            number, piece, self._function.remote(sent(piece), number), lambda *_: False
        )

    def close(self) -> None:
        """Cancels what is under way."""
        self._results.cancel()


class MapWorker:
    """An actor of a pool: a stage with its classes' instances."""

    def __init__(self, stage: Stage) -> None:
        self._runner = Runner(stage)

    def run(self, piece: Any, number: int, scatter: _work.Scatter | None) -> tuple[Any, ...]:
        """See result_of()."""
        return result_of(self._runner, piece, number, scatter)


class Actors:
    """A stage run by a pool of actors: `least` at the beginning, more while all are busy, `most` at
    most. A block whose actor dies goes to another."""

    def __init__(
        self,
        stage: Stage,
        events: Events,
        most: int,
        options: Mapping[str, Any],
        scatter: _work.Scatter | None = None,
    ) -> None:
        self._results = Results(events, scatter, reads=stage.reader is not None)
        self._stage, self._scatter = stage, scatter
        self.limit = max(stage.compute.most or most, 1)
        given = {
            name: value
            for name, value in {**options, **stage.options}.items()
            if name in _ACTORS_KNOW
        }
        self._class = troupe.remote(MapWorker).options(
            **{"num_cpus": 0 if given.get("num_gpus") else 1, **given}
        )
        self._all: list[Any] = []
        self._idle: deque[Any] = deque()
        self._tries: dict[int, int] = {}
        self._busy: dict[int, Any] = {}
        for _ in range(min(stage.compute.least, self.limit)):
            self._idle.append(self._one())

    def _one(self) -> Any:
        self._all.append(self._class.remote(self._stage))
        return self._all[-1]

    def start(self, number: int, piece: Any) -> None:
        """Begins with an actor that is free; an event says how it ended."""
        actor = self._idle.popleft() if self._idle else self._one()
        self._busy[number] = actor
        returns = 2 if self._scatter is None else 1 + self._scatter.parts
        refs = actor.run.options(num_returns=returns).remote(sent(piece), number, self._scatter)
        self._results.hear(number, piece, refs, self._over)

    def _over(self, number: int, piece: Any, error: Exception | None) -> bool:
        """Return True if another actor should retry the piece: not if user code raised, nor if it
        already ended too many actors."""
        actor = self._busy.pop(number)
        if error is None or isinstance(error, exceptions.TaskError):
            self._idle.append(actor)
            return False
        tries = self._tries[number] = self._tries.get(number, 0) + 1
        lost = isinstance(
            error, (exceptions.ActorError, exceptions.ObjectLostError)
        ) and not isinstance(error, exceptions.PlacementError)
        of_data = isinstance(getattr(error, "cause", None), _errors.DataError)
        if not lost or of_data or tries > ACTOR_RETRIES:
            return False
        self.start(number, piece)
        return True

    def close(self) -> None:
        """Ends the pool."""
        self._results.cancel()
        for actor in self._all:
            with contextlib.suppress(exceptions.TroupeError):
                troupe.kill(actor)


_pickled.named_in("troupe._pickled", MapWorker)
