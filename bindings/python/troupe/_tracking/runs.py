"""Runs of MLflow, by its client; for processes that are there for it, where importing it delays
nobody."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from troupe._tracking import rule

ANSWER_S, TRIES = "5", "1"
# Limit for a store beside the caller, whose process loads its libraries first
ANSWER_LOCAL_S = "90"
ERROR_CHARS_MAX = 600


class Late(Exception):
    """An answer did not come in time."""


def within(seconds: float, what: str, action: Callable[[], Any]) -> Any:
    """Return `action()`, run on a thread for at most `seconds`.

    Raises what it raises, and Late after so many seconds, while it may go on.
    """
    box: list[tuple[bool, Any]] = []

    def run() -> None:
        try:
            box.append((True, action()))
        except BaseException as error:
            box.append((False, error))

    thread = threading.Thread(target=run, name="troupe-mlflow", daemon=True)
    thread.start()
    thread.join(seconds)
    if not box:
        raise Late(f"{what} was not answered within {seconds:g} s")
    succeeded, value = box[0]
    if succeeded:
        return value
    raise value


def impatient(*, local: bool = False) -> None:
    """This process's requests end soon where nobody answers, unless the user has said how long they
    may take."""
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", ANSWER_LOCAL_S if local else ANSWER_S)
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", TRIES)
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "1")


def words_of(error: BaseException) -> str:
    """Return the error in one line without secrets."""
    text = " ".join(str(error).split())
    return rule.without_secrets(f"{type(error).__name__}: {text}"[:ERROR_CHARS_MAX], os.environ)


def client(uri: str | None = None) -> Any:
    """MLflow's client of this address; None: of the environment's."""
    import mlflow

    return mlflow.MlflowClient(uri)


def opened(at: Any, wish: rule.Wish) -> tuple[str, str]:
    """(run, experiment) of this wish: a new one, or the one that it names."""
    if wish.run:
        found = at.get_run(wish.run)
        for name, value in wish.tags.items():
            if name.startswith("troupe."):
                at.set_tag(wish.run, name, value)
        return wish.run, found.info.experiment_id
    experiment = wish.experiment or _experiment(at, wish)
    tags = dict(wish.tags)
    if wish.parent:
        tags["mlflow.parentRunId"] = wish.parent
    made = at.create_run(experiment, tags=tags, run_name=wish.name or None)
    return made.info.run_id, experiment


def _experiment(at: Any, wish: rule.Wish) -> str:
    if wish.parent:
        return str(at.get_run(wish.parent).info.experiment_id)
    if not wish.experiment_name:
        return "0"
    found = at.get_experiment_by_name(wish.experiment_name)
    return str(
        found.experiment_id if found is not None else at.create_experiment(wish.experiment_name)
    )


def link_of(uri: str, experiment: str, run: str) -> str:
    """Return the URL at which a person looks at the run."""
    if uri.split(":")[0] in ("databricks", "databricks-uc", "uc"):
        try:
            from mlflow.utils.databricks_utils import get_databricks_run_url

            found = get_databricks_run_url(uri, run)
            if found:
                return str(found)
        except Exception:  # the needed package is not installed here
            return rule.link(uri, experiment, run)
    return rule.link(uri, experiment, run)
