"""Reports of a sweep's trials, read from its journal: nothing is unpickled."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from troupe.tune._core.rules import lookup
from troupe.tune._journal import view
from troupe.tune._journal.journal import FILE, rows_of


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[sqlite3.Connection]:
    """The journal's file, to be read while no engine has it.

    Raises FileNotFoundError where there is none.
    """
    path = folder / FILE
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no journal of a sweep")
    db = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        yield db
    finally:
        db.close()


def reports(folder: Path, trial: str) -> list[tuple[int, dict[str, Any]]]:
    """(number, metrics) of those that count, in their order."""
    return _histories(folder, trial).get(trial, [])


def values(folder: Path, metric: str) -> dict[str, list[float]]:
    """trial -> the numbers under that key, of the reports that count."""
    found = {}
    for trial, history in _histories(folder).items():
        numbers = [
            value
            for _, metrics in history
            if isinstance(value := lookup(metrics, metric), (int, float))
        ]
        if numbers:
            found[trial] = numbers
    return found


def all_reports(folder: Path) -> dict[str, list[tuple[int, dict[str, Any]]]]:
    """trial -> (number, metrics) of its reports that count, also while an engine is at the
    sweep."""
    return _histories(folder, opened=view.snapshot)


def _histories(
    folder: Path, only: str | None = None, *, opened: Any = opened
) -> dict[str, list[tuple[int, dict[str, Any]]]]:
    found: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    with opened(folder) as db:
        for _, row in rows_of(db, folder / FILE):
            if row.get("trial") is None or (only is not None and row["trial"] != only):
                continue
            history = found.setdefault(row["trial"], [])
            if row["kind"] == "report":
                history.append((row["number"], row["metrics"]))
            elif row["kind"] == "start" and (row["base"] is None or row["base"][0] == row["trial"]):
                found[row["trial"]] = [
                    each for each in history if each[0] <= row["number"]
                ]  # base of its next attempt
    return found
