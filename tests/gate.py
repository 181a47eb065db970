"""A gate at which several processes wait, each until the test lets all of them go on.

    gate = Gate(tmp_path / "gate")
    open(gate, "rb", buffering=0).read(1)      # in a rank or actor, which has the path: returns once the gate is open
    gate.open()

It is a FIFO that the test keeps open and writes a byte for each into. To open it for writing and to
close it again would let only those go on that are reading by then: who is seen before the gate may
yet have to open it, and would wait for ever.
"""

from __future__ import annotations

import os
from pathlib import Path

PASSERS_MAX = 64


class Gate:
    """Closed at first."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        os.mkfifo(path)
        self._held = os.open(
            path, os.O_RDWR
        )  # written bytes stay until they are read, and nobody blocks in an open

    def open(self) -> None:
        """Lets all pass, also those that come later."""
        os.write(self._held, b"." * PASSERS_MAX)

    def close(self) -> None:
        """Forgets it, once nobody waits there any more."""
        os.close(self._held)
