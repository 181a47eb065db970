"""A sweep as whoever looks at its folder sees it: while an engine is at it, after its end, and
where its engine has died. Nothing is unpickled."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import socket
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from troupe.tune._core.deciding import End, Mode
from troupe.tune._core.ledger import Ledger
from troupe.tune._core.rules import Conditions, Rules, lookup
from troupe.tune._core.trial import Phase, Trial
from troupe.tune._journal import owner, values
from troupe.tune._journal.journal import (
    FILE,
    WITH_CONFIG,
    JournalError,
    empty_text,
    has_rows_table,
    rows_of,
)
from troupe.tune.schedulers.trial_scheduler import FIFOScheduler

ABOUT = "sweep.json"
COPIES_MAX = 20
NOT_LOADED = "<object>"
"""In place of what a configuration has that is no JSON."""
_WAL_HEADER_BYTES = 32


@dataclass
class SweepView:
    """`state`: "running", "finished", "stopped" (it can be gone on with), or "dead": its engine has
        ended without a word, and it can be gone on with.

    `about`: of `sweep.json`; `engine`: pid and host of the last one; `trials`: in their order.
    """

    path: Path
    state: str
    about: Mapping[str, Any]
    engine: Mapping[str, Any]
    trials: dict[str, Trial] = field(default_factory=dict)
    over: str = ""
    began: float = 0.0
    seconds: float = 0.0
    held: bool = False

    @property
    def name(self) -> str:
        """The name of the sweep."""
        return self.path.name

    @property
    def metric(self) -> str | None:
        """The metric that is compared, where it is known."""
        return self.about.get("metric")

    @property
    def planned(self) -> int | None:
        """How many trials there will be, None if that is not known.

        Grids that functions return add to what was known at the beginning.
        """
        found = self.about.get("trials")
        return max(found, len(self.current())) if found else None

    def current(self) -> list[Trial]:
        """The trials, without those in whose place others are tried."""
        return [each for each in self.trials.values() if not each.replaced_by]

    def counts(self) -> dict[str, int]:
        """How many trials wait, run, are paused, and have ended how."""
        found = dict.fromkeys(
            (
                *(each.value for each in Phase if each is not Phase.ENDED),
                *(each.value for each in End),
            ),
            0,
        )
        for trial in self.current():
            found[trial.end.value if trial.end is not None else trial.phase.value] += 1
        return found

    def value_of(self, trial: Trial) -> float | None:
        """The number under the metric in its last report that counts."""
        found = (
            lookup(trial.last.metrics, self.metric)
            if trial.last is not None and self.metric
            else None
        )
        return float(found) if isinstance(found, (int, float)) else None

    def best(self) -> Trial | None:
        """The trial with the best number in its last report."""
        mode = Mode(self.about.get("mode") or "max")
        known = {
            each.id: value
            for each in self.current()
            if (value := self.value_of(each)) is not None and value == value
        }
        return self.trials[max(known, key=lambda each: mode.score(known[each]))] if known else None

    def name_of(self, trial: str) -> str:
        """Return the name under which people see a trial."""
        return f"{self.about['trial_name']}_{trial}" if self.about.get("trial_name") else trial


def of(folder: Path, load: Callable[[str], Any] = lambda key: NOT_LOADED) -> SweepView:
    """Return the known state of the sweep in a folder.

    `load(key)` gives what stands in place of an object. Raises FileNotFoundError where there is
    none, JournalError for a file that is damaged.
    """
    held, engine = engine_of(folder)
    ledger = Ledger(Rules(), FIFOScheduler(), Conditions(), lambda told: None)
    began, last = 0.0, ""
    with snapshot(folder) as db:
        for number, row in rows_of(db, folder / FILE):
            if row["kind"] in WITH_CONFIG:
                row["config"] = values.decoded(row["config"], load)
            try:
                ledger.apply(row)
            except (
                LookupError,
                TypeError,
                ValueError,
                AttributeError,
            ) as error:  # a whole row of another version, or that does not fit those before
                raise JournalError(
                    f"{folder / FILE}: row {number} cannot be understood ({type(error).__name__}: "
                    f"{error})"
                ) from error
            last = row["kind"]
            if last == "begin" and not began:
                began = row["wall"]
    state = (
        "running"
        if held
        else "finished"
        if ledger.over
        else "stopped"
        if last == "leave"
        else "dead"
    )
    return SweepView(
        folder,
        state,
        about_of(folder),
        engine,
        ledger.trials,
        ledger.over,
        began,
        ledger.seconds,
        ledger.held,
    )


def status_of(seen: SweepView) -> dict[str, Any]:
    """As a program reads it: see SweepHandle.status."""
    best = seen.best()
    return {
        "name": seen.name,
        "state": seen.state,
        "held": seen.held,
        "path": str(seen.path),
        "metric": seen.metric,
        "mode": seen.about.get("mode"),
        "trials": seen.counts(),
        "trials_planned": seen.planned,
        "engine": dict(seen.engine),
        "over": seen.over,
        "began": seen.began,
        "best": None
        if best is None
        else {"trial_id": best.id, "config": dict(best.config), "value": seen.value_of(best)},
    }


def was_left(folder: Path) -> bool:
    """Return True if the last engine of the sweep ended in order."""
    with snapshot(folder) as db:
        return [row["kind"] for _, row in rows_of(db, folder / FILE)][-1:] == ["leave"]


def about_of(folder: Path) -> dict[str, Any]:
    """Return the metric and the trial names of a sweep; {} if they are not known.

    Raises JournalError for a file that is damaged.
    """
    path = folder / ABOUT
    try:
        return dict(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError) as error:
        raise JournalError(
            f"{path} is damaged (offset {getattr(error, 'pos', 0)}: {error}): remove it, and "
            f"Tuner.restore({str(folder)!r}, trainable).fit() "
            "writes it anew"
        ) from error


def engine_of(folder: Path) -> tuple[bool, dict[str, Any]]:
    """Return (an engine runs the sweep, pid and host of the last one)."""
    path = folder / owner.FILE
    who: dict[str, Any] = {}
    try:
        who = owner.said_in(path.read_bytes())
    except OSError:
        return False, who
    if who.get("host") == socket.gethostname():
        return _has_open(who.get("pid"), path), who
    with (
        contextlib.suppress(OSError),
        path.open() as file,
    ):  # on another host, or not known yet: only the lock tells
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True, who
    return False, who


def wait_for_end(folder: Path) -> None:
    """Blocks until no engine is at the sweep."""
    with (folder / owner.FILE).open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # an engine holds it exclusively as long as it lives


def _has_open(pid: Any, path: Path) -> bool:
    """Return True if that process of this host has the file open, as the engine has that holds its
    lock."""
    with contextlib.suppress(OSError):
        meant = path.stat()
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found = os.stat(f"/proc/{pid}/fd/{name}")
                if (found.st_dev, found.st_ino) == (meant.st_dev, meant.st_ino):
                    return True
    return False


@contextlib.contextmanager
def snapshot(folder: Path) -> Iterator[sqlite3.Connection]:
    """A copy of the journal as it is now, to be read.

    Raises FileNotFoundError, and JournalError where it changes faster than it can be copied.

    An engine holds SQLite's exclusive lock, so nobody else opens the file itself. A copy of it and
    of its log is what SQLite would find after a crash at this moment, provided that the log has not
    been begun anew meanwhile: all that is written into the file stands in the log before.
    """
    path, log = folder / FILE, folder / f"{FILE}-wal"
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no journal of a sweep")
    with tempfile.TemporaryDirectory(prefix="troupe-sweep-") as made:
        copy = Path(made, FILE)
        for _ in range(COPIES_MAX):
            before = _header(log)
            shutil.copyfile(path, copy)
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(log, Path(made, log.name))
            if _header(log) == before:
                break
            Path(made, log.name).unlink(missing_ok=True)
        else:
            raise JournalError(
                f"{path}: its log was begun anew {COPIES_MAX} times while it was copied: try again"
            )
        db = sqlite3.connect(copy)
        try:
            if not has_rows_table(db):
                if not engine_of(folder)[0]:
                    raise JournalError(empty_text(path))
                db.execute(
                    "CREATE TABLE rows(number INTEGER PRIMARY KEY, crc INTEGER NOT NULL, row TEXT "
                    "NOT NULL)"
                )  # the folder is being made just now
            yield db
        except sqlite3.DatabaseError as error:
            raise JournalError(f"{path} cannot be read as a sweep's journal: {error}") from error
        finally:
            db.close()


def _header(log: Path) -> bytes:
    try:
        with log.open("rb") as file:
            return file.read(_WAL_HEADER_BYTES)
    except FileNotFoundError:
        return b""
