"""Datasets of files. Names, arguments and defaults are Ray's."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from troupe import _pickled
from troupe._cluster import status_lines
from troupe.data import _options, _plan, _stream
from troupe.data._dataset import Dataset
from troupe.data._plan import Travels
from troupe.data._sources import files, images, parquet, text
from troupe.data._sources.files import HIVE, Partitioning

if TYPE_CHECKING:
    from pyarrow import fs

_JSON = [
    "json",
    "jsonl",
    *(f"{kind}.{packed}" for packed in ("gz", "br", "zst", "lz4") for kind in ("json", "jsonl")),
]
_IMAGES = ["png", "jpg", "jpeg", "tif", "tiff", "bmp", "gif"]


@dataclasses.dataclass(frozen=True)
class FileShuffleConfig(Travels):
    """Another order of files in each epoch, of this seed (None: of chance);
    `reseed_after_execution=False`: the same order in each. As Ray's."""

    seed: int | None = None
    reseed_after_execution: bool = True


def blocks_asked(what: str, parallelism: int, override_num_blocks: int | None) -> int | None:
    for name, value in (
        ("override_num_blocks", override_num_blocks),
        ("parallelism", None if parallelism == -1 else parallelism),
    ):
        if value is not None:
            return _options.positive(what, name, value)
    return None


def _shuffle(what: str, given: Any) -> Any:
    if given is None:
        return None
    if given == "files":
        return None, True
    if isinstance(given, FileShuffleConfig):
        return given.seed, given.reseed_after_execution
    raise ValueError(f"{what}(shuffle={given!r}): 'files', or FileShuffleConfig(seed)")


def _refuse(what: str, **given: Any) -> None:
    for name, value in given.items():
        if value:
            raise ValueError(
                f"{what}({name}=...) is not a part of Troupe; map_batches() makes of columns what "
                "they are to be, and a filesystem of pyarrow's "
                "opens files as they need"
            )


def dataset_of(
    what: str,
    pieces: Sequence[Any],
    reader: Any,
    given: Mapping[str, Any],
    shuffle: Any,
    concurrency: int | None,
) -> Dataset:
    most = None if concurrency is None else _options.positive(what, "concurrency", concurrency)
    return Dataset(
        _plan.Read(
            tuple(pieces), reader, _options.of_processes(what, given), _shuffle(what, shuffle), most
        )
    )


def read_parquet(
    paths: str | list[str],
    *,
    filesystem: fs.FileSystem | None = None,
    catalog: None = None,
    columns: list[str] | None = None,
    parallelism: int = -1,
    num_cpus: float | None = None,
    num_gpus: float | None = None,
    memory: float | None = None,
    tensor_column_schema: None = None,
    partition_filter: Callable[[list[str]], list[str]] | None = None,
    partitioning: Partitioning | None = HIVE,
    shuffle: Literal["files"] | FileShuffleConfig | None = None,
    include_paths: bool = False,
    include_row_hash: bool = False,
    file_extensions: list[str] | None = ["parquet"],  # noqa: B006 as Ray's, and never changed
    ignore_missing_paths: bool = False,
    skip_paths: str | list[str] | None = None,
    concurrency: int | None = None,
    override_num_blocks: int | None = None,
    label_selector: Mapping[str, str] | None = None,
    fallback_strategy: Sequence[Mapping[str, Any]] | None = None,
    max_calls: int | None = None,
    resources: Mapping[str, float] | None = None,
    accelerator_type: str | None = None,
    runtime_env: Mapping[str, Any] | None = None,
    ray_remote_args: dict[str, Any] | None = None,
    **arrow_parquet_args: object,
) -> Dataset:
    """Rows of Parquet files: a file, a folder with all that is below it, a URI of pyarrow's file
    systems, or a list of these.

    `columns`: which alone are read. `shuffle`: "files", or a FileShuffleConfig: files in another
    order each time. `include_paths`: a column "path". `partitioning`: what folders' names say, as
    columns. `filter=`, `schema=`: pyarrow's. `partition_filter`: a function that is given the paths
    and returns those to read. Options of where functions run (`num_cpus` and so on) have files read
    by tasks that hold that, and not by the process that takes the rows. Reads the files' ends, and
    blocks for that. Raises DataError for files that are missing, damaged or of several schemas,
    ValueError for arguments that can never be right.

        ds = read_parquet("s3://bucket/train/", columns=["x", "label"])
    """
    what = "read_parquet"
    _refuse(
        what,
        catalog=catalog,
        tensor_column_schema=tensor_column_schema,
        include_row_hash=include_row_hash,
    )
    known = {
        "schema",
        "filter",
        "use_threads",
        "memory_map",
        "pre_buffer",
        "batch_size",
    }  # the last four say how fast, and are chosen here
    for name in arrow_parquet_args:
        if name not in known:
            raise ValueError(
                f"read_parquet({name}=...): there is no such argument; of pyarrow's there are "
                "schema and filter"
            )
    found = files.find(
        what,
        paths,
        filesystem,
        file_extensions,
        skip=skip_paths,
        missing_ok=ignore_missing_paths,
        keep=partition_filter,
    )
    reader = parquet.ParquetReader(
        columns=None if columns is None else tuple(columns),
        partitioning=partitioning,
        include_paths=include_paths,
        schema=arrow_parquet_args.get("schema"),
        filter=arrow_parquet_args.get("filter"),
    )
    files.no_pipes(what, found)
    pieces, reader = parquet.pieces_of(
        found, reader, blocks_asked(what, parallelism, override_num_blocks)
    )
    given = {
        "num_cpus": num_cpus,
        "num_gpus": num_gpus,
        "memory": memory,
        "label_selector": label_selector,
        "fallback_strategy": fallback_strategy,
        "max_calls": max_calls,
        "resources": resources,
        "accelerator_type": accelerator_type,
        "runtime_env": runtime_env,
        "ray_remote_args": ray_remote_args,
    }
    return dataset_of(what, pieces, reader, given, shuffle, concurrency)


def read_csv(
    paths: str | list[str],
    *,
    filesystem: fs.FileSystem | None = None,
    parallelism: int = -1,
    num_cpus: float | None = None,
    num_gpus: float | None = None,
    memory: float | None = None,
    arrow_open_stream_args: None = None,
    partition_filter: Callable[[list[str]], list[str]] | None = None,
    partitioning: Partitioning | None = HIVE,
    include_paths: bool = False,
    ignore_missing_paths: bool = False,
    shuffle: Literal["files"] | FileShuffleConfig | None = None,
    file_extensions: list[str] | None = None,
    concurrency: int | None = None,
    override_num_blocks: int | None = None,
    label_selector: Mapping[str, str] | None = None,
    fallback_strategy: Sequence[Mapping[str, Any]] | None = None,
    max_calls: int | None = None,
    resources: Mapping[str, float] | None = None,
    accelerator_type: str | None = None,
    runtime_env: Mapping[str, Any] | None = None,
    ray_remote_args: dict[str, Any] | None = None,
    **arrow_csv_args: object,
) -> Dataset:
    """Rows of CSV files with a header, which all have the same columns; types are those of the
    first file.

    A file is one block, but for those of more than 64 MiB, or where `override_num_blocks` asks for
    more. `arrow_csv_args`: read_options, parse_options and convert_options of pyarrow.csv, with
    which each file is one block. In a cluster tasks read the files. The rest as read_parquet().

        ds = read_csv("table.csv")
    """
    what = "read_csv"
    given = {
        "num_cpus": num_cpus,
        "num_gpus": num_gpus,
        "memory": memory,
        "label_selector": label_selector,
        "fallback_strategy": fallback_strategy,
        "max_calls": max_calls,
        "resources": resources,
        "accelerator_type": accelerator_type,
        "runtime_env": runtime_env,
        "ray_remote_args": ray_remote_args,
    }
    _refuse(what, arrow_open_stream_args=arrow_open_stream_args)
    reader = text.TextReader(
        "csv",
        partitioning=partitioning,
        include_paths=include_paths,
        options=_pyarrows(
            what, arrow_csv_args, ("read_options", "parse_options", "convert_options")
        ),
    )
    found = files.find(
        what,
        paths,
        filesystem,
        file_extensions,
        missing_ok=ignore_missing_paths,
        keep=partition_filter,
    )
    return _text(
        what,
        found,
        reader,
        blocks_asked(what, parallelism, override_num_blocks),
        given,
        shuffle,
        concurrency,
    )


def _text(
    what: str,
    found: files.Found,
    reader: text.TextReader,
    blocks: int | None,
    given: Mapping[str, Any],
    shuffle: Any,
    concurrency: int | None,
) -> Dataset:
    for path in found.pipes:
        status_lines.say(
            f"troupe.data: {what}: {path} is a pipe or a device: each time its rows are taken, "
            "they are waited for until who writes to it "
            "closes it"
        )
    pieces, reader = text.pieces_of(found, reader, blocks, _stream.apart)
    return dataset_of(what, pieces, reader, given, shuffle, concurrency)


def read_json(
    paths: str | list[str],
    *,
    lines: bool = False,
    filesystem: fs.FileSystem | None = None,
    parallelism: int = -1,
    num_cpus: float | None = None,
    num_gpus: float | None = None,
    memory: float | None = None,
    arrow_open_stream_args: None = None,
    partition_filter: Callable[[list[str]], list[str]] | None = None,
    partitioning: Partitioning | None = HIVE,
    include_paths: bool = False,
    ignore_missing_paths: bool = False,
    shuffle: Literal["files"] | FileShuffleConfig | None = None,
    file_extensions: list[str] | None = _JSON,
    concurrency: int | None = None,
    override_num_blocks: int | None = None,
    label_selector: Mapping[str, str] | None = None,
    fallback_strategy: Sequence[Mapping[str, Any]] | None = None,
    max_calls: int | None = None,
    resources: Mapping[str, float] | None = None,
    accelerator_type: str | None = None,
    runtime_env: Mapping[str, Any] | None = None,
    ray_remote_args: dict[str, Any] | None = None,
    **arrow_json_args: object,
) -> Dataset:
    """Rows of JSON files: an object in each line, or an array of objects (`lines` True: never
    that).

    `arrow_json_args`: parse_options of pyarrow.json, with which each file is one block. The rest as
    read_csv().

        ds = read_json("events.jsonl")
    """
    what = "read_json"
    given = {
        "num_cpus": num_cpus,
        "num_gpus": num_gpus,
        "memory": memory,
        "label_selector": label_selector,
        "fallback_strategy": fallback_strategy,
        "max_calls": max_calls,
        "resources": resources,
        "accelerator_type": accelerator_type,
        "runtime_env": runtime_env,
        "ray_remote_args": ray_remote_args,
    }
    _refuse(what, arrow_open_stream_args=arrow_open_stream_args)
    reader = text.TextReader(
        "json",
        partitioning=partitioning,
        include_paths=include_paths,
        arrays=not lines,
        options=_pyarrows(what, arrow_json_args, ("parse_options",)),
    )
    found = files.find(
        what,
        paths,
        filesystem,
        file_extensions,
        missing_ok=ignore_missing_paths,
        keep=partition_filter,
    )
    return _text(
        what,
        found,
        reader,
        blocks_asked(what, parallelism, override_num_blocks),
        given,
        shuffle,
        concurrency,
    )


def _pyarrows(what: str, given: Mapping[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    for name in given:
        if name not in known:
            raise ValueError(
                f"{what}({name}=...): there is no such argument; of pyarrow's there are "
                f"{', '.join(known)}"
            )
    return dict(given)


def read_images(
    paths: str | list[str],
    *,
    filesystem: fs.FileSystem | None = None,
    parallelism: int = -1,
    num_cpus: float | None = None,
    num_gpus: float | None = None,
    memory: float | None = None,
    arrow_open_file_args: None = None,
    partition_filter: Callable[[list[str]], list[str]] | None = None,
    partitioning: Partitioning | None = None,
    size: tuple[int, int] | None = None,
    mode: str | None = None,
    include_paths: bool = False,
    ignore_missing_paths: bool = False,
    shuffle: Literal["files"] | FileShuffleConfig | None = None,
    file_extensions: list[str] | None = _IMAGES,
    concurrency: int | None = None,
    override_num_blocks: int | None = None,
    label_selector: Mapping[str, str] | None = None,
    fallback_strategy: Sequence[Mapping[str, Any]] | None = None,
    max_calls: int | None = None,
    resources: Mapping[str, float] | None = None,
    accelerator_type: str | None = None,
    runtime_env: Mapping[str, Any] | None = None,
    ray_remote_args: dict[str, Any] | None = None,
) -> Dataset:
    """Image files, a row each: a column "image" of arrays, height x width x channels.

    Pillow decodes them.

    `size`: (height, width) that all are made; `mode`: Pillow's, "RGB" say. The rest as
    read_parquet().

        ds = read_images("photos/", size=(224, 224), mode="RGB")
    """
    what = "read_images"
    given = {
        "num_cpus": num_cpus,
        "num_gpus": num_gpus,
        "memory": memory,
        "label_selector": label_selector,
        "fallback_strategy": fallback_strategy,
        "max_calls": max_calls,
        "resources": resources,
        "accelerator_type": accelerator_type,
        "runtime_env": runtime_env,
        "ray_remote_args": ray_remote_args,
    }
    _refuse(what, arrow_open_file_args=arrow_open_file_args)
    if size is not None and (len(size) != 2 or min(size) < 1):
        raise ValueError(f"read_images(size={size!r}): (height, width)")
    found = files.find(
        what,
        paths,
        filesystem,
        file_extensions,
        missing_ok=ignore_missing_paths,
        keep=partition_filter,
    )
    files.no_pipes(what, found)
    reader = images.ImageReader(
        None if size is None else (size[0], size[1]),
        mode,
        found.filesystem,
        partitioning,
        include_paths,
    )
    return dataset_of(
        what,
        images.pieces_of(found, blocks_asked(what, parallelism, override_num_blocks)),
        reader,
        given,
        shuffle,
        concurrency,
    )


_pickled.named_in(
    "troupe.data",
    FileShuffleConfig,
    read_csv,
    read_images,
    read_json,
    read_parquet,
)
