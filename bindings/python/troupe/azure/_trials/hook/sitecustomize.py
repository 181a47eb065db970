"""Run by every Python that the command of a sweep's trial starts: what it logs of the sweep's
metric is reported to the sweep.

`mlflow.log_metric` and `mlflow.log_metrics`, and `MlflowClient.log_metric` and `log_batch`, which
`mlflow.autolog()` and other packages use, do what they do, and report, in whichever thread;
`troupe.tune.report` reports. Of a job of several processes rank 0's count. Nothing is imported here
until the program imports mlflow or troupe.tune; then the environment's own sitecustomize has run.
"""

from __future__ import annotations

import functools
import importlib.machinery
import json
import os
import socket
import sys
import threading

TYPE_CHECKING = False  # typing is not imported for every Python
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_NAMES_MAX = 200
_others: dict[
    str, float
] = {}  # metrics that were logged since the last report, beside the sweep's own
_named: set[str] = set()  # metrics that the sweep knows to be logged
_lock = threading.Lock()  # guards both
_call = threading.local()  # `inside`: this thread is in a call that reports once it has ended
os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)


def ask(metrics: Mapping[str, float]) -> str:
    """Report metrics, and return why the trial is to end; "": it goes on."""
    return _send({"metrics": metrics})


def _send(request: Mapping[str, Any]) -> str:
    inside = os.open(os.environ["TROUPE_SWEEP_REPORTS"], os.O_PATH)
    try:  # the paths of sockets are limited to 108 bytes
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
            asked.connect(f"/proc/self/fd/{inside}/agent")
            asked.sendall(json.dumps(request).encode() + b"\n")
            with asked.makefile("rb") as stream:
                answer = stream.readline()
    finally:
        os.close(inside)
    return str(json.loads(answer)["stop"]) if answer else ""


def is_first() -> bool:
    """Return True if this process reports: the first of several, or the only one."""
    return all(os.environ.get(name, "0") == "0" for name in _RANKS)


def logged(metrics: Mapping[str, Any]) -> None:
    """Note what a program has logged: with the sweep's metric in it it is a report.

    Where the trial is to end this does not return.
    """
    if not metrics or not is_first():
        return
    values = {str(name): float(value) for name, value in metrics.items()}
    with _lock:
        new = [] if len(_named) > _NAMES_MAX else sorted(values.keys() - _named)
        _named.update(new)
        _others.update(values)
        reported = dict(_others) if os.environ["TROUPE_SWEEP_METRIC"] in values else {}
        if reported:
            _others.clear()
    if reported:
        if ask(reported):
            threading.Event().wait()  # for SIGTERM, which is on its way
    elif new:
        _send({"names": new})  # for who asks why the sweep's metric never came


def _watched(
    function: Callable[..., Any], metrics_of: Callable[..., Iterable[Mapping[str, Any]]]
) -> Callable[..., Any]:
    """Return the function as one that reports.

    `metrics_of`: of the call's arguments, what it logs, one dict for each report. A call inside of
    another one reports nothing: that one does.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if getattr(_call, "inside", False):
            return function(*args, **kwargs)
        _call.inside = True
        try:
            result = function(*args, **kwargs)
        finally:
            _call.inside = False
        for metrics in metrics_of(*args, **kwargs):
            logged(metrics)
        return result

    vars(call)["is_watched"] = True
    return call


def _by_step(metrics: Iterable[Any]) -> list[dict[str, Any]]:
    """Return metrics of a batch, as one dict for each step, in the order of steps."""
    steps: dict[int, dict[str, Any]] = {}
    for each in metrics:
        steps.setdefault(each.step or 0, {})[each.key] = each.value
    return [steps[step] for step in sorted(steps)]


_METRICS: dict[str, Callable[..., Any]] = {
    "log_metric": lambda key, value, *_, **__: [{key: value}],
    "log_metrics": lambda metrics, *_, **__: [metrics],
}
_OF_CLIENTS: dict[str, Callable[..., Any]] = {
    "log_metric": lambda self, run_id, key, value, *_, **__: [{key: value}],
    "log_batch": lambda self, run_id, metrics=(), *_, **__: _by_step(metrics),
}


def _watch(place: Any, functions: Mapping[str, Callable[..., Any]]) -> None:
    for name, metrics_of in functions.items():
        function = getattr(place, name, None)
        if function is not None and not hasattr(function, "is_watched"):
            setattr(place, name, _watched(function, metrics_of))


def _watch_mlflow(module: Any) -> None:
    _watch(module, _METRICS)


def _watch_client(module: Any) -> None:
    _watch(module.MlflowClient, _OF_CLIENTS)


def _report_here(module: Any) -> None:
    from troupe.azure._trials import loop

    module.enter(loop.JobLoop(ask, is_first))


_CHANGES = {
    "mlflow": _watch_mlflow,
    "mlflow.tracking.fluent": _watch_mlflow,
    "mlflow.tracking.client": _watch_client,
    "troupe.train._here": _report_here,
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


if "TROUPE_SWEEP_REPORTS" in os.environ:
    sys.meta_path.insert(0, _of_troupe("_base/after_import.py").AfterImport(_CHANGES))
_of_troupe("stand_ins/_next_start.py").run_next(_HERE)
