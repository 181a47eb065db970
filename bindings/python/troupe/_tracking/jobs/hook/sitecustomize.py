"""Run by every Python that a job's command starts where the job has an MLflow store of its own: the
job's processes share one run.

The first process that starts a run makes the job's run, and the others go on in it. Processes ask
the database in turns: where several make its tables at once, or write at once, they fail. Nothing
is imported here until the program imports mlflow; then the environment's own sitecustomize has run.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import importlib.machinery
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator

TYPE_CHECKING = False  # typing is not imported for every Python
if TYPE_CHECKING:
    from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_FOLDER = os.environ.get("TROUPE_JOB_MLFLOW", "")
_URI = f"sqlite:///{_FOLDER}/mlflow.db"
_ARTIFACTS, _RUN = os.path.join(_FOLDER, "artifacts"), os.path.join(_FOLDER, "run.json")
_lock = threading.RLock()
_depth = 0  # number of nested calls of this process that have the turn
os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)


@contextlib.contextmanager
def turn() -> Iterator[None]:
    """Keep the job's other processes on this node, and threads of this one, from the store
    meanwhile."""
    global _depth
    with _lock:
        held = (
            os.open(os.path.join(_FOLDER, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if _depth == 0
            else -1
        )
        _depth += 1
        try:
            if held >= 0:
                fcntl.flock(held, fcntl.LOCK_EX)
            yield
        finally:
            _depth -= 1
            if held >= 0:
                os.close(held)


def job_run() -> tuple[str, str]:
    """Return (run, experiment) of the job, made where no process has done so."""
    with turn():
        try:
            with open(_RUN, encoding="utf-8") as file:
                told = json.load(file)
        except FileNotFoundError:
            told = _make_run()
    return told["run"], told["experiment"]


def _make_run() -> dict[str, str]:
    import socket

    import mlflow

    wish = json.loads(os.environ["TROUPE_JOB_MLFLOW_RUN"])
    client, experiment = mlflow.MlflowClient(_URI), "0"
    if wish["experiment"]:
        found = client.get_experiment_by_name(wish["experiment"])
        experiment = (
            found.experiment_id
            if found is not None
            else client.create_experiment(wish["experiment"])
        )
    run = client.create_run(experiment, tags=wish["tags"], run_name=wish["name"]).info.run_id
    told = {"run": run, "experiment": experiment, "folder": _FOLDER}
    with open(f"{_RUN}.new", "w", encoding="utf-8") as file:
        json.dump(told, file)
    os.replace(f"{_RUN}.new", _RUN)
    about = {"run": run, "store": _URI, "folder": _FOLDER, "host": socket.gethostname()}
    print(f"troupe: {wish['told'].format(**about)}", file=sys.stderr, flush=True)
    return told


def _is_own(uri: object) -> bool:
    from mlflow.tracking._tracking_service import utils

    return str(uri or utils.get_tracking_uri()) == _URI


def _change_fluent(fluent: Any) -> None:
    start = fluent.start_run

    @functools.wraps(start)
    def start_run(*args: Any, **kwargs: Any) -> Any:
        if not _has_started and not fluent.active_run() and _is_own(None):
            run, experiment = job_run()
            _has_started.append(run)
            if (
                str(fluent._active_experiment_id or experiment) == experiment
            ):  # else the program goes its own way, into another experiment
                os.environ["MLFLOW_EXPERIMENT_ID"] = experiment
                os.environ["MLFLOW_RUN_ID"] = run
        return start(*args, **kwargs)

    fluent.start_run = start_run


_has_started: list[
    str
] = []  # the job's run, once this process has started a run: a later one is its own


def _change_registry(registry: Any) -> None:
    kind = registry.TrackingStoreRegistry
    stores = kind.get_store

    @functools.wraps(stores)
    def get_store(
        self: object, store_uri: str | None = None, artifact_uri: str | None = None
    ) -> Any:
        if not _is_own(store_uri):
            return stores(self, store_uri, artifact_uri)
        with turn():
            return _in_turns(stores(self, _URI, artifact_uri or _ARTIFACTS))

    kind.get_store = get_store


def _in_turns(store: Any) -> Any:
    import inspect

    if not getattr(store, "has_turns", False):
        for name in dir(type(store)):
            if not name.startswith("_") and inspect.isfunction(
                inspect.getattr_static(type(store), name)
            ):
                setattr(store, name, _as_turn(getattr(store, name)))
        store.has_turns = True
    return store


def _as_turn(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        with turn():
            return method(*args, **kwargs)

    return call


def _where_it_fits(change: Callable[[object], None]) -> Callable[[object], None]:
    """Return the change without an error for another make of MLflow, which works as it is."""

    def run(module: object) -> None:
        with contextlib.suppress(AttributeError):
            change(module)

    return run


_CHANGES = {
    "mlflow.tracking.fluent": _where_it_fits(_change_fluent),
    "mlflow.tracking._tracking_service.registry": _where_it_fits(_change_registry),
    "mlflow.store.db.utils": _where_it_fits(
        lambda utils: _of_troupe("_tracking/empty_store.py").install(
            utils, os.environ.get("TROUPE_MLFLOW_EMPTY", "")
        )
    ),
}


def _of_troupe(file: str) -> Any:
    """Return a module of the package by its file: this Python may have another version's package,
    or none."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(_HERE)))
    name = "_troupe_" + os.path.basename(file).partition(".")[0].lstrip("_")
    module = type(sys)(name)
    importlib.machinery.SourceFileLoader(name, os.path.join(package, *file.split("/"))).exec_module(
        module
    )
    return module


if _FOLDER and os.environ.get("MLFLOW_TRACKING_URI") == _URI:
    sys.meta_path.insert(0, _of_troupe("_base/after_import.py").AfterImport(_CHANGES))
_of_troupe("stand_ins/_next_start.py").run_next(_HERE)
