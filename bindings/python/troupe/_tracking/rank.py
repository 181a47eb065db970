"""A rank of a tracked launch: its program's MLflow is told of the launch's run when it is imported.

The run is made while the ranks start. A rank asks for it on a thread when its program imports
MLflow, and what first needs the run waits, START_S at most; so does a rank that becomes another
program, which could not ask any more. The first rank of each node says on a thread that the node is
there.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from typing import Any

from troupe._base.after_import import after_import
from troupe._tracking import rule, turns

START_S = 120.0
"""The tracker has bounds of its own, which are shorter: this one is for a tracker whose node cannot
be reached."""

_NOWHERE = "http://127.0.0.1:9"
"""In the place of a store in which the launch has no run, which was said: it is not asked."""

_known: Known | None = None


def begin(session: Any, rank: dict[str, Any]) -> None:
    """This process is this rank (its RankBegin), before its program's code runs.

    Nothing where the launch is not tracked.
    """
    global _known
    if rule.TRACKER not in os.environ:
        return
    _known = Known(session, rank)
    after_import({"mlflow": _known.imported})
    if rank["local_rank"] == 0:
        threading.Thread(target=_known.there, name="troupe-tracking", daemon=True).start()


def before_exec() -> None:
    """The process is about to become another program: its environment names the run."""
    if _known is not None:
        _known.there()


def run_id() -> str:
    """The launch's run, for the runtime's own; "": there is none.

    Waits as the program's import does.
    """
    if _known is None:
        return ""
    return str(_known.there().get("run", ""))


class Known:
    """The tracker's answer to this rank, asked once."""

    def __init__(self, session: Any, rank: dict[str, Any]) -> None:
        self._session, self._rank = session, rank
        self._lock = threading.Lock()
        self._told: dict[str, Any] | None = None
        self._tracker: Any = None
        self._guards: dict[bool, Any] = {}
        self._pid = os.getpid()

    def there(self) -> dict[str, Any]:
        """Return the known facts about the run, which the environment names.

        Blocks, START_S at most. Never raises.
        """
        if self._pid != os.getpid():
            return self._told or {}
        with self._lock:
            if self._told is None:
                try:
                    self._told = self._ask()
                except Exception as error:
                    self._told = {"failed": str(error)}
                self._enter(self._told)
        return self._told

    def _ask(self) -> dict[str, Any]:
        from troupe._base import calls as _calls
        from troupe._tracking import tracker

        rank = self._rank
        self._tracker = tracker.of(self._session, os.environ[rule.TRACKER])
        answer = self._tracker.where.remote(
            rank["launch"], rank["epoch"], rank["node"], rank["node_name"]
        )
        return dict(_calls.get(answer, START_S))

    @staticmethod
    def _enter(told: dict[str, Any]) -> None:
        from troupe._tracking import runs

        runs.impatient(local=bool(told.get("local")))
        env = told.get("env")
        if not env:
            return
        os.environ.pop(rule.EXPERIMENT_NAME, None)  # the number says it
        if rule.TOKEN in env:
            for name in rule.SECRETS:
                os.environ.pop(name, None)
        os.environ.setdefault(
            "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true"
        )  # the caller has said where the run is
        os.environ.update(env)

    def imported(self, mlflow: Any) -> None:
        """The program has imported MLflow, or is a copy of a process that had: its stores are
        guarded, and wait for word of the run."""
        with contextlib.suppress(
            ImportError, AttributeError
        ):  # something else of this name, or of another make: its errors are the program's
            _change(self, mlflow.tracking)
            threading.Thread(target=self.there, name="troupe-tracking", daemon=True).start()

    def guard(self, *, absent: bool) -> Any:
        """Return the guard that replaces the stores of this process; `absent`: stores in whose
        place there is none.

        Blocks as `there`.
        """
        told = self.there()
        with self._lock:
            if absent not in self._guards:
                from troupe._tracking import guard

                self._guards[absent] = guard.Guard(
                    told.get("run", ""),
                    told.get("experiment", ""),
                    told.get("name", ""),
                    self._rank["rank"],
                    mine=not told.get("adopted"),
                    absent=absent,
                    say=self._say,
                )
            return self._guards[absent]

    def _say(self, text: str) -> None:
        if self._tracker is not None:
            with contextlib.suppress(Exception):
                self._tracker.failed.remote(
                    f"what ranks log is left out while the store does not answer ({text})"
                )


def _change(known: Known, tracking: Any) -> None:
    """Every store that MLflow makes from now on is guarded; the launch's run is taken where it is
    meant."""
    import inspect

    fluent, utils = tracking.fluent, tracking._tracking_service.utils
    registry = tracking._tracking_service.registry.TrackingStoreRegistry
    stores, set_uri, start, first = (
        registry.get_store,
        utils.set_tracking_uri,
        fluent.start_run,
        utils.get_tracking_uri(),
    )

    def get_store(self: Any, store_uri: Any = None, artifact_uri: Any = None) -> Any:
        told = known.there()
        asked = store_uri or utils.get_tracking_uri()
        of_launch = asked == first or bool(told.get("local")) and turns.is_local(asked)
        if of_launch and "failed" in told:
            return known.guard(absent=True).store(stores(self, _NOWHERE, None))
        if of_launch:  # the caller's own is reached by the door on this node
            asked = told.get("env", {}).get(rule.URI, asked)
        return known.guard(absent=False).store(stores(self, asked, artifact_uri))

    def set_tracking_uri(uri: Any) -> None:
        if not (known.there().get("local") and turns.is_local(str(uri))):
            set_uri(uri)

    def start_run(*args: Any, **kwargs: Any) -> Any:
        told = known.there()
        usual = utils.get_tracking_uri() in (
            first,
            told.get("env", {}).get(rule.URI),
        ) and fluent._active_experiment_id in (None, told.get("experiment"))
        if not usual and told.get("run") and os.environ.get(rule.RUN) == told["run"]:
            del os.environ[
                rule.RUN
            ]  # the program goes its own way: to another store, or into another experiment
        return start(*args, **kwargs)

    registry.get_store = get_store
    start_run.__doc__, start_run.__signature__ = start.__doc__, inspect.signature(start)  # type: ignore[attr-defined]
    modules = [
        each
        for name, each in list(sys.modules.items())
        if name == "mlflow" or name.startswith("mlflow.")
    ]
    for old, new in ((set_uri, set_tracking_uri), (start, start_run)):
        if old is None:
            continue
        name = old.__name__
        for module in modules:
            if vars(module).get(name) is old:
                setattr(module, name, new)
