"""Databases of MLflow that are copied in place of all migrations.

Method: MLflow itself in a process that counts its migrations; else a module that makes tables as
MLflow's does, so that damage, other users' files and rows of others are met without it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from troupe._tracking import empty_store

COUNTS = """
import json, sqlite3, sys
from troupe._base.after_import import after_import
from troupe._tracking import empty_store
folder, *names = sys.argv[1:]
after_import({"mlflow.store.db.utils": lambda utils: empty_store.install(utils, folder)})
import mlflow
from mlflow.store.db import utils
migrations, upgrade = [], utils._upgrade_db
utils._upgrade_db = lambda engine: (migrations.append(1), upgrade(engine))
counts = []
for name in names:
    client = mlflow.MlflowClient(f"sqlite:///{folder}/{name}.db")
    run = client.create_run("0").info.run_id
    client.log_metric(run, "m", 1.5)
    assert [each.value for each in client.get_metric_history(run, "m")] == [1.5]
    counts.append(len(migrations))
print(json.dumps(counts))
"""


def _schema(path: Path) -> list[tuple[Any, ...]]:
    with sqlite3.connect(path) as opened:
        rows = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
        revision = "SELECT version_num FROM alembic_version"
        return [*opened.execute(rows), *opened.execute(revision)]


@pytest.mark.skipif(importlib.util.find_spec("mlflow") is None, reason="needs mlflow")
def test_a_second_store_of_one_version_runs_no_migrations(tmp_path: Path) -> None:
    def counts(*names: str) -> list[int]:
        done = subprocess.run(
            [sys.executable, "-c", COUNTS, os.fspath(tmp_path), *names],
            stdout=subprocess.PIPE,
            check=True,
        )
        found: list[int] = json.loads(done.stdout)
        return found

    assert counts("first", "second") == [1, 1]
    assert counts("third") == [0]
    first = _schema(tmp_path / "first.db")
    assert first == _schema(tmp_path / "second.db") == _schema(tmp_path / "third.db")
    (kept,) = tmp_path.glob("mlflow-*.db")
    assert kept.stat().st_mode & 0o777 == 0o600 and _schema(kept) == first
    assert not list(tmp_path.glob("*.new"))


class Migrations:
    """`mlflow.store.db.utils` of a small MLflow that counts how often it makes tables."""

    def __init__(self, folder: Path) -> None:
        self.count, self.revision, self.folder = 0, "head", folder
        self._initialize_tables: Any = self._make
        self._get_latest_schema_revision = lambda: self.revision
        self.writes = ""  # SQL of another process, just after the tables are there
        empty_store.install(self, os.fspath(folder))

    def _make(self, engine: Any) -> None:
        self.count += 1
        with sqlite3.connect(engine.url.database) as opened:
            opened.executescript(
                "CREATE TABLE IF NOT EXISTS experiments (a);"
                "CREATE TABLE IF NOT EXISTS runs (a);"
                "CREATE TABLE IF NOT EXISTS alembic_version (version_num);"
                f"INSERT INTO alembic_version VALUES ('{self.revision}'); {self.writes}"
            )

    def open(self, name: str) -> Path:
        """Return a new store, or one that is there."""
        path = self.folder / name
        url = SimpleNamespace(database=os.fspath(path), get_backend_name=lambda: "sqlite")
        self._initialize_tables(SimpleNamespace(url=url))
        return path


@pytest.fixture
def migrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Migrations:
    """MLflow of version 9.1, by name only."""
    fake: Any = SimpleNamespace(__version__="9.1")
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    return Migrations(tmp_path)


def test_what_is_kept_is_used_only_if_it_is_whole_and_this_users(
    migrations: Migrations, tmp_path: Path
) -> None:
    kept = tmp_path / "mlflow-9.1.db"
    umask = os.umask(0)
    try:
        first = migrations.open("first")
    finally:
        os.umask(umask)
    assert kept.stat().st_mode & 0o777 == 0o600
    assert _schema(migrations.open("copied")) == _schema(first) and migrations.count == 1
    kept.write_bytes(kept.read_bytes()[:100] + b"x" * 5000)
    migrations.open("damaged")
    kept.write_bytes(b"")
    migrations.open("torn")
    kept.chmod(0o666)
    migrations.open("others_may_write")
    migrations.revision = "later"
    assert _schema(migrations.open("later"))[-1] == ("later",)
    assert migrations.count == 5
    migrations.open("copied_again")  # each of these was kept anew
    assert migrations.count == 5 and not list(tmp_path.glob("*.new"))


def test_rows_of_others_are_neither_kept_nor_lost(migrations: Migrations, tmp_path: Path) -> None:
    migrations.writes = "INSERT INTO experiments VALUES (1);"
    written = migrations.open("written")
    assert not (tmp_path / "mlflow-9.1.db").exists()
    migrations.writes = ""
    migrations.open("empty")
    assert (tmp_path / "mlflow-9.1.db").exists()
    migrations.open("written")  # a database with tables stays as it is
    with sqlite3.connect(written) as opened:
        assert opened.execute("SELECT a FROM experiments").fetchall() == [(1,)]
    assert migrations.count == 3


def test_a_version_that_is_no_file_name_and_a_full_folder_keep_nothing(
    migrations: Migrations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["mlflow"], "__version__", "../9.1")
    migrations.open("first")
    monkeypatch.setattr(sys.modules["mlflow"], "__version__", "9.2")
    (tmp_path / "mlflow-9.2.db").mkdir()  # nothing can take its place
    migrations.open("second")
    assert migrations.count == 2 and not list(tmp_path.glob("*.new"))
