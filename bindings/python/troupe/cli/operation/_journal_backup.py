"""Copies of a head's state: made while the head runs, and put in the place of state that is lost.

The head alone has its database open. What SQLite writes in WAL mode makes a copy of the two files
whole without it: the database changes only by what is in the log already, so the database first and
then the log, of one generation, are the state at the end of the log that was copied. A copy that
came between two generations, or that took a torn frame, is made anew; each is read by the head's
own check before it counts.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from troupe import exceptions
from troupe._base.identity import new_id
from troupe._cluster import executables, folders, home

TRIES = 10
_DATABASE, _ARCHIVE = "journal.db", "archive.db"
_JOB_LOGS = "job_logs.db"  # not copied: they are on their nodes, too
_LOG = "-wal"  # behind the name of a database: its log
_NOT_COPIED = (
    "lock",
    "ballast",
    *(name + part for name in (_DATABASE, _ARCHIVE, _JOB_LOGS) for part in ("", _LOG, "-shm")),
    "restored",
)
_WAL_HEADER_BYTES = 32
RECORD = "backup.json"


def back_up(cluster: home.ClusterHome, target: Path) -> dict[str, Any]:
    """Copy a cluster's state to a folder that is not there yet, and return the copy's record.

    The head may run, and goes on. Blocks for the copy and its check.

    Raises:
        FileExistsError: the folder is there, with something in it.
        TroupeError: the journal is damaged, or changed too fast for TRIES copies.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileExistsError(f"{target} is there already: give a folder that is not")
    source = cluster.path / "head"
    with _folder_for(target) as fresh:
        (fresh / "head").mkdir(mode=0o700)
        for path in sorted(source.iterdir()):
            if path.name not in _NOT_COPIED and stat.S_ISREG(path.lstat().st_mode):
                _copy(path, fresh / "head" / path.name)
        said = _copy_journal(source, fresh / "head")
        # Behind the journal: what that has no more is in the archive by then.
        _copy_database(source, fresh / "head", _ARCHIVE)
        record = {
            "cluster_id": cluster.cluster_id,
            "address": cluster.address,
            "made_s": time.time(),
            "journal": said,
        }
        _write(fresh / RECORD, json.dumps(record))
    return record


def _copy_journal(source: Path, target: Path) -> str:
    """Copy the journal, and return what the head's check says of the copy."""
    why = ""
    for _ in range(TRIES):
        _copy_database(source, target, _DATABASE)
        done = check(target)
        if done.returncode == 0:
            return done.stdout.strip()
        why = done.stderr.strip() or done.stdout.strip()
    raise _no_whole_copy(source / _DATABASE, why)


def _copy_database(source: Path, target: Path, name: str) -> None:
    """Copy a database and its log, of one generation; nothing where there is none."""
    if not (source / name).exists():
        return
    log = name + _LOG
    for _ in range(TRIES):
        before = _generation(source, name)
        _copy(source / name, target / name)
        (target / log).unlink(missing_ok=True)
        if (source / log).exists():
            _copy(source / log, target / log)
        if _generation(source, name) == before:
            return
    raise _no_whole_copy(source / name, "the log was begun anew during each copy")


def _no_whole_copy(database: Path, why: str) -> exceptions.TroupeError:
    return exceptions.TroupeError(
        f"no whole copy of {database} in {TRIES} tries: {why}\n  try again; if it is "
        "damaged: troupe stop, then troupe journal check"
    )


def _generation(folder: Path, name: str) -> tuple[bytes, tuple[int, int]]:
    """Return what changes when the log is begun anew: its header; and, while there is none, size
    and time of the database."""
    try:
        with open(folder / (name + _LOG), "rb") as file:
            header = file.read(_WAL_HEADER_BYTES)
    except FileNotFoundError:
        header = b""
    if len(header) == _WAL_HEADER_BYTES:
        return header, (0, 0)
    info = (folder / name).stat()
    return header, (info.st_size, info.st_mtime_ns)


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    """Read a journal that no head has, as a start would."""
    return subprocess.run(
        [executables.find("troupe-head"), f"--check={folder}"], capture_output=True, text=True
    )


def restore(source: Path, *, replace: bool) -> home.ClusterHome:
    """Put a backup in the place of the state of its cluster in this TROUPE_HOME, and return the
    cluster, whose head does not run. What was there stays beside it.

    Raises:
        ValueError: it is no backup; the cluster has state here, unless `replace`; its head runs.
        TroupeError: the backup is damaged.
    """
    record = home.read_record(
        source / RECORD, "take another backup", cluster_id=str, address=str, made_s=float
    )
    if record is None:
        raise ValueError(f"{source} is no backup: there is no {RECORD} in it")
    identity = record["cluster_id"]
    if len(identity) != 32 or not set(identity) <= set("0123456789abcdef"):
        raise exceptions.DamagedFileError(
            source / RECORD, 0, f"{identity!r} is no id of a cluster", "take another backup"
        )
    for each in home.clusters():
        if each.cluster_id == identity and each.running:
            raise ValueError(
                f"the head of cluster {identity[:8]} runs (pid {each.pid}): troupe stop"
            )
    root = home.state_root()
    place = folders.private(root / "clusters" / identity, remedy="see TROUPE_HOME", tidy=True)
    if (place / "head").exists():
        if not replace:
            raise ValueError(
                f"cluster {identity[:8]} has state in {place / 'head'}: --replace puts the backup "
                "in its place, and keeps it beside"
            )
    with _folder_for(place / "head", replace=replace) as fresh:
        for path in (source / "head").iterdir():
            if stat.S_ISREG(path.lstat().st_mode) and path.name not in ("lock", "restored"):
                _copy(path, fresh / path.name)
        done = check(fresh)
        if done.returncode:
            raise exceptions.TroupeError(f"the backup is damaged: {done.stderr.strip()}")
        # Above every incarnation of the head that was lost, and of those restored before.
        _write(fresh / "restored", f"{int(time.time())}\n")
    contact = {"cluster_id": identity, "address": record["address"], "pid": 0, "socket": ""}
    with folders.replacement(place / "head.json") as file:
        _write(file, json.dumps(contact))
    found = home.cluster_of(place / "head.json")
    assert found is not None  # the file has just been written
    return found


@contextmanager
def _folder_for(target: Path, *, replace: bool = False) -> Iterator[Path]:
    """Give a folder beside `target` that takes its place once the block has ended well; what is
    there is kept with a time after its name. After a failure nothing is left."""
    fresh = target.with_name(f"{target.name}.{new_id()[:16]}{folders.UNFINISHED}")
    fresh.mkdir(mode=0o700, parents=True)
    try:
        yield fresh
        if replace and target.exists():
            target.rename(target.with_name(f"{target.name}.before-{time.time_ns()}"))
        fresh.rename(target)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def _copy(source: Path, target: Path) -> None:
    with open(source, "rb") as old, open(target, "wb", opener=folders.open_private) as new:
        shutil.copyfileobj(old, new, 1 << 20)
        new.flush()
        os.fsync(new.fileno())


def _write(path: Path, text: str) -> None:
    with open(path, "w", encoding="utf-8", opener=folders.open_private) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
