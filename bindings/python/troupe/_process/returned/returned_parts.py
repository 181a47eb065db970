"""Ends a part that waits for a rank whose own part has returned (`launch._parts`): that rank's
process goes on, so the head cannot know.

Each rank's thread that watches groups does this, by the store of the default group. Once the rank's
part has returned, the thread writes what the rank has begun. While the part stands still in an
operation, the thread looks whether others have written that, and whether one of them has begun
fewer operations. Then it says what the part waits in, leaves the others a moment to say so too, and
ends this process's groups: the part raises the verdict. A part that waits in the store itself, for
a group to be made, loses its connection to the store, too. Ranks that wait for nobody, and groups
without the rank that returned, are not touched.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from typing import Any

from troupe._process import group_epochs
from troupe._process.returned import group_counts, returned_peers, returned_verdict
from troupe._process.returned.stillness import Stillness
from troupe._process.returned.watch_store import WatchStore, root
from troupe.launch import _parts

STILL_S = 2.0
"""So long a part has begun nothing, and waited at one place, before the store is asked, and between
two times."""
GATHER_S = 1.0
"""For others that wait in the same operation to say so."""
_KEY = "troupe/parts"


class Parts:
    """State of the watching thread between two looks at this process's parts."""

    def __init__(self) -> None:
        self._part: _parts.Part | None = None
        self._written = False
        self._still = Stillness(STILL_S)
        self._said_at = 0.0

    def look(self, module: Any, stores: WatchStore, now: float, op_here: Callable[[], str]) -> None:
        """Once a second or so. Raises what the store raises."""
        part = _parts.latest()
        if part is None or part.verdict or not module.is_initialized():
            return
        if part is not self._part:
            self._part, self._written = part, False
            self._still.forget()
        rank = module.get_rank()
        if part.has_returned:
            if not self._written and not group_counts.program_goes_on():
                store = stores.beside(module._get_default_store())
                store.set(f"{_KEY}/{part.run}/{rank}", json.dumps(group_counts.snapshot()))
                store.set(f"{_KEY}/{part.run}", "1")  # a single key for waiters to watch
                self._written = True
            return
        if self._still.has_moved(returned_peers.place(module), now):
            self._said_at = 0.0
            return
        if self._still.is_due(now):
            self._ask(module, stores.beside(module._get_default_store()), part, rank, now, op_here)
            self._still.look_again(now, 0.0 if self._said_at else STILL_S)

    def _ask(
        self,
        module: Any,
        store: Any,
        part: _parts.Part,
        rank: int,
        now: float,
        op_here: Callable[[], str],
    ) -> None:
        key = f"{_KEY}/{part.run}"
        if not store.check([key]):
            return
        size = module.get_world_size()
        records = {
            each: record
            for each in range(size)
            if each != rank and (record := _read(store, f"{key}/{each}")) is not None
        }
        for word in returned_peers.words(module, frozenset(records)):
            counts = returned_verdict.missing(word, records)
            if not counts:
                continue
            mine = (
                [word["key"], word["operation"]]
                if word["kind"] in ("collective", "making")
                else [rank, word["operation"]]
            )
            if not self._said_at:
                self._said_at = now
                store.set(f"{key}/waits/{rank}", json.dumps(mine))
            if now - self._said_at < GATHER_S:
                return
            waiting = [
                each
                for each in range(size)
                if each == rank
                or (each not in records and _read(store, f"{key}/waits/{each}") == mine)
            ]
            word = {**word, "op": word["op"] or op_here()}
            verdict = returned_verdict.text_of(word, counts, waiting)
            store.set(f"{key}/verdict", json.dumps(verdict))
            part.verdict = verdict
            group_epochs.end_groups(
                getattr(store, "port", 0) if word["kind"] == "making" else 0, verdict
            )
            return


def find_verdict(run: str) -> str:
    """Return the verdict that another rank has ended its groups by, and so this rank's; "": there
    is none, or no store."""
    module = sys.modules.get("torch.distributed.distributed_c10d")
    if module is None or not module.is_initialized():
        return ""
    with contextlib.suppress(RuntimeError):
        return _read(root(module._get_default_store()), f"{_KEY}/{run}/verdict") or ""
    return ""


def _read(store: Any, key: str) -> Any:
    """Return what is there; None: nothing is."""
    return json.loads(store.get(key)) if store.check([key]) else None
