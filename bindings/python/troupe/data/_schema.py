"""Columns and their types."""

from __future__ import annotations

import pyarrow as pa

from troupe import _pickled


class Schema:
    """The columns of a dataset: `names`, `types` (pyarrow's), and `base_schema`, pyarrow's own."""

    def __init__(self, base_schema: pa.Schema) -> None:
        self.base_schema = base_schema

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self.base_schema.names)

    @property
    def types(self) -> list[pa.DataType]:
        """The types of the columns, in order; for arrays of one shape, pyarrow's fixed-shape
        tensor."""
        return list(self.base_schema.types)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.base_schema.equals(other.base_schema)

    def __hash__(self) -> int:
        return hash(tuple(self.names))

    def __repr__(self) -> str:
        width = max([6, *map(len, self.names)])
        lines = [
            f"{name:<{width}}  {kind}" for name, kind in zip(self.names, self.types, strict=True)
        ]
        return "\n".join([f"{'Column':<{width}}  Type", f"{'-' * width}  ----", *lines])


_pickled.named_in("troupe.data", Schema)
