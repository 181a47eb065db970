"""pyarrow, which blocks are made of: asked for when something needs it, with one sentence where it
is not there."""

from __future__ import annotations

import importlib
from typing import Any

from troupe._code import extras

_EXTRA = {"torch": "torch"}  # the extra of troupe that brings it; all others come with "data"


def need(name: str, what: str) -> Any:
    """Return the module of that name, for `what`.

    Raises MissingPackageError with what to install.
    """
    root = name.partition(".")[0]
    with extras.needed(
        root,
        what,
        f"'troupe[{_EXTRA.get(root, 'data')}]', on every node whose processes read or map data",
    ):
        return importlib.import_module(name)
