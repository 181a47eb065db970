"""Classes of plans by their names, as they travel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troupe import _pickled
from troupe.data import _iterator, _options, _plan, _read
from troupe.data._sources import files, images, memory, parquet, pieces, text

_MODULES = (_plan, pieces, files, parquet, text, images, memory, _iterator, _options, _read)


def named(kind: str) -> type:
    """The class of that name. Raises LookupError for one that this version has not."""
    for module in _MODULES:
        found = vars(module).get(kind)
        if isinstance(found, type) and issubclass(found, _plan.Travels):
            return found
    raise LookupError(f"troupe.data has no {kind!r}: the process that sent it has another version")


@_pickled.maker("of_data")
def _of_data(kind: str, fields: Mapping[str, Any]) -> Any:
    """Something of a dataset's plan: the class `kind` of troupe.data's rooms."""
    return _pickled.of_fields(named(kind), fields)
