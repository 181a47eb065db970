"""A connection of the thread that watches groups to the store where they meet, beside the
program's.

A thread of the program that waits in the store, for the other members of a group that it makes,
holds the program's connection until they have come. Its rank says and asks nothing by that
connection meanwhile.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

CONNECT_S = 30.0
"""How long the watching thread tries to reach a store that may be gone.

Other groups go unwatched meanwhile.
"""
_PROBE = ["troupe/watch"]


def root(store: Any) -> Any:
    """Return the store below all prefixes: keys there are the same for all groups of the
    process."""
    while (below := getattr(store, "underlying_store", None)) is not None:
        store = below
    return store


class WatchStore:
    """Connection of one thread, made when it is first asked for, and anew where the program's
    groups meet in another store.

    No store of the program's is held: one that is its server has to end with the program's last use
    of it, for its port may be used again at once.
    """

    def __init__(self) -> None:
        self._address: tuple[str, int] | None = None
        self._own: Any = None

    def beside(self, store: Any) -> Any:
        """Return a connection to the root of this store, which is itself where it is no TCPStore.

        Blocks while it connects; raises RuntimeError where it cannot.
        """
        from torch.distributed import TCPStore

        below = root(store)
        if not isinstance(below, TCPStore):
            return below
        address = below.host, below.port
        del below, store
        if address != self._address or not self._is_alive():
            self.forget()
            self._own = TCPStore(
                *address, None, False, timedelta(seconds=CONNECT_S), wait_for_workers=False
            )
            self._address = address
        return self._own

    def _is_alive(self) -> bool:
        """Return whether the other side answers: a store of the same port may be another one by
        now."""
        try:
            self._own.check(_PROBE)
        except RuntimeError:
            return False
        return True

    def forget(self) -> None:
        """Drop the connection, which has failed."""
        self._address = self._own = None
