"""pyarrow, which blocks are made of: asked for when something needs it, with one sentence where it is not there."""
from __future__ import annotations

import importlib
from typing import Any

_EXTRA = {"torch": "torch"}  # of troupe, that brings it; all others come with "data"


def need(name: str, what: str) -> Any:
    """The module of that name, for `what`. Raises ImportError with what to install on this machine."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        root = name.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != root:
            raise
        raise ImportError(f"{what} needs {root}, which is not installed here: pip install 'troupe[{_EXTRA.get(root, 'data')}]', on every node whose processes read or map data",
                          name=root) from None
