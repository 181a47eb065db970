"""A migrated MLflow database without runs, kept per version of MLflow, copied for each new store.

MLflow runs all its migrations where a database is new, which takes seconds of a processor. The file
lies in the host's cache (`troupe/_code/packages.py`): `mlflow-VERSION.db`, this user's alone.
Interpreters without the package load this module by its path: it imports nothing of the package.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
import stat
import sys
import uuid
from collections.abc import Callable
from typing import Any

FOLDER = "TROUPE_MLFLOW_EMPTY"
"""Variable of processes that log to a store of their job: the cache of this host."""
_LOCKED_S = 60.0  # for another process that writes to the new database
_HAS_RUNS = "SELECT EXISTS (SELECT 1 FROM experiments) OR EXISTS (SELECT 1 FROM runs)"


def install(utils: Any, folder: str) -> None:
    """Have MLflow copy the kept database where it would make the tables of a new SQLite store.

    Args:
        utils: the module `mlflow.store.db.utils`.
        folder: the cache of this host.
    """
    original = getattr(utils, "_initialize_tables", None)
    revision = getattr(utils, "_get_latest_schema_revision", None)
    if original is None or revision is None or hasattr(original, "keeps_empty_stores"):
        return

    @functools.wraps(original)
    def initialize_tables(engine: Any) -> None:
        path, kept = _file_of(engine), _kept_file(folder)
        if not path or not kept:
            original(engine)
        elif not _copy(kept, path, revision):
            is_new = _is_new(path)
            original(engine)
            if is_new:
                _keep(path, kept)

    initialize_tables.keeps_empty_stores = True  # type: ignore[attr-defined]
    utils._initialize_tables = initialize_tables


def _file_of(engine: Any) -> str:
    """Return the file of a SQLite database; "" for any other, and for one in memory."""
    url = engine.url
    path = url.database or ""
    is_file = url.get_backend_name() == "sqlite" and not path.startswith((":", "file:"))
    return path if is_file else ""


def _kept_file(folder: str) -> str:
    """Return where the database of this process's MLflow is kept; "" where its version is not
    known."""
    version = str(getattr(sys.modules.get("mlflow"), "__version__", ""))
    is_name = version.replace(".", "").replace("+", "").isalnum()
    return os.path.join(folder, f"mlflow-{version}.db") if folder and is_name else ""


def _copy(kept: str, path: str, revision: Callable[[], str]) -> bool:
    """Write what is kept into a database without tables, in one transaction.

    Returns:
        False, with nothing written, if nothing whole of this user's is kept, if it is of another
        revision than MLflow's latest, or if the database has tables.
    """
    try:
        statements = _statements(kept, revision)
        with contextlib.closing(
            sqlite3.connect(path, timeout=_LOCKED_S, isolation_level=None)
        ) as made:
            made.execute("PRAGMA foreign_keys = OFF")
            made.execute("BEGIN EXCLUSIVE")
            if _has_tables(made):
                return False  # the connection's close takes the transaction back
            for each in statements:
                made.execute(each)
            made.execute("COMMIT")
            return True
    except (OSError, ValueError, sqlite3.Error):
        return False


def _statements(kept: str, revision: Callable[[], str]) -> list[str]:
    """Return the statements that make what is kept. Raises OSError, ValueError, sqlite3.Error."""
    about = os.lstat(kept)
    if (
        not stat.S_ISREG(about.st_mode)
        or about.st_uid != os.geteuid()
        or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    ):
        raise ValueError(f"{kept} is not this user's alone")
    with contextlib.closing(sqlite3.connect(f"file:{kept}?mode=ro", uri=True)) as opened:
        if opened.execute("PRAGMA quick_check").fetchall() != [("ok",)]:
            raise ValueError(f"{kept} is damaged")
        found = opened.execute("SELECT version_num FROM alembic_version").fetchall()
        if found != [(revision(),)]:
            raise ValueError(f"{kept} is of revision {found}")
        return list(opened.iterdump())[1:-1]  # without BEGIN and COMMIT


def _is_new(path: str) -> bool:
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=_LOCKED_S)) as opened:
            return not _has_tables(opened)
    except sqlite3.Error:
        return False


def _has_tables(opened: sqlite3.Connection) -> bool:
    (found,) = opened.execute("SELECT EXISTS (SELECT 1 FROM sqlite_master)").fetchone()
    return bool(found)


def _keep(path: str, kept: str) -> None:
    """Keep a copy of a database that was made just now; nothing is kept of one that another process
    has written to, and none where there is no room."""
    fresh = f"{kept}.{uuid.uuid4().hex[:16]}.new"
    with contextlib.suppress(OSError, sqlite3.Error):
        try:
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(fresh, flags, 0o600)
            os.fchmod(descriptor, 0o600)
            os.close(descriptor)
            with (
                contextlib.closing(sqlite3.connect(path, timeout=_LOCKED_S)) as source,
                contextlib.closing(sqlite3.connect(fresh)) as target,
            ):
                source.backup(target)
                is_empty = target.execute(_HAS_RUNS).fetchone() == (0,)
            if is_empty:
                os.replace(fresh, kept)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(fresh)
