"""A plan carried out: its blocks, one after the other, as they are asked for."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from troupe import exceptions
from troupe._cluster import status_lines
from troupe.data import _deal, _plan, _spill, _threads, _work
from troupe.data._flow import Flow
from troupe.data._plan import Node, Stage
from troupe.data._sources.pieces import Held

BUDGET_BYTES = 32 << 20
BUDGET_BYTES_PER_CPU = 16 << 20
PATIENCE_S = 60.0
"""How long nothing is heard of the work under way before that is said."""


@dataclass(frozen=True)
class Place:
    """The place where functions run: threads of this process, or `parallel` processes of the
    cluster, with these options where a function has none."""

    parallel: int
    cluster: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    def budget(self) -> int:
        """Bytes of blocks that may be under way."""
        return BUDGET_BYTES + BUDGET_BYTES_PER_CPU * self.parallel


def here() -> Place:
    """Return the place for a whole dataset: the cluster, if this process is a part of one."""
    import troupe

    if not troupe.is_initialized():
        return Place(_threads.cpus())
    return Place(max(1, int(troupe.cluster_resources().get("CPU", 1))), cluster=True)


def beside() -> Place:
    """Return the place for one reader's share: processes on its own node that hold no CPUs, as the
    reader may hold all there are and waits for them."""
    import troupe

    if not troupe.is_initialized():
        return Place(_threads.cpus())
    from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    node = troupe.get_runtime_context().get_node_id()
    options = (
        {"num_cpus": 0, "scheduling_strategy": NodeAffinitySchedulingStrategy(node)}
        if node
        else {"num_cpus": 0}
    )
    return Place(_threads.cpus(), cluster=True, options=options)


def apart(path: str, function: Callable[[], Any]) -> Any:
    """Return what the function returns, which reads that file: called by a task where this process
    is a part of a cluster.

    Raises:
        DataError: the file cannot be read, or its reader's process died of it.
    """
    import troupe

    if not troupe.is_initialized():
        return function()
    from troupe.data import _tasks

    try:
        return troupe.get(troupe.remote(function).options(num_cpus=0, name="data: types").remote())
    except exceptions.TroupeError as error:
        raise _tasks.cause_of(error, path) from None


def blocks(node: Node, place: Place, epoch: int = 0) -> Iterator[_work.Block]:
    """The blocks of a simplified plan, in order: those that have rows, or one without rows, which
    has the columns. Raises DataError where a block cannot be made, at its place in the order.

    What is under way stays within the place's budget. Closing the iterator ends it.
    """
    source = _blocks_of(node, place, epoch)
    empty: _work.Block | None = None
    filled = False
    try:
        for block in source:
            if block.rows:
                filled, empty = True, None
                yield block
            elif empty is None and not filled:
                empty = block
            del block
    finally:
        source.close()  # type: ignore[attr-defined]
    if empty is not None:
        yield empty


def _blocks_of(node: Node, place: Place, epoch: int) -> Iterator[_work.Block]:
    base, ops = _plan.chain(node)
    if isinstance(base, _plan.Read):
        return _run(iter(_plan.in_order(base, epoch)), _plan.stages(base, ops), place)
    below = _of_base(base, place, epoch)
    return _run(map(held, below), _plan.stages(base, ops), place) if ops else below


def _of_base(base: Node, place: Place, epoch: int) -> Iterator[_work.Block]:
    if isinstance(base, _plan.Union_):
        return (block for child in base.children for block in blocks(child, place, epoch))
    if isinstance(base, _plan.Limit):
        return _limited(blocks(base.child, place, epoch), base.rows)
    if isinstance(base, _plan.Rechunk):
        return _run(_rechunked(base, place, epoch), [Stage()], place)
    assert isinstance(base, _plan.Shuffle)
    return _shuffled(base, place, epoch)


def held(block: _work.Block) -> Held:
    """The block as a piece that is read again."""
    return Held(((block.value, 0, block.rows),), block.size, block.first_row, path=block.path)


def _limited(source: Iterator[_work.Block], rows: int) -> Iterator[_work.Block]:
    try:
        while rows > 0 and (block := next(source, None)) is not None:
            if block.rows > rows:
                table = block.table().slice(0, rows)
                block = _work.Block(
                    rows, table.nbytes, table, block.path, block.first_row, block.own
                )
            rows -= block.rows
            yield block
    finally:
        source.close()  # type: ignore[attr-defined]


def _rechunked(base: _plan.Rechunk, place: Place, epoch: int) -> Iterator[Held]:
    source = ((block, block.rows) for block in blocks(base.child, place, epoch))
    if base.rows is not None:
        runs: Any = _deal.rechunked(source, base.rows)
    else:
        kept = _spill.kept(source)
        runs = _deal.runs(kept, _deal.even(sum(rows for _, rows in kept), base.blocks or 1))
    for run in runs:
        if run:
            yield Held(
                tuple((block.value, start, stop) for block, start, stop in run),
                sum(_share(*part) for part in run),
            )


def _share(block: _work.Block, start: int, stop: int) -> int:
    return block.size * (stop - start) // max(block.rows, 1)


def _shuffled(base: _plan.Shuffle, place: Place, epoch: int) -> Iterator[_work.Block]:
    import random

    seed = base.seed if base.seed is not None else random.SystemRandom().getrandbits(48)
    count = base.blocks or max(1, sum(len(read.pieces) for read in _plan.reads(base)))
    scatter = _work.Scatter(count, seed)
    below, ops = _plan.chain(base.child)
    if isinstance(below, _plan.Read):
        source = _run(iter(_plan.in_order(below, epoch)), _plan.stages(below, ops), place, scatter)
    else:
        source = _run(map(held, blocks(base.child, place, epoch)), [Stage()], place, scatter)
    kept = _spill.kept((block, block.rows) for block in source)

    def gathered() -> Iterator[Held]:
        for index in range(count):
            parts = tuple(
                (block.value[index], 0, block.rows_of_parts[index])
                for block, _ in kept
                if block.rows_of_parts[index]
            )
            if parts:
                size = sum(_share(block, 0, block.rows_of_parts[index]) for block, _ in kept)
                yield Held(parts, size, shuffle=(seed, index))

    return _run(gathered(), [Stage()], place)


def _run(
    source: Iterator[Any], stages: list[Stage], place: Place, scatter: _work.Scatter | None = None
) -> Iterator[_work.Block]:
    """Pieces through stages; the last one's blocks are scattered where that is asked for."""
    events: _threads.Events = queue.SimpleQueue()
    elsewhere = place.cluster and (
        len(stages) > 1 or stages[0].compute.kind != "any" or stages[0].of_user
    )
    pool = (
        None if elsewhere else ThreadPoolExecutor(_threads.cpus(), thread_name_prefix="troupe-data")
    )
    shops: list[Any] = []
    try:
        for index, stage in enumerate(stages):
            shops.append(
                _shop(
                    stage,
                    events,
                    place,
                    pool,
                    scatter if index == len(stages) - 1 else None,
                    alone=len(stages) == 1,
                )
            )
        yield from _loop(source, shops, events, place)
    finally:
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)
        for shop in shops:
            shop.close()


def _shop(
    stage: Stage,
    events: _threads.Events,
    place: Place,
    pool: ThreadPoolExecutor | None,
    scatter: _work.Scatter | None,
    *,
    alone: bool,
) -> Any:
    if pool is not None:
        return _threads.Threads(stage, events, pool, scatter)
    from troupe.data import _tasks

    if stage.compute.kind == "actors":  # a CPU is left for the tasks that feed them
        return _tasks.Actors(
            stage,
            events,
            place.parallel if alone else max(1, place.parallel - 1),
            place.options,
            scatter,
        )
    return _tasks.Tasks(stage, events, place.parallel, place.options, scatter)


def _loop(
    source: Iterator[Any], shops: list[Any], events: _threads.Events, place: Place
) -> Iterator[_work.Block]:
    flow = Flow([shop.limit for shop in shops], place.budget(), 4 * place.parallel + 8)
    at: dict[int, Any] = {}  # number -> its piece, or its block as it is now
    failures: dict[int, BaseException] = {}
    while True:
        while flow.may_pull():
            piece = next(source, None)
            if piece is None:
                flow.ended()
                break
            at[flow.offered(piece.size)] = piece
            for stage, number in flow.starts():
                shops[stage].start(number, held(at[number]) if stage else at[number])
        for stage, number in flow.starts():
            shops[stage].start(number, held(at[number]) if stage else at[number])
        taken = flow.take()
        if taken is not None:
            if taken in failures:
                raise failures[taken]
            block = at.pop(taken)
            yield block
            del block
            flow.released()
        elif flow.over():
            return
        else:
            _hear(flow, events, at, failures)


def _hear(
    flow: Flow, events: _threads.Events, at: dict[int, Any], failures: dict[int, BaseException]
) -> None:
    number, outcome = _next(events)
    if callable(outcome):
        outcome = outcome()
    if outcome is None:  # another process does it
        return
    if isinstance(outcome, BaseException):
        failures[number] = outcome
        flow.failed(number)
    else:
        at[number] = outcome
        flow.finished(number, outcome.size)


def _next(events: _threads.Events) -> tuple[int, Any]:
    while True:
        try:
            return events.get(timeout=PATIENCE_S)
        except queue.Empty:
            status_lines.say(
                f"troupe.data: nothing is heard for {PATIENCE_S:g} s of the functions under way: "
                "they take long, or wait for CPUs that others "
                "hold; `troupe list tasks`, `troupe list actors` and `troupe explain ID` show which"
            )
