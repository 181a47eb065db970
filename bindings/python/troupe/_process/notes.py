"""Notes about an error that only this host can make: added before it is printed, and before it
travels."""

from __future__ import annotations

from typing import Any


def add(begin: dict[str, Any], error: BaseException) -> None:
    """Never raises."""
    if isinstance(error, RuntimeError):  # the type torch raises for NCCL and Gloo
        from troupe.launch import _interface_words

        _interface_words.noted(error, begin["node_name"])
