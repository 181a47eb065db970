"""The MLflow store of a job that outlives its caller and that no address reaches: a database in the
job's directory, with one run for all processes of a node.

    DIRECTORY/mlflow/                   of a job on several nodes: mlflow/NODE/
      mlflow.db, artifacts/             made when a process of the job first logs something
      run.json                          which run is the job's, once one has logged something
      lock                              held by the process that asks the database

`hook/sitecustomize.py`, which each Python of the job's command runs at its start, makes the run and
keeps the turns. A Python that does not run it has the address all the same. View: a rank of the
job, before it becomes the command; and who brings the job's files.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from troupe._code import packages
from troupe._tracking import empty_store, rule, turns

INSIDE = "mlflow"
STORE, RUN = "TROUPE_JOB_MLFLOW", "TROUPE_JOB_MLFLOW_RUN"
"""Variables of the job's processes: the folder of the store, and what its run is called."""
HOOK = os.fspath(Path(__file__).with_name("hook"))
_DATABASE = "mlflow.db"
_PLACES = (
    ("experiments", "artifact_location"),
    ("runs", "artifact_uri"),
    ("logged_models", "artifact_location"),
)


def wish_of(
    name: str, experiment: str, tags: Mapping[str, str], given: Mapping[str, str], *, told: str
) -> dict[str, Any] | None:
    """Return what the run of a job is to be; None where the caller wants none.

    Args:
        name, experiment, tags: the run's.
        given: the caller's variables.
        told: what the job's output says of the run, a template with {run}, {store} (its address),
            {folder} and {host}.
    """
    if rule.says_no(None, given):
        return None
    return {"name": name, "experiment": experiment, "tags": dict(tags), "told": told}


def variables(
    folder: Path, node: str, wish: Mapping[str, Any], now: Mapping[str, str], own: Mapping[str, str]
) -> dict[str, str | None]:
    """Return the variables by which processes of the job find its store; None: the variable is
    taken away. Empty where the job has an address.

    Args:
        node: "" for a job on one node.
        wish: what `wish_of` gave.
        now: variables of this rank.
        own: those that the job itself says.
    """
    address = now.get(rule.URI, "")
    if rule.RUN in now or address and (rule.URI in own or not turns.is_local(address)):
        return {}
    inside = folder / INSIDE / node
    inside.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join([HOOK, *filter(None, [now.get("PYTHONPATH", "")])])
    return {
        rule.URI: f"sqlite:///{inside / _DATABASE}",
        STORE: os.fspath(inside),
        RUN: json.dumps(wish),
        empty_store.FOLDER: os.fspath(packages.cache()),
        "PYTHONPATH": path,
        rule.EXPERIMENT: None,
        rule.EXPERIMENT_NAME: wish["experiment"] or None,
    }


def apply(changes: Mapping[str, str | None]) -> None:
    """Set what `variables` returned in this process."""
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def relocate(store: Path, status: str) -> None:
    """Make a store that was copied to `store` whole there: its artifacts are beside it now, and the
    job's run has ended with `status`.

    Nothing is done where there is no store, or one of another make.
    """
    for database in store.rglob(_DATABASE):
        with contextlib.suppress(sqlite3.Error, OSError, ValueError, KeyError):
            told = json.loads((database.parent / "run.json").read_bytes())
            with contextlib.closing(sqlite3.connect(database)) as opened, opened:
                for table, column in _PLACES:
                    with contextlib.suppress(
                        sqlite3.OperationalError
                    ):  # a version of MLflow without that table
                        opened.execute(
                            f"UPDATE {table} SET {column} = replace({column}, ?, ?)",
                            (told["folder"], os.fspath(database.parent.resolve())),
                        )
                opened.execute(
                    "UPDATE runs SET status = ? WHERE run_uuid = ?", (status, told["run"])
                )
