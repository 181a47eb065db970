"""CSV and JSON: pieces are ranges of a file's bytes, each read from the first line that begins in it.

A line break inside a quoted value would be taken for a line's end; `newlines_in_values` of pyarrow's ParseOptions makes a file one piece.
"""
from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
from pyarrow import fs

from troupe import exceptions
from troupe.data import _blocks, _errors
from troupe.data._errors import DataError
from troupe.data._plan import Travels
from troupe.data._sources import files
from troupe.data._sources.parquet import with_folder_columns
from troupe.data._sources.pieces import FilePiece, ranges

PIECE_BYTES = 8 << 20
LINE_MOST = 64 << 20
_LOOK = 1 << 20
_PACKED = (".gz", ".bz2", ".zst", ".lz4", ".br")


@dataclass(frozen=True)
class TextReader(Travels):
    """Makes blocks of lines. `format`: "csv", "json" (a value in each line) or "array" (a JSON array of them). `schema`: of all blocks."""

    format: str
    filesystem: Any = None
    partitioning: Any = None
    include_paths: bool = False
    header: bytes = b""
    schema: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def with_columns(self, columns: Sequence[str]) -> None:
        """None: all columns of a line are read anyway."""

    def read(self, piece: FilePiece) -> pa.Table:
        """The block. Raises DataError naming the file."""
        try:
            table = self._table(piece)
        except (pa.ArrowException, OSError, ValueError, UnicodeError) as error:
            part = "" if piece.stop is None else f" (bytes {piece.start} to {piece.stop})"
            raise _errors.of_reading(piece.path + part, error, self._hint()) from None
        return with_folder_columns(table, piece.path, self.partitioning, include_paths=self.include_paths)

    def _hint(self) -> str:
        if self.format == "csv":
            return ("types are those of the beginning of the first file: convert_options=pyarrow.csv.ConvertOptions(column_types={...}) says others, "
                    "parse_options=pyarrow.csv.ParseOptions(...) another delimiter")
        return "types are those of the beginning of the first file: parse_options=pyarrow.json.ParseOptions(explicit_schema=...) says others"

    def _table(self, piece: FilePiece) -> pa.Table:
        if self.format == "array":
            with self._open(piece.path) as file:
                rows = json.loads(file.read())
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                raise ValueError("a JSON array of objects is wanted")
            return _blocks.table_of_rows(rows)
        if piece.stop is None:
            with self._open(piece.path) as file:
                return self._parse(file, whole=True)
        data = self._lines(piece)
        return self._parse(io.BytesIO(data), whole=False) if data.strip() else self._empty()

    def _empty(self) -> pa.Table:
        return self.schema.empty_table() if self.schema is not None else pa.table({})

    def _open(self, path: str) -> Any:
        return (self.filesystem or fs.LocalFileSystem()).open_input_stream(path)

    def _lines(self, piece: FilePiece) -> bytes:
        assert piece.stop is not None
        with (self.filesystem or fs.LocalFileSystem()).open_input_file(piece.path) as file:
            begin = max(piece.start - 1, 0)
            data = file.read_at(piece.stop - begin, begin)
            if piece.start:  # the line that begins before belongs to the piece before
                at = data.find(b"\n")
                if at < 0:
                    return b""
                data = data[at + 1:]
            if not data:
                return b""
            rest, at = b"", piece.stop
            while not (rest or data).endswith(b"\n"):
                more = file.read_at(_LOOK, at)
                if not more:
                    break
                end = more.find(b"\n")
                rest += more if end < 0 else more[:end + 1]
                at += len(more)
                if len(rest) > LINE_MOST:
                    raise ValueError(f"a line of more than {LINE_MOST >> 20} MiB")
            data += rest
        return data.removeprefix(self.header) if piece.start == 0 else data

    def _parse(self, source: Any, *, whole: bool) -> pa.Table:
        if self.format == "json":
            parse = self.options.get("parse_options")
            if parse is None and self.schema is not None:
                parse = pa.json.ParseOptions(explicit_schema=self.schema, unexpected_field_behavior="error")
            return pa.json.read_json(source, read_options=pa.json.ReadOptions(use_threads=False, block_size=LINE_MOST), parse_options=parse)
        read, convert = self.options.get("read_options"), self.options.get("convert_options")
        if not whole:
            read = pa.csv.ReadOptions(use_threads=False, column_names=self.schema.names)
        if convert is None and self.schema is not None:
            convert = pa.csv.ConvertOptions(column_types=self.schema)
        return pa.csv.read_csv(source, read_options=read or pa.csv.ReadOptions(use_threads=False), parse_options=self.options.get("parse_options"),
                               convert_options=convert)


def pieces_of(what: str, found: files.Found, reader: TextReader, blocks: int | None, *,
              arrays: bool = False) -> tuple[list[FilePiece], TextReader]:
    """The pieces of all files, and the reader that knows their types. Reads the files' beginnings.

    Raises DataError for a file that cannot be read, and for one that has another header.
    """
    reader = dataclasses.replace(reader, filesystem=found.filesystem)
    total = sum(size for _, size in found.files)
    target = min(PIECE_BYTES, max(1, total // blocks)) if blocks else PIECE_BYTES
    pieces: list[FilePiece] = []
    for path, size in found.files:
        if arrays and reader.format == "json" and _begins_array(reader, path):
            reader = dataclasses.replace(reader, format="array", schema=None)
        whole = path.lower().endswith(_PACKED) or bool(reader.options) or reader.format == "array"
        if not whole and reader.schema is None and size:
            reader = _with_types(reader, path)
        elif not whole and reader.format == "csv" and size:
            _check_header(what, reader, found.files[0][0], path)
        parts: list[tuple[int, int | None]] = [(0, None)] if whole else list(ranges(size, target))
        pieces += [FilePiece(path, size if stop is None else stop - start, None, 0 if start == 0 else None, (), start, stop) for start, stop in parts]
    return pieces, reader


def _with_types(reader: TextReader, path: str) -> TextReader:
    try:
        with reader._open(path) as file:
            data = file.read(_LOOK)
        lines = data[:data.rfind(b"\n") + 1] or data
        if reader.format == "json":
            table = pa.json.read_json(io.BytesIO(lines), read_options=pa.json.ReadOptions(use_threads=False, block_size=LINE_MOST))
            return dataclasses.replace(reader, schema=table.schema)
        schema = pa.csv.read_csv(io.BytesIO(lines), read_options=pa.csv.ReadOptions(use_threads=False)).schema
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise _errors.of_reading(path, error, reader._hint()) from None
    return dataclasses.replace(reader, schema=schema, header=_header(data))


def _header(data: bytes) -> bytes:
    return data[:data.find(b"\n") + 1] if b"\n" in data else data


def _check_header(what: str, reader: TextReader, first: str, path: str) -> None:
    with reader._open(path) as file:
        header = _header(file.read(_LOOK))
    if header.strip() != reader.header.strip():
        raise exceptions.with_type_of(
            DataError, ValueError(path), f"{what}: {path} begins with {_shown(header)}, and {first} with {_shown(reader.header)}: they have other columns\n"
            "  read them apart, make them alike with map_batches, and union() them", path=path)


def _shown(header: bytes) -> str:
    text = header.decode("utf-8", "replace").strip()
    return repr(text if len(text) <= 200 else text[:200] + "...")


def _begins_array(reader: TextReader, path: str) -> bool:
    with reader._open(path) as file:
        return file.read(4096).lstrip()[:1] == b"["
