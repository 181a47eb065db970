"""A check of a trial's process after its end: whether another trial may run there (G8)."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Before:
    """A process as it was before a trial."""

    threads: frozenset[int]
    children: frozenset[str]
    directory: str
    environment: dict[str, str]

    @classmethod
    def now(cls) -> Before:
        """As it is."""
        return cls(frozenset(_threads()), _children(), os.getcwd(), dict(os.environ))

    def restored(self) -> bool:
        """Return True if the process is as it was: without a further thread of Python's or child,
        without memory of a GPU that is held. Its directory and its variables are set back. Modules
        that were imported, and what they hold, stay: that is what reuse_actors=True asks for."""
        with contextlib.suppress(OSError):
            os.chdir(self.directory)
        if dict(os.environ) != self.environment:
            os.environ.clear()
            os.environ.update(self.environment)
        return (
            not (_threads() - self.threads)
            and not (_children() - self.children)
            and not _gpu_memory()
        )


def _threads() -> set[int]:
    own = threading.get_ident()
    return {
        each.ident for each in threading.enumerate() if each.ident is not None and each.ident != own
    }


def _children() -> frozenset[str]:
    found: set[str] = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            found.update((task / "children").read_text().split())
    return frozenset(found)


def _gpu_memory() -> bool:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return False
    gc.collect()
    return any(torch.cuda.memory_allocated(device) for device in range(torch.cuda.device_count()))
