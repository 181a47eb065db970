"""A connection of the thread that watches groups to the store where they meet, beside the program's.

A thread of the program that waits in the store, for the other members of a group that it makes, holds the program's connection until they
have come. Its rank says and asks nothing by that connection meanwhile.
"""
from __future__ import annotations

from typing import Any


def root(store: Any) -> Any:
    """Return the store below all prefixes: keys there are the same for all groups of the process."""
    while (below := getattr(store, "underlying_store", None)) is not None:
        store = below
    return store


class WatchStore:
    """Connection of one thread, made when it is first asked for, and anew where the program's groups meet in another store."""

    def __init__(self) -> None:
        self._of: Any = None
        self._own: Any = None

    def beside(self, store: Any) -> Any:
        """Return a connection to the root of this store. Blocks while it connects; raises RuntimeError where it cannot."""
        below = root(store)
        if self._own is None or below is not self._of:
            clone = getattr(below, "clone", None)  # torch has it since 2.8
            self._of, self._own = below, below if clone is None else clone()
        return self._own

    def forget(self) -> None:
        """Drop the connection, which has failed."""
        self._of = self._own = None
