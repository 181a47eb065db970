"""Ownership of a sweep: one engine, by a lock on a file of its folder that says which process has
it (G4)."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from pathlib import Path
from typing import Any

from troupe._code import packed

FILE = ".engine"


def said_in(data: bytes) -> dict[str, Any]:
    """Return what an owner wrote down of itself; {} where another one takes over at this moment, or
    the file is damaged: only the lock counts."""
    return packed.mapping_in(data) or {}


class Owner:
    """Holds the sweep's folder until `close`, or until this process ends.

    `served`: whether it is a process of its own. Raises BlockingIOError, with host and pid, where
    another one has it.
    """

    def __init__(self, folder: Path, *, served: bool = False) -> None:
        self._number = os.open(folder / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = said_in(os.pread(self._number, 4096, 0))
            os.close(self._number)
            raise BlockingIOError(
                f"another process runs the sweep in {folder}: pid {owner.get('pid')} on "
                f"{owner.get('host')}\n  wait for its end, "
                "or stop it by Ctrl-C there; a sweep of another RunConfig(name=...) runs beside it"
            ) from None
        os.ftruncate(self._number, 0)
        os.pwrite(
            self._number,
            json.dumps(
                {"pid": os.getpid(), "host": socket.gethostname(), "served": served}
            ).encode(),
            0,
        )

    def close(self) -> None:
        """Another process may have it."""
        os.close(self._number)
