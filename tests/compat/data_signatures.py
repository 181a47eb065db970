"""The arguments and defaults of `ray.data`, for those of its names that Troupe has.

Writes `ray_data_signatures.txt`, with a Python that has Ray:

    python tests/compat/data_signatures.py > tests/compat/ray_data_signatures.txt

A line is a name and its parameters: "*" and "**" in front where they gather arguments, "*," before
those that are given by name alone, "=" and the default. Defaults that are objects stand as the
names of their classes.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Iterator
from typing import Any

FUNCTIONS = (
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
    "ActorPoolStrategy",
    "TaskPoolStrategy",
    "FileShuffleConfig",
)
METHODS = {
    "Dataset": (
        "add_column",
        "columns",
        "count",
        "drop_columns",
        "filter",
        "flat_map",
        "iter_batches",
        "iter_rows",
        "iter_torch_batches",
        "iterator",
        "limit",
        "map",
        "map_batches",
        "materialize",
        "random_shuffle",
        "rename_columns",
        "repartition",
        "schema",
        "select_columns",
        "show",
        "split",
        "streaming_split",
        "take",
        "take_all",
        "take_batch",
        "to_pandas",
        "union",
        "write_parquet",
    ),
    "DataIterator": (
        "iter_batches",
        "iter_rows",
        "iter_torch_batches",
        "materialize",
        "schema",
        "stats",
    ),
}


def shown(function: Any) -> str:
    """The parameters, without `self` and annotations."""
    found, by_name = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self" or parameter.name.startswith("_"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not by_name:
            found.append("*")
        by_name = by_name or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        found.append(
            stars
            + parameter.name
            + ("" if parameter.default is parameter.empty else f"={default(parameter.default)}")
        )
    return ", ".join(found)


def default(value: Any) -> str:
    """A default as text."""
    if isinstance(value, enum.Enum):
        value = value.value
    return (
        repr(value)
        if value is None or isinstance(value, (bool, int, str, list, tuple))
        else type(value).__name__
    )


def signatures(module: Any) -> Iterator[tuple[str, str]]:
    """(name, parameters) of all, in a module like `ray.data`."""
    for name in FUNCTIONS:
        yield name, shown(getattr(module, name))
    for of, names in METHODS.items():
        for name in names:
            yield f"{of}.{name}", shown(getattr(getattr(module, of), name))


if __name__ == "__main__":
    import ray
    import ray.data

    print(f"# Arguments of ray.data {ray.__version__}, by tests/compat/data_signatures.py")
    for each in signatures(ray.data):
        print(*each, sep=": ")
