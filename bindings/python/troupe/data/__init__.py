"""Datasets: files and rows, mapped by functions and dealt to ranks, by Ray's names.

    from troupe import data

    ds = data.read_parquet("/data/train").map_batches(normalise)
    for batch in ds.iter_torch_batches(batch_size=256): ...

Needs pyarrow (`pip install 'troupe[data]'`). View: any process; functions run in the cluster where
the process is a part of one.
"""

from __future__ import annotations

from typing import Any

from troupe.data._arrow import need

need("pyarrow", "troupe.data")

from troupe.data import _missing
from troupe.data._dataset import Dataset, MaterializedDataset
from troupe.data._errors import DataError
from troupe.data._in_memory import (
    from_arrow,
    from_items,
    from_numpy,
    from_pandas,
    range,
    range_tensor,
)
from troupe.data._iterator import DataIterator
from troupe.data._options import ActorPoolStrategy, TaskPoolStrategy
from troupe.data._read import (
    FileShuffleConfig,
    read_csv,
    read_images,
    read_json,
    read_parquet,
)
from troupe.data._schema import Schema
from troupe.data._sources.files import Partitioning

__all__ = [
    "ActorPoolStrategy",
    "DataError",
    "DataIterator",
    "Dataset",
    "FileShuffleConfig",
    "MaterializedDataset",
    "Partitioning",
    "Schema",
    "TaskPoolStrategy",
    "from_arrow",
    "from_items",
    "from_numpy",
    "from_pandas",
    "range",
    "range_tensor",
    "read_csv",
    "read_images",
    "read_json",
    "read_parquet",
]


def __getattr__(name: str) -> Any:
    raise AttributeError(_missing.told_of_module(name))
