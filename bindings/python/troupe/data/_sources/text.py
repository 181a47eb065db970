"""CSV and JSON: a file is one block, read by pyarrow.

Large ones, and those for which more blocks are asked, are cut at line ends.

A cut within a quoted value of a CSV file is found by the number of quotes before it, and is an
error that says what to do: with `newlines_in_values=True` the file is looked through first, and cut
where rows begin.
"""

from __future__ import annotations

import dataclasses
import functools
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
from pyarrow import fs

from troupe.data import _blocks, _errors
from troupe.data._plan import Travels
from troupe.data._sources import csv_rows, files
from troupe.data._sources.parquet import with_folder_columns
from troupe.data._sources.pieces import FilePiece, ranges

WHOLE_BYTES = 64 << 20
"""Files of at most so many bytes are read whole, whatever is in them."""
PIECE_BYTES = 32 << 20
LINE_MOST = 64 << 20
BLOCK_MOST = 1 << 30
"""Bytes of which pyarrow infers the types, and the largest value or object."""
DEPTH_MOST = 500
"""Objects and arrays of JSON within each other: pyarrow crashes on some thousands."""
_LOOK = 1 << 20
_PACKED = (".gz", ".bz2", ".zst", ".lz4", ".br")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NULL = re.compile(rb"(?:\xef\xbb\xbf)?\s*null")
_ARRAY = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[")


@dataclass(frozen=True)
class TextReader(Travels):
    """Makes blocks of text.

    `format`: "csv", or "json" (an object in each line; with `arrays` also an array of them).
    `schema`: of all blocks, from the file `first`.
    """

    format: str
    filesystem: Any = None
    partitioning: Any = None
    include_paths: bool = False
    arrays: bool = False
    schema: Any = None
    first: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    apart = True
    """It is read by processes of the cluster, where there is one: damaged text has crashed parsers
    before."""

    def with_columns(self, columns: Sequence[str]) -> None:
        """Return None: all columns of a line are read anyway."""

    def read(self, piece: FilePiece) -> pa.Table:
        """Return the block. Raises DataError naming the file."""
        part = "" if piece.stop is None else f" (bytes {piece.start} to {piece.stop})"
        try:
            table = self._table(piece)
        except _REFUSED as error:
            raise _errors.of_reading(piece.path + part, error, self._hint()) from None
        return with_folder_columns(
            table, piece.path, self.partitioning, include_paths=self.include_paths
        )

    def types(self, path: str, size: int) -> pa.Schema | None:
        """Return the columns of a file, or of the lines at the beginning of a large one; None where
        it is empty. Raises DataError naming the file."""
        try:
            data = self.content(path, None if size <= WHOLE_BYTES else WHOLE_BYTES)
            if size > WHOLE_BYTES:
                rows = self.row_ends()
                data = data[: data.rfind(b"\n") + 1 if rows is None else rows.last(data)]
            return self._parse(data).schema if data.strip() else None
        except _REFUSED as error:
            raise _errors.of_reading(path, error, self._hint()) from None

    def content(self, path: str, most: int | None = None) -> bytes:
        """Return the bytes of the file, unpacked."""
        if self.filesystem is None and files.is_pipe(path):  # a pipe, which pyarrow cannot open
            with open(path, "rb") as pipe:
                return pipe.read()
        with (self.filesystem or fs.LocalFileSystem()).open_input_stream(path) as file:
            found: bytes = file.read(most)
            return found

    def row_ends(self) -> csv_rows.RowEnds | None:
        """Return what finds the ends of rows of a CSV file whose values may have newlines; None
        where it is read whole, or cut at any newline."""
        if (
            self.format != "csv"
            or self.options.keys() != {"parse_options"}
            or not self.options["parse_options"].newlines_in_values
        ):
            return None
        return csv_rows.RowEnds.of(self.options["parse_options"])

    def cuts(self, path: str, each: int) -> list[int]:
        """Return where rows begin, one for about every `each` bytes of such a file, which is read
        once. Raises DataError naming the file."""
        rows = self.row_ends()
        assert rows is not None
        try:
            with (self.filesystem or fs.LocalFileSystem()).open_input_stream(path) as file:
                return rows.cuts(file.read, each, LINE_MOST)
        except _REFUSED as error:
            raise _errors.of_reading(path, error, self._hint()) from None

    def _hint(self) -> str:
        if self.format == "csv":
            return (
                "types are those of the first file: "
                "convert_options=pyarrow.csv.ConvertOptions(column_types={...}) says others, "
                "parse_options=pyarrow.csv.ParseOptions(...) another delimiter"
            )
        return (
            "types are those of the first file: "
            "parse_options=pyarrow.json.ParseOptions(explicit_schema=...) says others"
        )

    def _table(self, piece: FilePiece) -> pa.Table:
        data = self.content(piece.path) if piece.stop is None else self._lines(piece)
        if not data or piece.start and not data.strip():
            return self.schema.empty_table() if self.schema is not None else pa.table({})
        table = self._parse(data, self.schema.names if piece.start else None)
        if self.schema is not None and self.format == "json":
            table = self._with_nulls(table)
        if self.schema is None or table.column_names == self.schema.names:
            return table
        if sorted(table.column_names) != sorted(self.schema.names):
            raise ValueError(
                f"it has the columns {', '.join(table.column_names)}, and {self.first} has "
                f"{', '.join(self.schema.names)}: read them apart, make "
                "them alike with map_batches, and union() them"
            )
        return table.select(self.schema.names)

    def _lines(self, piece: FilePiece) -> bytes:
        """Return the lines that begin in the piece."""
        assert piece.stop is not None
        with (self.filesystem or fs.LocalFileSystem()).open_input_file(piece.path) as file:
            begin = max(piece.start - 1, 0)
            data = file.read_at(piece.stop - begin, begin)
            if piece.start:  # the line that begins before belongs to the piece before
                at = data.find(b"\n")
                data = b"" if at < 0 else data[at + 1 :]
            if not data:
                return b""
            rest, at = b"", piece.stop
            while not (rest or data).endswith(b"\n"):
                more = file.read_at(_LOOK, at)
                if not more:
                    break
                end = more.find(b"\n")
                rest += more if end < 0 else more[: end + 1]
                at += len(more)
                if len(rest) > LINE_MOST:
                    raise ValueError(f"a line of more than {LINE_MOST >> 20} MiB")
        data += rest
        if self.format == "csv" and not self.options and data.count(b'"') % 2:
            raise ValueError(
                "a quoted value goes over the end of this part: "
                "parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True) has the file cut "
                "where rows begin"
            )
        if self.format == "csv" and not piece.start and not data.strip():
            raise ValueError(
                "it begins with blank lines: without override_num_blocks it is read as a whole"
            )
        found: bytes = data
        return found

    def _with_nulls(self, table: pa.Table) -> pa.Table:
        """Return the rows with columns of which the first file has nulls alone, as it has them:
        pyarrow crashes when it is told such types."""
        for column in self.schema:
            if not _has_null(column.type):
                continue
            at = table.schema.get_field_index(column.name)
            if at < 0:
                table = table.append_column(column, pa.nulls(len(table), column.type))
            elif table.schema.field(at).type != column.type:
                try:
                    table = table.set_column(at, column, table.column(at).cast(column.type))
                except pa.ArrowException:  # this part has values
                    continue
        return table

    def _parse(self, data: bytes, names: list[str] | None = None) -> pa.Table:
        """Return the rows; `names`: of the columns, where no header is in the data."""
        block = min(len(data) + 1, BLOCK_MOST)
        kinds = (
            {}
            if self.schema is None
            else {each.name: each.type for each in self.schema if not _has_null(each.type)}
        )
        if self.format == "csv":
            return pa.csv.read_csv(
                io.BytesIO(data),
                parse_options=self.options.get("parse_options"),
                read_options=self.options.get("read_options")
                or pa.csv.ReadOptions(use_threads=False, block_size=block, column_names=names),
                convert_options=self.options.get("convert_options")
                or pa.csv.ConvertOptions(column_types=kinds),
            )
        if self.arrays and _ARRAY.match(data):
            rows = json.loads(data)
            if not all(isinstance(row, dict) for row in rows):
                raise ValueError("a JSON array of objects is wanted")
            return _blocks.table_of_rows(rows, self.schema)
        check_json(data)
        parse = self.options.get("parse_options") or pa.json.ParseOptions(
            explicit_schema=pa.schema(kinds) if kinds else None
        )
        table = pa.json.read_json(
            io.BytesIO(data), pa.json.ReadOptions(use_threads=False, block_size=block), parse
        )
        table.validate(full=True)  # checks that texts are UTF-8, which pyarrow does only for CSV
        return table


_REFUSED = (pa.ArrowException, OSError, ValueError, TypeError, OverflowError, RecursionError)
"""Types of exceptions that pyarrow and json raise for a file's content."""


def check_json(data: bytes) -> None:
    """Raise ValueError for JSON on which pyarrow crashes: a null before the first object, or too
    many objects within each other."""
    if _NULL.match(data):
        raise ValueError(
            "it begins with null: an object in each line is wanted, or an array of objects"
        )
    if _depth(data) > DEPTH_MOST and _depth(_STRING.sub(b"", data)) > DEPTH_MOST:
        raise ValueError(f"objects or arrays are nested more than {DEPTH_MOST} deep")


def _depth(data: bytes) -> int:
    """Return how many brackets are open at most, those in strings counted too."""
    steps: np.ndarray = np.zeros(256, np.int8)
    steps[list(b"{[")], steps[list(b"}]")] = 1, -1
    most = open_now = 0
    for start in range(0, len(data), _LOOK):
        found = open_now + np.cumsum(
            steps[np.frombuffer(data, np.uint8, min(_LOOK, len(data) - start), start)],
            dtype=np.int64,
        )
        most, open_now = max(most, int(found.max())), int(found[-1])
    return most


def _has_null(kind: pa.DataType) -> bool:
    """Return True for a type that says nothing of some of its values."""
    return pa.types.is_null(kind) or any(
        _has_null(kind.field(index).type) for index in range(kind.num_fields)
    )


def pieces_of(
    found: files.Found,
    reader: TextReader,
    blocks: int | None,
    apart: Callable[[str, Callable[[], Any]], Any],
) -> tuple[list[FilePiece], TextReader]:
    """Return the pieces of all files, and the reader that knows their types where several pieces
    are to have the same.

    Args:
        apart: calls a function in another process, for this file, where there is one.

    Raises:
        DataError: the file that tells the types cannot be read.
    """
    reader = dataclasses.replace(reader, filesystem=found.filesystem)
    total = sum(size for _, size in found.files)
    target = min(PIECE_BYTES, max(1, total // blocks)) if blocks else PIECE_BYTES
    pieces: list[FilePiece] = []
    for path, size in found.files:
        by_rows = reader.row_ends() is not None
        whole = (
            bool(reader.options)
            and not by_rows
            or path.lower().endswith(_PACKED)
            or path in found.pipes
            or not blocks
            and size <= WHOLE_BYTES
        )
        whole = (
            whole
            or reader.format == "json"
            and reader.arrays
            and bool(_ARRAY.match(reader.content(path, 4096)))
        )
        parts: list[tuple[int, int | None]] = (
            [(0, None)] if whole or not size else list(ranges(size, target))
        )
        if len(parts) > 1 and by_rows:
            cuts = apart(path, functools.partial(reader.cuts, path, target))
            starts = [at for at in cuts if at < size]
            parts = list(zip([0, *starts], [*starts, size], strict=True))
        pieces += [
            FilePiece(
                path,
                size if stop is None else stop - start,
                None,
                0 if start == 0 else None,
                (),
                start,
                None if len(parts) == 1 else stop,
            )
            for start, stop in parts
        ]
    is_cut = any(each.stop is not None for each in pieces)
    if len(pieces) > 1 and (is_cut or not reader.options) and not found.pipes:
        for path, size in found.files:
            schema = apart(path, functools.partial(reader.types, path, size)) if size else None
            if schema is not None:
                return pieces, dataclasses.replace(reader, schema=schema, first=path)
    return pieces, reader
