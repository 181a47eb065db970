"""The source of one block: a part of a file, a range of numbers, rows that are in memory already.
Pure: nothing is read here."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from troupe.data._plan import Travels


@dataclass(frozen=True)
class FilePiece(Travels):
    """Rows of one file: `groups` of a Parquet file, or the lines that begin in the bytes from
    `start` up to `stop` (None: its end).

    `first_row`: of the file, the first one's number; None: it is not known. `rows` and `size`
    (bytes when it is read): the same.
    """

    path: str
    size: int = 0
    rows: int | None = None
    first_row: int | None = 0
    groups: tuple[int, ...] = ()
    start: int = 0
    stop: int | None = None

    def part(self, start: int, stop: int) -> Part:
        """Some of its rows."""
        return Part(self, start, stop)


@dataclass(frozen=True)
class FilesPiece(Travels):
    """Whole files, each of which is a row."""

    files: tuple[str, ...]
    size: int = 0

    @property
    def path(self) -> str:
        """The first one."""
        return self.files[0]

    @property
    def rows(self) -> int:
        """The number of rows: one for each file."""
        return len(self.files)

    @property
    def first_row(self) -> None:
        """Rows are files."""
        return None

    def part(self, start: int, stop: int) -> FilesPiece:
        """Some of the files."""
        return FilesPiece(
            self.files[start:stop], self.size * (stop - start) // max(len(self.files), 1)
        )


@dataclass(frozen=True)
class RangePiece(Travels):
    """The numbers from `start` up to `stop`."""

    start: int
    stop: int
    path: str = ""

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.stop - self.start

    @property
    def size(self) -> int:
        """The size in bytes: 8 for each row."""
        return self.rows * 8

    @property
    def first_row(self) -> int:
        """Row n is the number n."""
        return self.start

    def part(self, start: int, stop: int) -> RangePiece:
        """Some of them."""
        return RangePiece(self.start + start, self.start + stop)


@dataclass(frozen=True)
class Held(Travels):
    """Rows of blocks that are held: `parts` are (block, first, last) of a pyarrow Table each, or
    the ref of one.

    `shuffle`: (seed, number) of the order that they are put in. `row`: of the dataset, the first
    one's number, where that means something.
    """

    parts: tuple[tuple[Any, int, int], ...]
    size: int = 0
    row: int | None = None
    shuffle: tuple[int, int] | None = None
    path: str = ""

    @property
    def rows(self) -> int:
        """The number of rows of all parts."""
        return sum(stop - start for _, start, stop in self.parts)

    @property
    def first_row(self) -> int | None:
        """See `row`."""
        return self.row

    def part(self, start: int, stop: int) -> Any:
        """Some of its rows."""
        if self.shuffle is not None or len(self.parts) != 1:
            return Part(self, start, stop)
        ((block, first, _),) = self.parts
        return dataclasses.replace(
            self,
            parts=((block, first + start, first + stop),),
            size=self.size * (stop - start) // max(self.rows, 1),
            row=None if self.row is None else self.row + start,
        )


@dataclass(frozen=True)
class Part(Travels):
    """The rows of a piece from `start` up to `stop`: the piece is read, and the others are left
    out."""

    piece: Any
    start: int
    stop: int

    @property
    def path(self) -> str:
        """The piece's."""
        found: str = self.piece.path
        return found

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.stop - self.start

    @property
    def size(self) -> int:
        """The whole piece's, which is read."""
        found: int = self.piece.size
        return found

    @property
    def first_row(self) -> int | None:
        """The index of the first row, in the file or in the dataset."""
        first = self.piece.first_row
        return None if first is None else first + self.start

    def part(self, start: int, stop: int) -> Part:
        """Some of them."""
        return Part(self.piece, self.start + start, self.start + stop)


def grouped(sizes: list[int], target: int) -> list[tuple[int, int]]:
    """(first, end) of runs of neighbours whose sizes make up the target, or a little less: one at
    least in each."""
    found, first, held = [], 0, 0
    for index, size in enumerate(sizes):
        if index > first and held + size > target:
            found.append((first, index))
            first, held = index, 0
        held += size
    if first < len(sizes):
        found.append((first, len(sizes)))
    return found


def ranges(size: int, target: int) -> list[tuple[int, int]]:
    """(start, stop) of even ranges that cover the size, none over the target."""
    count = max(1, -(-size // max(target, 1)))
    return [(size * index // count, size * (index + 1) // count) for index in range(count)]
