"""Plans of datasets: nodes of a plan, simplified, and cut into stages.

Pure: nothing is read.

A plan is a tree: Read at its leaves; Apply, Limit, Shuffle, Rechunk and Union above. A stage is a
run of functions that one process applies to one block after the other, so that a block travels
between processes only where functions need other processes.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from troupe import _pickled

SEPARATE = ("num_gpus", "accelerator_type")
"""Options of functions that reading the files is not done with."""


class Travels:
    """A dataclass that travels by its fields."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.of_data, (type(self).__name__, _pickled.fields_of(self))


@dataclass(frozen=True)
class Compute(Travels):
    """The place where functions run: "any" (they are Arrow's own), "tasks", or "actors", of which
    there are `least` at the beginning and `most` at most. `most` None: as many as there are CPUs.
    """

    kind: str = "any"
    least: int = 1
    most: int | None = None


@dataclass(frozen=True)
class Op(Travels):
    """A function of a plan, and the `kind` of its calls.

    `keeps_rows`: as many rows come out as went in. `settings`: what Arrow's own are given.
    """

    kind: str
    fn: Any = None
    name: str = ""
    fn_args: tuple[Any, ...] = ()
    fn_kwargs: Mapping[str, Any] = field(default_factory=dict)
    constructor_args: tuple[Any, ...] = ()
    constructor_kwargs: Mapping[str, Any] = field(default_factory=dict)
    batch_size: int | None = None
    batch_format: str = "numpy"
    zero_copy: bool = True
    keeps_rows: bool = True
    settings: Any = None
    compute: Compute = Compute()
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def of_user(self) -> bool:
        """True if it runs user code."""
        return self.fn is not None


@dataclass(frozen=True)
class Read(Travels):
    """Pieces that `reader` makes blocks of.

    `shuffle_files`: (seed, whether each epoch has an order of its own), a seed of None for chance.
    """

    pieces: tuple[Any, ...] = ()
    reader: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    shuffle_files: tuple[int | None, bool] | None = None
    concurrency: int | None = None


@dataclass(frozen=True)
class Apply(Travels):
    """A function, applied to what the child gives."""

    child: Any
    op: Op


@dataclass(frozen=True)
class Limit(Travels):
    """The first rows."""

    child: Any
    rows: int


@dataclass(frozen=True)
class Shuffle(Travels):
    """All rows in another order, of this seed (None: another one each time), in so many blocks
    (None: as many as were read)."""

    child: Any
    seed: int | None = None
    blocks: int | None = None


@dataclass(frozen=True)
class Rechunk(Travels):
    """The rows in the same order, in `blocks` blocks or in blocks of `rows` rows."""

    child: Any
    blocks: int | None = None
    rows: int | None = None


@dataclass(frozen=True)
class Union_(Travels):
    """The rows of all children, one after the other."""

    children: tuple[Any, ...]


Node = Read | Apply | Limit | Shuffle | Rechunk | Union_


@dataclass(frozen=True)
class Stage(Travels):
    """The work of one process on a block: reading it, where there is a reader, and applying the
    functions."""

    reader: Any = None
    ops: tuple[Op, ...] = ()
    compute: Compute = Compute()
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def of_user(self) -> bool:
        """True if it runs user code."""
        return any(op.of_user for op in self.ops)


def children(node: Node) -> tuple[Any, ...]:
    """Return the nodes whose rows this node takes."""
    return (
        node.children
        if isinstance(node, Union_)
        else ()
        if isinstance(node, Read)
        else (node.child,)
    )


def reads(node: Node) -> list[Read]:
    """The leaves."""
    return (
        [node]
        if isinstance(node, Read)
        else [leaf for child in children(node) for leaf in reads(child)]
    )


def rows_of(node: Node) -> int | None:
    """How many rows it gives, where that is known before anything is read."""
    if isinstance(node, Read):
        counts = [piece.rows for piece in node.pieces]
        return None if None in counts else sum(counts)
    if isinstance(node, Union_):
        counts = [rows_of(child) for child in node.children]
        return None if None in counts else sum(counts)
    rows = rows_of(node.child)
    if isinstance(node, Apply) and not node.op.keeps_rows:
        return None
    return min(rows, node.rows) if isinstance(node, Limit) and rows is not None else rows


def simplified(node: Node) -> Node:
    """A plan of the same rows that reads less: columns that are left out are not read, nor are rows
    behind a limit."""
    if isinstance(node, Read):
        return node
    if isinstance(node, Union_):
        return Union_(tuple(simplified(child) for child in node.children))
    child = simplified(node.child)
    if isinstance(node, Apply):
        if isinstance(child, Union_):
            return Union_(tuple(simplified(Apply(each, node.op)) for each in child.children))
        if (
            node.op.kind == "select"
            and isinstance(child, Read)
            and (reader := child.reader.with_columns(node.op.settings)) is not None
        ):
            return dataclasses.replace(child, reader=reader)
    if isinstance(node, Limit):
        if isinstance(child, Apply) and child.op.keeps_rows:
            return Apply(simplified(Limit(child.child, node.rows)), child.op)
        if isinstance(child, Read) and rows_of(child) is not None and child.shuffle_files is None:
            return dataclasses.replace(child, pieces=_first(child.pieces, node.rows))
    return dataclasses.replace(node, child=child)


def _first(pieces: Sequence[Any], rows: int) -> tuple[Any, ...]:
    found = []
    for piece in pieces:
        if rows <= 0:
            break
        found.append(piece if piece.rows <= rows else piece.part(0, rows))
        rows -= piece.rows
    return tuple(found)


def in_order(read: Read, epoch: int) -> tuple[Any, ...]:
    """The pieces in the order of this epoch: files are shuffled whole, so that each is still read
    from its beginning to its end."""
    if read.shuffle_files is None:
        return read.pieces
    by_file: dict[str, list[Any]] = {}
    for piece in read.pieces:
        by_file.setdefault(piece.path, []).append(piece)
    order = sorted(by_file)
    seed, each_epoch = read.shuffle_files
    chance = (
        random.SystemRandom()
        if seed is None
        else random.Random(f"{seed}:{epoch if each_epoch else 0}")
    )
    chance.shuffle(order)
    return tuple(piece for path in order for piece in by_file[path])


def chain(node: Node) -> tuple[Node, list[Op]]:
    """The functions on top of a plan, the first one first, and what is below them."""
    ops: list[Op] = []
    while isinstance(node, Apply):
        ops.append(node.op)
        node = node.child
    return node, ops[::-1]


def stages(base: Node, ops: Sequence[Op]) -> list[Stage]:
    """The stages of a stream from `base` through the functions: one, unless functions need other
    processes than the ones before."""
    first = base if isinstance(base, Read) else None
    found = [
        Stage(
            first.reader if first else None,
            (),
            _reading(first),
            dict(first.options) if first else {},
        )
    ]
    for op in ops:
        last = found[-1]
        if op.compute.kind == "any" or (
            op.compute == last.compute and op.options == last.options and op.compute.kind == "tasks"
        ):
            found[-1] = dataclasses.replace(last, ops=(*last.ops, op))
        elif (
            last.compute.kind == "any"
            and not last.options
            and not (last.reader and set(op.options) & set(SEPARATE))
        ):
            found[-1] = dataclasses.replace(
                last, ops=(*last.ops, op), compute=op.compute, options=op.options
            )
        else:
            found.append(Stage(None, (op,), op.compute, op.options))
    if found[0].compute.kind == "any" and getattr(found[0].reader, "apart", False):
        found[0] = dataclasses.replace(found[0], compute=Compute("tasks"))
    return found


def _reading(read: Read | None) -> Compute:
    if read is not None and (read.options or read.concurrency):
        return Compute("tasks", most=read.concurrency)
    return Compute()


def deals_alone(node: Node, *, equal: bool) -> bool:
    """Return True if each reader of a split can compute its own rows from the plan: no row count
    depends on the rows' contents."""
    base, ops = chain(node)
    if not isinstance(base, Read):
        return False
    return not equal or (rows_of(base) is not None and all(op.keeps_rows for op in ops))


def replaced(read: Read, pieces: tuple[Any, ...]) -> Read:
    """Return a Read of other pieces, in the order in which they are given."""
    return dataclasses.replace(read, pieces=pieces, shuffle_files=None)


def seeded(node: Node) -> Node:
    """The plan of several readers, who have to shuffle files alike: where no seed was given, one
    that is chosen now."""
    if isinstance(node, Apply):
        return dataclasses.replace(node, child=seeded(node.child))
    if isinstance(node, Read) and node.shuffle_files is not None and node.shuffle_files[0] is None:
        return dataclasses.replace(
            node, shuffle_files=(random.SystemRandom().getrandbits(48), node.shuffle_files[1])
        )
    return node
