"""A database in a file is made or migrated by one process at a time.

MLflow runs all migrations where a database is new, and several processes that do so at once fail.
Runs of tracked launches are made beside the caller (`local_store`). Ranks of a launch without a run
have MLflow as it is, and so have the programs that they start: each opens the database of its
directory itself. Interpreters that a rank starts, or becomes, load this file by its path
(`stand_ins/path/start/sitecustomize.py`), whether or not they have the package: it imports nothing
of it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from typing import Any

BELOW = "TROUPE_MLFLOW_LOCKS"
"""Set by a rank for all that it starts: the folder of the locks."""
_WORDS = ("databricks", "databricks-uc", "uc")  # addresses without a scheme


def is_local(uri: str) -> bool:
    """Return whether each host would have a store of its own by this address: a folder, or a
    database in a file."""
    scheme, colon, _ = uri.partition(":")
    return uri not in _WORDS and (
        not colon or scheme in ("file", "sqlite") or scheme.startswith("sqlite+")
    )


@contextlib.contextmanager
def alone(uri: str, locks: str) -> Iterator[None]:
    """Keep other processes of this user on this host from opening the store at `uri` meanwhile;
    blocks while one does.

    A store that is no file of this host is nobody's to wait for. `locks`: the folder where all of
    them look, TROUPE_HOME.
    """
    if not is_local(uri):
        yield
        return
    name = hashlib.sha256(_path_of(uri).encode()).hexdigest()[:16]
    with open(os.path.join(locks, f"tracking-{name}.lock"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _path_of(uri: str) -> str:
    """Return where the store of a local address is, however the address names it.

    >>> _path_of("sqlite:////data/mlflow.db"), _path_of("file:///runs"), _path_of("/runs")
    ('/data/mlflow.db', '/runs', '/runs')
    """
    scheme, colon, rest = uri.partition(":")
    if not colon:
        return os.path.abspath(uri)
    rest = rest.removeprefix("//")
    return os.path.abspath(rest.removeprefix("/") if scheme.startswith("sqlite") else rest)


def take_turns(mlflow: Any, locks: str) -> None:
    """Have this process, which has imported MLflow, open each local store while no other one opens
    it. `locks`: as for `alone`."""
    with contextlib.suppress(
        ImportError, AttributeError
    ):  # something else of this name, or of another make
        service = mlflow.tracking._tracking_service
        registry, utils = service.registry.TrackingStoreRegistry, service.utils
        stores, opened = registry.get_store, set()

        def get_store(self: Any, store_uri: Any = None, artifact_uri: Any = None) -> Any:
            uri = str(store_uri or utils.get_tracking_uri())
            if uri in opened:
                return stores(self, store_uri, artifact_uri)
            with alone(uri, locks):
                store = stores(self, store_uri, artifact_uri)
            opened.add(uri)
            return store

        registry.get_store = get_store
