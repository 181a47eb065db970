"""MLflow in the ranks of a tracked launch: what they log reaches the launch's run, and a store that
is away fails no training.

The store that MLflow's client talks to is changed by its instance, so that all ways lead through it
(the fluent functions, the client, frameworks' own loggers):
* what is logged to a run while the store cannot be reached is left out, said once by the launch;
  the store is asked again after a pause that grows, so that a server that hangs slows a rank by
  seconds in all, not at each step;
* a run, or an experiment, that is asked for then is one of this process's, of which nothing is
  kept;
* parameters are rank 0's, for MLflow refuses a second value; of actors and tasks, which have no
  rank, the first one's count;
* the launch's run ends with the launch, not with its first rank. What a store refuses (a name that
  it does not take, a run that is not there) is raised as ever: that is the program's to know.
"""

from __future__ import annotations

import functools
import math
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from troupe._tracking import runs

PAUSE_S, PAUSE_MAX_S = 30.0, 600.0
_AWAY_CODES = (
    "INTERNAL_ERROR",
    "TEMPORARILY_UNAVAILABLE",
    "DEADLINE_EXCEEDED",
    "REQUEST_LIMIT_EXCEEDED",
)
_LOGS = (
    "log_metric",
    "log_param",
    "log_batch",
    "set_tag",
    "delete_tag",
    "set_experiment_tag",
    "log_inputs",
    "log_outputs",
    "record_logged_model",
    "log_metric_async",
    "log_param_async",
    "log_batch_async",
    "set_tag_async",
    "update_run_info",
)

_PARAMS = ("log_param", "log_param_async")


class Away(Exception):
    """The store is not asked now: it did not answer before."""


def is_away(error: BaseException) -> bool:
    """Return True if the error means that the store was unreachable or unwell; False if it refused
    something."""
    if isinstance(error, (Away, OSError)):  # requests' exceptions are OSErrors
        return True
    status = getattr(error, "get_http_status_code", None)
    if getattr(error, "error_code", "") in _AWAY_CODES:
        return True
    return bool(status is not None and status() in (429, 502, 503, 504))


class Breaker:
    """A circuit breaker that decides whether the store is asked, for one process. Any thread."""

    def __init__(
        self,
        say: Callable[[str], None],
        *,
        absent: bool = False,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say, self._now = say, now
        self._lock = threading.Lock()
        self._pause_s = PAUSE_S
        self._until = math.inf if absent else 0.0

    def call(self, action: Callable[[], Any]) -> Any:
        """Return `action()`. Raises Away while the store is not asked, and the errors of
        `action`."""
        with self._lock:
            if self._now() < self._until:
                raise Away("the tracking store did not answer, and is not asked at this moment")
        try:
            value = action()
        except Exception as error:
            if is_away(error):
                self._failed(error)
            raise
        with self._lock:
            self._pause_s = PAUSE_S
        return value

    def _failed(self, error: Exception) -> None:
        with self._lock:
            self._until = self._now() + self._pause_s
            self._pause_s = min(2 * self._pause_s, PAUSE_MAX_S)
        self._say(runs.words_of(error))


class Guard:
    """Changes stores.

    `run`: the launch's, "": there is none; `mine`: it ends with the launch; `absent`: they are not
    asked at all.
    """

    def __init__(
        self,
        run: str,
        experiment: str,
        name: str,
        rank: int | None,
        *,
        mine: bool,
        absent: bool,
        say: Callable[[str], None],
    ) -> None:
        self._run, self._experiment, self._name, self._rank, self._mine = (
            run,
            experiment,
            name,
            rank,
            mine,
        )
        self._breaker = Breaker(say, absent=absent)
        self._own: dict[str, str] = {}  # runs of this process's, and their experiment
        self._changed: set[int] = set()

    def store(self, store: Any) -> Any:
        """Return the store with its logging methods replaced, once."""
        if id(store) in self._changed:
            return store
        self._changed.add(id(store))
        for name in _LOGS:
            if hasattr(store, name):
                setattr(store, name, self._logging(name, getattr(store, name)))
        for name, instead in (
            ("get_run", self._run_here),
            ("create_run", self._new_run),
            ("get_experiment", self._experiment_here),
            ("get_experiment_by_name", self._experiment_here),
            ("create_experiment", lambda *_, **__: "0"),
        ):
            if hasattr(store, name):
                setattr(store, name, self._asking(getattr(store, name), instead))
        return store

    def _logging(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def log(*args: Any, **kwargs: Any) -> Any:
            run = str(kwargs.get("run_id", args[0] if args else ""))
            if run == self._run and not self._is_for_the_run(name, kwargs, args):
                return self._run_here(run).info if name == "update_run_info" else None
            if name == "log_batch" and run == self._run and self._rank:
                args, kwargs = _without_params(args, kwargs)
            if run in self._own:
                return self._run_here(run).info if name == "update_run_info" else None
            try:
                return self._breaker.call(lambda: method(*args, **kwargs))
            except Exception as error:
                second = (
                    self._rank is None
                    and run == self._run
                    and "param" in str(error).lower()
                    and name in _PARAMS
                )
                if not is_away(error) and not second:
                    raise
                return self._run_here(run).info if name == "update_run_info" else None

        return log

    def _is_for_the_run(self, name: str, kwargs: dict[str, Any], args: tuple[Any, ...]) -> bool:
        if name in _PARAMS:
            return not self._rank
        if name == "update_run_info" and self._mine:
            from mlflow.entities import RunStatus

            status = kwargs.get("run_status", args[1] if len(args) > 1 else None)
            return status is None or status == RunStatus.RUNNING and not self._rank
        return True

    def _asking(
        self, method: Callable[..., Any], instead: Callable[..., Any]
    ) -> Callable[..., Any]:
        @functools.wraps(method)
        def ask(*args: Any, **kwargs: Any) -> Any:
            if args and args[0] in self._own:
                return instead(*args, **kwargs)
            try:
                return self._breaker.call(lambda: method(*args, **kwargs))
            except Exception as error:
                if not is_away(error):
                    raise
                return instead(*args, **kwargs)

        return ask

    def _run_here(self, run_id: str, *_: Any, **__: Any) -> Any:
        """As much of a run as this process knows."""
        from mlflow.entities import LifecycleStage, Run, RunData, RunInfo, RunStatus

        now = int(time.time() * 1000)
        info = RunInfo(
            run_id=run_id,
            experiment_id=self._own.get(run_id, self._experiment or "0"),
            user_id="",
            status=RunStatus.to_string(RunStatus.RUNNING),
            start_time=now,
            end_time=None,
            lifecycle_stage=LifecycleStage.ACTIVE,
            run_name=self._name,
        )
        return Run(info, RunData(metrics=[], params=[], tags=[]))

    def _new_run(self, experiment_id: str = "0", *_: Any, **__: Any) -> Any:
        run = uuid.uuid4().hex
        self._own[run] = str(experiment_id)
        return self._run_here(run)

    def _experiment_here(self, id_or_name: str = "", *_: Any, **__: Any) -> Any:
        from mlflow.entities import Experiment, LifecycleStage

        return Experiment(self._experiment or "0", str(id_or_name), "", LifecycleStage.ACTIVE)


def _without_params(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of log_batch(run_id, metrics, params, tags) without params."""
    if "params" in kwargs:
        kwargs = {**kwargs, "params": []}
    return (*args[:2], [], *args[3:]) if len(args) > 2 else args, kwargs
