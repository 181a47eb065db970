"""A database in a file is made or migrated by one process at a time.

MLflow runs all migrations where a database is new, and several processes that do so at once fail. Runs of tracked launches are made beside the
caller (`local_store`). Ranks of a launch without a run have MLflow as it is, and each opens the database of its directory itself.
"""
from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from typing import Any

from troupe._cluster import home
from troupe._tracking import rule


@contextlib.contextmanager
def alone(uri: str) -> Iterator[None]:
    """Keep other processes of this user on this host from opening the store at `uri` in this directory meanwhile; blocks while one does.

    A store that is no file of this host is nobody's to wait for.
    """
    if not rule.is_local(uri):
        yield
        return
    name = hashlib.sha256(f"{os.getcwd()} {uri}".encode()).hexdigest()[:16]
    with open(home.home() / f"tracking-{name}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def take_turns(mlflow: Any) -> None:
    """Have this process, which has imported MLflow, open each local store while no other one opens it."""
    with contextlib.suppress(ImportError, AttributeError):  # something else of this name, or of another make
        service = mlflow.tracking._tracking_service
        registry, utils = service.registry.TrackingStoreRegistry, service.utils
        stores, opened = registry.get_store, set()

        def get_store(self: Any, store_uri: Any = None, artifact_uri: Any = None) -> Any:
            uri = str(store_uri or utils.get_tracking_uri())
            if uri in opened:
                return stores(self, store_uri, artifact_uri)
            with alone(uri):
                store = stores(self, store_uri, artifact_uri)
            opened.add(uri)
            return store

        registry.get_store = get_store
