"""Records of jobs that embedded clusters run: one folder per job below TROUPE_HOME, which outlives
the cluster.

    jobs/LAUNCH/record.json   which job it is, and how it ended
    jobs/LAUNCH/logs/         what its processes printed, once it has ended

The job's directory is not here: it stays in the host's cache (`_code.packages`). Records of jobs
that have ended are removed a week after they ended, and the oldest ones over JOBS_MAX or
LOG_BYTES_MAX. Each file is written whole or not at all, so that programs of one user need no lock.

View: any process of the user on this host.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from troupe import exceptions
from troupe._cluster import folders, home, scratch
from troupe._code import packages

JOBS_MAX = 200
LOG_BYTES_MAX = 1 << 30
_REMEDY = "remove it: it holds records of jobs that have ended"
_REPAIR = "remove its folder: nothing but this job's status and output is in it"
_FILE, _LOGS = "record.json", "logs"
_LAUNCH = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True)
class Record:
    """The stored facts about one job."""

    launch: str
    name: str
    submitted_us: int
    processes: int
    cluster: (
        str  # the folder of its embedded cluster, which that program holds locked while it lives
    )
    address: str  # address of the job's cluster, for other programs of the user
    pid: int  # id of the program's process
    nodes: int = 0
    outcome: str = ""  # "": it has not ended, or its program was killed before it could say
    error: dict[str, Any] = field(
        default_factory=dict
    )  # error of a job that has not succeeded: see `_past.jobs`
    ended_s: float = 0.0
    about: dict[str, Any] = field(default_factory=dict)  # the job's description
    user: str = ""

    @property
    def is_running(self) -> bool:
        """Return True while the job's cluster lives and has not said how the job ended."""
        return not self.outcome and scratch.is_owned(Path(self.cluster))


def write(record: Record) -> None:
    """Keep the record in place of the job's earlier one. Raises OSError."""
    folder = _root() / record.launch
    folder.mkdir(mode=0o700, exist_ok=True)
    with (
        folders.replacement(folder / _FILE) as fresh,
        open(fresh, "w", encoding="utf-8", opener=folders.open_private) as file,
    ):
        json.dump(asdict(record), file)


def logs_of(record: Record) -> Path:
    """Return the folder with the job's output."""
    return _root() / record.launch / _LOGS


def read_all() -> list[Record]:
    """Return the jobs of this user's embedded clusters on this host, the latest first.

    Those whose record is damaged are left out.
    """
    found = [each for each in map(_read, _folders()) if each is not None]
    return sorted(found, key=lambda each: -each.submitted_us)


def is_launch(text: object) -> bool:
    """Return True for the id of a launch."""
    return isinstance(text, str) and _LAUNCH.fullmatch(text) is not None


def find(launch: str) -> Record | None:
    """Return the record of a job; None: no embedded cluster of this host ran it, or it is too
    old."""
    return _read(_root() / launch) if is_launch(launch) else None


def printed(launch: str) -> list[Path]:
    """Return the files with a job's output that this host keeps."""
    return sorted(each for each in (_root() / launch / _LOGS).glob("*") if each.is_file())


def folder_of(launch: str) -> Path | None:
    """Return the job's directory on this host; None: there is none, or none any more."""
    return next(iter(packages.latest(f"job-{launch}-", 1)), None)


def prune() -> None:
    """Remove records of ended jobs that are too old or too many, and folders whose record was
    damaged long ago."""
    kept = size = 0
    root, known = _root(), read_all()
    for folder in {*_folders()} - {root / each.launch for each in known}:
        with contextlib.suppress(OSError):  # another process removes it just now
            if time.time() - folder.stat().st_mtime > packages.UNUSED_S:
                shutil.rmtree(folder, ignore_errors=True)
    for record in known:
        if record.is_running:
            continue
        folder = root / record.launch
        kept, size = kept + 1, size + _size_of(folder / _LOGS)
        ended_s = record.ended_s or record.submitted_us / 1e6
        if (
            time.time() - ended_s > packages.UNUSED_S
            or kept > JOBS_MAX
            or (size > LOG_BYTES_MAX and kept > 1)
        ):
            shutil.rmtree(folder, ignore_errors=True)


def _root() -> Path:
    return folders.private(home.state_root() / "jobs", remedy=_REMEDY)


def _folders() -> Iterator[Path]:
    return (each for each in _root().iterdir() if _LAUNCH.fullmatch(each.name))


def _read(folder: Path) -> Record | None:
    known = {each.name for each in fields(Record)}
    try:
        told = home.read_record(
            folder / _FILE,
            _REPAIR,
            launch=str,
            name=str,
            submitted_us=int,
            processes=int,
            cluster=str,
            address=str,
            pid=int,
        )
    except (exceptions.DamagedFileError, OSError):
        return None
    if told is None or told["launch"] != folder.name:
        return None
    return Record(**{name: value for name, value in told.items() if name in known})


def _size_of(folder: Path) -> int:
    total = 0
    with contextlib.suppress(OSError):  # another process removes it just now
        total = sum(each.stat().st_size for each in folder.iterdir())
    return total
