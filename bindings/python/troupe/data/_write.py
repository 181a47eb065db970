"""Parquet files out of blocks."""

from __future__ import annotations

import concurrent.futures
import contextlib
import posixpath
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
from pyarrow import fs

from troupe import exceptions
from troupe.data import _batches, _deal, _threads
from troupe.data._errors import DataError

MODES = ("append", "overwrite", "ignore", "error", "create")


@dataclass(frozen=True)
class Asked:
    """The arguments of write_parquet()."""

    path: str
    filesystem: Any
    partition_cols: tuple[str, ...]
    make_folder: bool
    mode: str
    least_rows: int | None
    most_rows: int | None
    least_bytes: int | None
    arguments: Mapping[str, Any]


def refuse(**given: Any) -> None:
    """Raises ValueError for arguments of Ray's that mean nothing that could be done."""
    instead = {
        "catalog": "the folder's path",
        "filename_provider": "names are made here, and sort in the order of rows",
        "arrow_parquet_args_fn": "pyarrow's arguments themselves, as **arrow_parquet_args",
        "arrow_open_stream_args": "a filesystem of pyarrow's",
    }
    for name, value in given.items():
        if value:
            raise ValueError(f"write_parquet({name}=...) is not a part of Troupe: {instead[name]}")


def mode_of(given: Any) -> str:
    """ "append" and the others, also as Ray's SaveMode."""
    mode = str(getattr(given, "value", given)).lower()
    if mode not in MODES:
        raise ValueError(f"write_parquet(mode={given!r}): there are {', '.join(MODES)}")
    return "error" if mode == "create" else mode


def parquet(tables: Callable[[], Iterator[tuple[pa.Table, bool]]], asked: Asked) -> None:
    """Write all blocks, several files at a time, under hidden names; once all are there they get
    their own, and files they are to replace go."""
    system, folder = _place(asked)
    there = [
        one.path
        for one in system.get_file_info(
            fs.FileSelector(folder, recursive=True, allow_not_found=True)
        )
        if one.type == fs.FileType.File
    ]
    seen = [path for path in there if not posixpath.basename(path).startswith(".")]
    if seen and asked.mode == "ignore":
        return
    if seen and asked.mode == "error":
        raise FileExistsError(
            f"write_parquet({asked.path!r}, mode='error'): the folder has {len(seen)} files, "
            f"{posixpath.basename(seen[0])} the first"
        )
    if asked.make_folder:
        system.create_dir(folder, recursive=True)
    staged: list[tuple[str, str]] = []
    try:
        _stage(tables, asked, system, folder, staged)
        for index, (partial, path) in enumerate(staged):
            with _Writing(path):
                system.move(partial, path)
            staged[index] = path, path
    except BaseException:
        for path, _ in staged:
            with contextlib.suppress(OSError):
                system.delete_file(path)
        raise
    if asked.mode == "overwrite":
        for path in there:
            with _Writing(path, "cannot be removed: what is to replace it is beside it"):
                system.delete_file(path)


def _stage(
    tables: Callable[[], Iterator[tuple[pa.Table, bool]]],
    asked: Asked,
    system: Any,
    folder: str,
    staged: list[tuple[str, str]],
) -> None:
    """Write all blocks under hidden names: `staged` gets these, and the names that they are to
    have. No write is under way any more at the end."""
    mark, most = uuid.uuid4().hex[:8], _threads.cpus()
    under_way: set[concurrent.futures.Future[None]] = set()
    with concurrent.futures.ThreadPoolExecutor(
        most, thread_name_prefix="troupe-data-write"
    ) as pool:
        for number, table in enumerate(_sized(_one_schema(_batches.alike(tables()), asked), asked)):
            if len(under_way) > most:
                done, under_way = concurrent.futures.wait(
                    under_way, return_when=concurrent.futures.FIRST_COMPLETED
                )
                for each in done:
                    each.result()
            for where, part in _by_value(table, asked.partition_cols):
                path = posixpath.join(folder, where, f"{mark}_{number:06}.parquet")
                partial = posixpath.join(folder, where, f".{mark}_{number:06}.parquet.partial")
                staged.append((partial, path))
                under_way.add(pool.submit(_file, system, partial, path, part, asked))
        for each in under_way:
            each.result()


def _one_schema(tables: Iterable[tuple[pa.Table, bool]], asked: Asked) -> Iterator[pa.Table]:
    """The blocks, of which each may have a column without values.

    Raises DataError where arrays are of one shape in some blocks and of several in others, which
    files would have as columns of several types.
    """
    types: dict[str, pa.DataType] = {}
    for table, _ in tables:
        for each in table.schema:
            if (
                not pa.types.is_null(each.type)
                and types.setdefault(each.name, each.type) != each.type
            ):
                text = (
                    f"{asked.path} cannot be written: column {each.name!r} is {types[each.name]} "
                    f"in one block, {each.type} in another one\n"
                    "  repartition() before write_parquet() makes blocks of arrays alike, and so "
                    "does a function that gives all the same shape"
                )
                raise exceptions.with_type_of(DataError, TypeError(text), text, path=asked.path)
        if table.num_columns:
            yield table


def _place(asked: Asked) -> tuple[Any, str]:
    if asked.filesystem is not None:
        return asked.filesystem, asked.path.split("://", 1)[-1]
    return (
        fs.FileSystem.from_uri(asked.path)
        if "://" in asked.path
        else (fs.LocalFileSystem(), posixpath.abspath(posixpath.expanduser(asked.path)))
    )


def _sized(tables: Iterable[pa.Table], asked: Asked) -> Iterator[pa.Table]:
    """Tables as large as files are to be."""
    for table in _gathered(tables, asked.least_rows or 0, asked.least_bytes or 0):
        rows = asked.most_rows or table.num_rows
        if not table.num_rows:
            yield table
            continue
        for length, start in (
            (min(rows, table.num_rows - start), start) for start in range(0, table.num_rows, rows)
        ):
            yield table.slice(start, length)


def _gathered(tables: Iterable[pa.Table], rows: int, size: int) -> Iterator[pa.Table]:
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if (
            sum(each.num_rows for each in waiting) >= rows
            and sum(each.nbytes for each in waiting) >= size
        ):
            joined = pa.concat_tables(waiting)
            waiting = []
            if (
                rows and joined.num_rows > rows
            ):  # files of that many rows, and the rest begins the next one
                (first, rest) = _deal.cut(
                    [(joined, 0, joined.num_rows)], joined.num_rows - joined.num_rows % rows
                )
                waiting = [each.slice(start, stop - start) for each, start, stop in rest]
                joined = pa.concat_tables(
                    [each.slice(start, stop - start) for each, start, stop in first]
                )
            yield joined
    if waiting:
        yield pa.concat_tables(waiting)


def _by_value(table: pa.Table, names: tuple[str, ...]) -> Iterator[tuple[str, pa.Table]]:
    """(folder, rows) of each value of the first name, and of the others below it."""
    if not names:
        yield "", table
        return
    if names[0] not in table.column_names:
        raise ValueError(
            f"write_parquet(partition_cols={list(names)}): there is no column {names[0]!r}; there "
            f"are {', '.join(table.column_names)}"
        )
    column = table.column(names[0])
    for value in column.unique():
        text = (
            "__HIVE_DEFAULT_PARTITION__"
            if not value.is_valid
            else str(value.as_py()).replace("/", "%2F")
        )
        rows = table.filter(
            pa.compute.is_null(column) if not value.is_valid else pa.compute.equal(column, value)
        )
        for below, part in _by_value(rows.drop_columns([names[0]]), names[1:]):
            yield posixpath.join(f"{names[0]}={text}", below), part


def _file(system: Any, partial: str, path: str, table: pa.Table, asked: Asked) -> None:
    with _Writing(path):
        if asked.make_folder:
            system.create_dir(posixpath.dirname(path), recursive=True)
        pq.write_table(table, partial, filesystem=system, **asked.arguments)


class _Writing:
    """A context that turns errors into a DataError that names the file."""

    def __init__(self, path: str, what: str = "cannot be written") -> None:
        self._path, self._what = path, what

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if isinstance(error, (pa.ArrowException, OSError)):
            raise exceptions.with_type_of(
                DataError,
                error,
                f"{self._path} {self._what}: {type(error).__name__}: {error}",
                path=self._path,
            ) from None
