"""Datasets of a training: each worker's share of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from troupe import _pickled


@dataclass
class DataConfig:
    """The choice of a trainer's datasets that are split among its workers, by name: "all", or a
    list.

    Of the others each worker has all rows.

    `execution_options` and `enable_shard_locality` are Ray's and mean nothing: a worker reads its
    share itself, on its own node.
    """

    datasets_to_split: Literal["all"] | Sequence[str] = "all"
    execution_options: object = None
    enable_shard_locality: bool = True

    def __post_init__(self) -> None:
        names = self.datasets_to_split
        if names != "all" and (
            isinstance(names, str) or not all(isinstance(name, str) for name in names)
        ):
            raise TypeError(
                f"DataConfig(datasets_to_split={names!r}): 'all', or a list of datasets' names"
            )


@dataclass(frozen=True)
class Datasets:
    """The datasets of a training, and the names of those that are shared out."""

    by_name: Mapping[str, Any]
    split: frozenset[str]

    def shards(self, workers: int) -> list[dict[str, Any]]:
        """Return the DataIterators of each worker, by name.

        Of every attempt anew: a share begins with its first epoch.
        """
        found: list[dict[str, Any]] = [{} for _ in range(workers)]
        for name, dataset in self.by_name.items():
            parts = (
                dataset.streaming_split(workers, equal=True)
                if name in self.split
                else [dataset.iterator() for _ in range(workers)]
            )
            for mine, part in zip(found, parts, strict=True):
                mine[name] = part
        return found


def checked(datasets: Mapping[str, Any] | None, config: DataConfig) -> Datasets:
    """Raises TypeError or ValueError for what can never be right."""
    datasets = {} if datasets is None else datasets
    if not isinstance(datasets, Mapping):
        raise TypeError(f"TorchTrainer(datasets={datasets!r}): a dict of datasets by name")
    for name, dataset in datasets.items():
        if not isinstance(name, str) or not hasattr(type(dataset), "streaming_split"):
            raise TypeError(
                f"TorchTrainer(datasets={{{name!r}: {type(dataset).__name__}}}): a "
                "troupe.data.Dataset, as troupe.data.read_parquet(path) makes one"
            )
    split = (
        frozenset(datasets)
        if config.datasets_to_split == "all"
        else frozenset(config.datasets_to_split)
    )
    for name in split - set(datasets):
        raise ValueError(
            f"DataConfig(datasets_to_split=[..., {name!r}]): the trainer's datasets are "
            f"{', '.join(datasets) or 'none'}"
        )
    return Datasets(dict(datasets), split)


_pickled.named_in("troupe.train", DataConfig)
