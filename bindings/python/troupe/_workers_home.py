"""Starting a worker of this user on this host, with its log in TROUPE_HOME."""
from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from troupe import _executables


def start_worker(args: Sequence[str], root: Path) -> _executables.Started:
    """Starts troupe-worker and returns when it has joined. Raises what it said; see `_executables.start`."""
    return _executables.start("troupe-worker", ["--home", str(root), *args],
                              log=root / "logs" / f"worker-{os.getpid()}.log")
