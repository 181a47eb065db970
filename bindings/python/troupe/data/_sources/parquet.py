"""Parquet: pieces are row groups, read by pyarrow; rows and bytes are known from the files'
ends."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from troupe import exceptions
from troupe.data import _errors
from troupe.data._errors import DataError
from troupe.data._plan import Travels
from troupe.data._sources import files
from troupe.data._sources.pieces import FilePiece, grouped

BLOCK_BYTES = 16 << 20
"""What a block is to have about: small row groups are read several at a time."""
AT_ONCE_BYTES = 4 << 20
"""Columns of so many bytes are decoded at once: decoding holds them encoded, unpacked and as
values, which of all columns is four times a block."""
_DAMAGED = "the file is damaged or no Parquet file: write it again, or leave it out (skip_paths=)"
_FOOTERS_AT_ONCE = 8


@dataclass(frozen=True)
class ParquetReader(Travels):
    """Makes blocks of row groups."""

    columns: tuple[str, ...] | None = None
    filesystem: Any = None
    partitioning: Any = None
    include_paths: bool = False
    schema: Any = None
    filter: Any = None
    names: tuple[str, ...] = ()  # all columns that there are
    filled: Mapping[str, Any] = field(
        default_factory=dict
    )  # the types of columns that have no value in some of the files

    def with_columns(self, columns: Sequence[str]) -> ParquetReader | None:
        """Return a reader of only these columns; None if there cannot be one."""
        there = self.columns if self.columns is not None else self.names
        if (
            self.filter is not None
            or self.include_paths
            or self.partitioning is not None
            or not set(columns) <= set(there)
        ):
            return None
        return dataclasses.replace(self, columns=tuple(columns))

    def read(self, piece: FilePiece) -> pa.Table:
        """The block. Raises DataError naming the file."""
        try:
            with pq.ParquetFile(piece.path, filesystem=self.filesystem) as file:
                in_file = (
                    None
                    if self.columns is None
                    else [name for name in self.columns if name in file.schema_arrow.names]
                )
                table = _read(file, list(piece.groups), in_file)
        except (pa.ArrowException, OSError) as error:
            raise _errors.of_reading(piece.path, error, _DAMAGED) from None
        for name, kind in self.filled.items():
            at = table.schema.get_field_index(name)
            if at >= 0 and pa.types.is_null(table.schema.field(at).type):
                table = table.set_column(at, pa.field(name, kind), table.column(at).cast(kind))
        table = with_folder_columns(
            table.replace_schema_metadata(None),
            piece.path,
            self.partitioning,
            include_paths=self.include_paths,
        )
        if self.columns is not None:
            table = table.select(
                [
                    *self.columns,
                    *(["path"] if self.include_paths and "path" not in self.columns else []),
                ]
            )
        if self.schema is not None:
            table = table.cast(self.schema)
        return table if self.filter is None else table.filter(self.filter)


def _read(file: pq.ParquetFile, groups: list[int], columns: list[str] | None) -> pa.Table:
    """The row groups, some columns after the others.

    What decoding took goes back to the system: an allocator would keep it for ever.
    """
    names, rows = file.schema_arrow.names, [file.metadata.row_group(group) for group in groups]
    if sum(group.total_byte_size for group in rows) <= AT_ONCE_BYTES:
        return file.read_row_groups(groups, columns=columns, use_threads=False)
    sizes = dict.fromkeys(names, 0)
    for group in rows:
        for column in map(group.column, range(group.num_columns)):
            name = column.path_in_schema.partition(".")[0]
            if name in sizes:
                sizes[name] += column.total_uncompressed_size
    wanted = names if columns is None else columns
    runs = grouped([sizes[name] for name in wanted], AT_ONCE_BYTES)
    if len(runs) < 2 or len(sizes) < len(names):  # a name twice cannot be asked for
        return file.read_row_groups(groups, columns=columns, use_threads=False)
    parts = [
        file.read_row_groups(groups, columns=wanted[first:end], use_threads=False)
        for first, end in runs
    ]
    pa.default_memory_pool().release_unused()
    found = {
        field.name: (part.column(field.name), field) for part in parts for field in part.schema
    }
    return pa.Table.from_arrays(
        [found[name][0] for name in wanted], schema=pa.schema([found[name][1] for name in wanted])
    )


def with_folder_columns(
    table: pa.Table, path: str, partitioning: Any, *, include_paths: bool
) -> pa.Table:
    """With what the folders' names say, and with the file's path, as columns."""
    said = partitioning.columns(path) if partitioning is not None else {}
    if include_paths:
        said["path"] = path
    for name, value in said.items():
        if name not in table.column_names:
            table = table.append_column(name, pa.repeat(pa.scalar(value), table.num_rows))
    return table


def pieces_of(
    found: files.Found, reader: ParquetReader, blocks: int | None
) -> tuple[list[FilePiece], ParquetReader]:
    """The pieces of all files, and the reader that knows their columns.

    Reads the files' ends, several at a time.

    Raises DataError for a file that is none, and for files of several schemas.
    """

    def footer(file: tuple[str, int]) -> Any:
        try:
            return pq.read_metadata(file[0], filesystem=found.filesystem)
        except (pa.ArrowException, OSError) as error:
            raise _errors.of_reading(file[0], error, _DAMAGED) from None

    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        footers = list(pool.map(footer, found.files))
    schemas = [each.schema.to_arrow_schema().remove_metadata() for each in footers]
    types = _types(found, schemas)
    for (path, _), schema in zip(found.files, schemas, strict=True):
        _check_schema(types, path, schema, schemas[0].names, reader)
    filled = {
        name: kind
        for name, (_, kind) in types.items()
        if any(pa.types.is_null(each.field(name).type) for each in schemas if name in each.names)
    }
    partitioned = reader.partitioning is not None and any(
        reader.partitioning.columns(path) for path, _ in found.files
    )
    reader = dataclasses.replace(
        reader,
        names=tuple(schemas[0].names),
        filled=filled,
        partitioning=reader.partitioning if partitioned else None,
        filesystem=found.filesystem,
    )
    _check_columns(found.files[0][0], reader)
    total = sum(
        each.row_group(index).total_byte_size
        for each in footers
        for index in range(each.num_row_groups)
    )
    target = max(1, total // blocks) if blocks else BLOCK_BYTES
    pieces = [
        piece
        for (path, _), each in zip(found.files, footers, strict=True)
        for piece in _of_file(path, each, target, reader)
    ]
    return pieces or [
        FilePiece(found.files[0][0], rows=0)
    ], reader  # a file without rows tells its columns


def _of_file(path: str, footer: Any, target: int, reader: ParquetReader) -> list[FilePiece]:
    groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
    found, row = [], 0
    for first, end in grouped([each.total_byte_size for each in groups], target):
        rows = sum(each.num_rows for each in groups[first:end])
        known = reader.filter is None
        found.append(
            FilePiece(
                path,
                _size(groups[first:end], reader.columns),
                rows if known else None,
                row if known else None,
                tuple(range(first, end)),
            )
        )
        row += rows
    return found


def _size(groups: Sequence[Any], columns: tuple[str, ...] | None) -> int:
    if columns is None:
        return sum(each.total_byte_size for each in groups)
    wanted = set(columns)
    return sum(
        column.total_uncompressed_size
        for each in groups
        for index in range(each.num_columns)
        if (column := each.column(index)).path_in_schema.partition(".")[0] in wanted
    )


def _types(found: files.Found, schemas: Sequence[pa.Schema]) -> dict[str, tuple[str, pa.DataType]]:
    """Return the type of each column, and the first file that has it; a file in which a column has
    no value at all does not tell."""
    types: dict[str, tuple[str, pa.DataType]] = {}
    for told in (False, True):
        for (path, _), schema in zip(found.files, schemas, strict=True):
            for each in schema:
                if told or not pa.types.is_null(each.type):
                    types.setdefault(each.name, (path, each.type))
    return types


def _check_schema(
    types: Mapping[str, tuple[str, pa.DataType]],
    path: str,
    schema: pa.Schema,
    names: Sequence[str],
    reader: ParquetReader,
) -> None:
    """Raise DataError for a file whose columns are not those of the others.

    `names`: of the first file's.
    """
    if reader.schema is not None:
        return
    for name in (
        reader.columns if reader.columns is not None else tuple(dict.fromkeys([*names, *types]))
    ):
        here = schema.field(name).type if name in schema.names else None
        first_path, there = types.get(name, (path, None))
        if here == there or here is not None and pa.types.is_null(here):
            continue
        raise exceptions.with_type_of(
            DataError,
            ValueError(path),
            f"{path} has another schema than {first_path}: column {name!r} is "
            f"{here or 'not there'} in the former, {there or 'not there'} in the latter\n"
            "  columns=[...] reads those that all have alike; or read them apart, make them alike "
            "with map_batches, and union() them",
            path=path,
        )


def _check_columns(path: str, reader: ParquetReader) -> None:
    known = (
        *reader.names,
        *(reader.partitioning.columns(path) if reader.partitioning is not None else ()),
    )
    for name in reader.columns or ():
        if name not in known:
            raise ValueError(
                f"read_parquet(columns=[..., {name!r}]): {path} has {', '.join(known)}"
            )
