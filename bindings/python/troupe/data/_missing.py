"""Features of `ray.data` that Troupe's datasets lack, and what to use instead.

Pure. Names of the module: `troupe.ray_compat._missing`.
"""

from __future__ import annotations

from troupe.ray_compat import _missing

_QUERY = "a query engine: polars or duckdb over the same files, and read_parquet() of what it wrote"
_ONE_PASS = "iter_batches(), adding up as they come, or polars and duckdb over the same files"
_ROWS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("sort",), f"{_QUERY}; random_shuffle() and the order of files are what training needs"),
    (("groupby", "join", "zip", "aggregate", "unique"), _QUERY),
    (("sum", "min", "max", "mean", "std", "summary"), _ONE_PASS),
    (("random_sample",), "map_batches() that keeps a part of each batch"),
    (("randomize_block_order",), "read_parquet(shuffle='files'), or random_shuffle()"),
    (
        (
            "split_at_indices",
            "split_proportionately",
            "train_test_split",
            "streaming_train_test_split",
        ),
        "split(n), or files of their own for each part",
    ),
    (("with_column", "with_columns"), "add_column()"),
    (("mix",), "union(), and random_shuffle() or local_shuffle_buffer_size"),
    (
        ("to_tf", "iter_tf_batches", "iter_jax_batches", "to_torch"),
        "iter_batches() or iter_torch_batches()",
    ),
    (
        (
            "to_dask",
            "to_daft",
            "to_modin",
            "to_mars",
            "to_spark",
            "to_pandas_refs",
            "to_numpy_refs",
            "to_arrow_refs",
        ),
        "to_pandas(), or write_parquet() and that library's reader",
    ),
    (
        (
            "write_csv",
            "write_json",
            "write_numpy",
            "write_images",
            "write_sql",
            "write_tfrecords",
            "write_webdataset",
            "write_orc",
            "write_lance",
            "write_datasink",
            "write_bigquery",
            "write_delta",
            "write_iceberg",
            "write_mongo",
            "write_clickhouse",
            "write_snowflake",
            "write_kafka",
            "write_turbopuffer",
        ),
        "write_parquet(), or iter_batches() and that format's own library",
    ),
    (
        (
            "num_blocks",
            "size_bytes",
            "input_files",
            "get_internal_block_refs",
            "iter_internal_ref_bundles",
        ),
        "materialize(), whose num_blocks() is known",
    ),
    (
        (
            "stats",
            "explain",
            "get_stats_summary",
            "context",
            "name",
            "set_name",
            "copy",
            "get_dataset_id",
        ),
        "troupe list tasks, which shows what runs",
    ),
    (
        (
            "to_random_access_dataset",
            "serialize_lineage",
            "deserialize_lineage",
            "has_serializable_lineage",
        ),
        "pickle: a Dataset travels as it is",
    ),
)
_INSTEAD = {name: instead for names, instead in _ROWS for name in names}


def told_of_module(name: str) -> str:
    """The text of the AttributeError for a name that the module has not."""
    return f"module 'troupe.data' has no attribute {name!r}{_missing.without(f'ray.data.{name}')}"


def told(what: str, name: str) -> str:
    """The text of the AttributeError for a method that a dataset has not."""
    instead = _INSTEAD.get(name)
    if instead is None:
        return f"{what!r} has no attribute {name!r}"
    return (
        f"{what}.{name} of ray.data is not a part of Troupe, which reads, maps and deals rows "
        f"and is no query engine: use {instead}"
    )
