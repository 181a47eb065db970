"""Sweeps of a storage folder, as the pages show them: nothing is unpickled."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from troupe import exceptions
from troupe._dashboard import _charts
from troupe._dashboard._views import ROWS_MAX, NotThereError
from troupe.tune._journal import table, view
from troupe.tune._journal.journal import FILE
from troupe.tune._run import looking

SWEEPS_MAX = 100
KEPT_MAX = 32
LINES_MAX = 500
"""Trials of which a picture is made: the best ones and the latest."""


class SweepReader:
    """Sweeps of one folder; a journal is read again when it has changed. Any thread."""

    def __init__(self, storage: str | None) -> None:
        self._storage = storage
        self._lock = threading.Lock()
        self._known: OrderedDict[Path, tuple[object, view.SweepView]] = OrderedDict()

    def read(self, folder: Path) -> view.SweepView:
        """Return a sweep as it is now.

        Raises:
            TroupeError, OSError: its folder is damaged, or gone.
        """
        stamp = stamp_of(folder)
        with self._lock:
            known = self._known.get(folder)
        if known is not None and known[0] == stamp and known[1].state != "running":
            return known[1]
        seen = view.of(folder)
        with self._lock:
            self._known[folder] = (stamp, seen)
            self._known.move_to_end(folder)
            while len(self._known) > KEPT_MAX:
                self._known.popitem(last=False)
        return seen

    def folders(self) -> list[Path]:
        """Return the folders of the sweeps, the latest first."""
        return looking.folders(self._storage)[::-1]

    def folder(self, name: str) -> Path:
        """Return the folder of the sweep with that name. Raises NotThereError."""
        for each in self.folders():
            if each.name == name:
                return each
        raise NotThereError("there is no sweep with that name in the storage folder")

    def list_page(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Return the values of `/sweeps`: all sweeps, with what they do and the best of each."""
        folders = self.folders()
        rows = [self._row(each) for each in folders[:SWEEPS_MAX]]
        return {"rows": rows, "total": len(folders)}

    def _row(self, folder: Path) -> dict[str, Any]:
        try:
            seen = self.read(folder)
        except (exceptions.TroupeError, OSError) as error:
            return {"name": folder.name, "state": "unreadable", "why": str(error), "began": 0.0}
        best = seen.best()
        return {
            "name": seen.name,
            "state": "paused" if seen.held and seen.state == "running" else seen.state,
            "progress": table.progress(seen),
            "best": f"{seen.metric}={seen.value_of(best):.6g}" if best is not None else "",
            "began": seen.began,
            "why": "",
        }

    def page(self, query: Mapping[str, str], name: str) -> dict[str, Any]:
        """Return the values of `/sweeps/ID`: trials, the best so far, pictures.

        Raises NotThereError.
        """
        folder = self.folder(name)
        try:
            seen = self.read(folder)
        except (exceptions.TroupeError, OSError) as error:
            return {"name": name, "failed": str(error), "seen": None}
        ordered = table.best_first(seen)
        best = seen.best()
        return {
            "name": name,
            "failed": "",
            "seen": seen,
            "progress": table.progress(seen),
            "best": None
            if best is None
            else (table.number_of(best.id), seen.value_of(best), table.words(best.config)),
            "head": table.head(seen.metric),
            "rows": [table.row(each, seen.value_of(each), seen.metric) for each in ordered][
                :ROWS_MAX
            ],
            "total": len(ordered),
            **_pictures(seen),
        }


def _pictures(seen: view.SweepView) -> dict[str, Any]:
    is_max = (seen.about.get("mode") or "max") == "max"
    known = [
        (table.number_of(each.id), each.config, value)
        for each in seen.current()
        if (value := seen.value_of(each)) is not None and _charts.is_number(value)
    ]
    metric = seen.metric or ""
    if not known or not metric:
        return {"curve": None, "parallel": None, "metric": metric}
    return {
        "metric": metric,
        "curve": _charts.best_so_far(
            [(name, value) for name, _, value in known], metric, is_max=is_max
        ),
        "parallel": _charts.parallel(_chosen(known, is_max=is_max), metric, is_max=is_max),
    }


def _chosen(
    known: list[tuple[str, Mapping[str, Any], float]], *, is_max: bool
) -> list[tuple[str, Mapping[str, Any], float]]:
    """Return the best half and the latest of the trials, LINES_MAX at most."""
    if len(known) <= LINES_MAX:
        return known
    half = LINES_MAX // 2
    numbers = range(len(known))
    best = sorted(numbers, key=lambda each: -known[each][2] if is_max else known[each][2])[:half]
    return [known[each] for each in sorted({*best, *numbers[-half:]})]


def stamp_of(folder: Path) -> object:
    """Return a value that is another once the sweep's journal has changed."""
    found = []
    for name in (FILE, f"{FILE}-wal"):
        path = folder / name
        if path.exists():
            info = path.stat()
            found.append((info.st_mtime_ns, info.st_size))
    return tuple(found)
