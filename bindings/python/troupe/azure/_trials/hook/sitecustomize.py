"""Run by every Python that the command of a sweep's trial starts: what it logs of the sweep's metric is reported to the sweep.

`mlflow.log_metric` and `mlflow.log_metrics` do what they do, and report; `troupe.tune.report` reports. Of a job of several processes rank 0's
count. Nothing is imported here until the program imports mlflow or troupe.tune; then the environment's own sitecustomize has run.
"""
import functools
import importlib.machinery
import importlib.util
import json
import os
import socket
import sys
import threading

_HERE = os.path.dirname(os.path.abspath(__file__))
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_others = {}  # metrics that were logged since the last report, beside the sweep's own


def ask(metrics):
    """Reports; why the trial is to end, "": it goes on."""
    inside = os.open(os.environ["TROUPE_SWEEP_REPORTS"], os.O_PATH)
    try:  # the paths of sockets are limited to 108 bytes
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
            asked.connect(f"/proc/self/fd/{inside}/agent")
            asked.sendall(json.dumps({"metrics": metrics}).encode() + b"\n")
            with asked.makefile("rb") as stream:
                answer = stream.readline()
    finally:
        os.close(inside)
    return json.loads(answer)["stop"] if answer else ""


def is_first():
    """Whether this process reports: the first of several, or the only one."""
    return all(os.environ.get(name, "0") == "0" for name in _RANKS)


def logged(metrics):
    """What a program has logged: with the sweep's metric in it it is a report. Where the trial is to end this does not return."""
    if not is_first():
        return
    _others.update({str(name): float(value) for name, value in metrics.items()})
    if os.environ["TROUPE_SWEEP_METRIC"] in metrics:
        reported = dict(_others)
        _others.clear()
        if ask(reported):
            threading.Event().wait()  # for SIGTERM, which is on its way


def _watched(function, metrics_of):
    @functools.wraps(function)
    def call(*args, **kwargs):
        result = function(*args, **kwargs)
        logged(metrics_of(*args, **kwargs))
        return result

    call.is_watched = True
    return call


_METRICS = {"log_metric": lambda key, value, *_, **__: {key: value}, "log_metrics": lambda metrics, *_, **__: metrics}


def _watch_mlflow(module):
    for name, metrics_of in _METRICS.items():
        function = getattr(module, name, None)
        if function is not None and not hasattr(function, "is_watched"):
            setattr(module, name, _watched(function, metrics_of))


def _report_here(module):
    from troupe.azure._trials import loop

    module.enter(loop.JobLoop(ask, is_first))


_CHANGES = {"mlflow": _watch_mlflow, "mlflow.tracking.fluent": _watch_mlflow, "troupe.train._here": _report_here}


class _Finder:
    """Changes these modules right after they were executed."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        """None for all others, which the other finders find."""
        change = _CHANGES.pop(name, None)
        if change is None:
            return None
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            change(module)

        spec.loader.exec_module = exec_module
        return spec


sys.path[:] = [each for each in sys.path if os.path.abspath(each or ".") != _HERE]
if "TROUPE_SWEEP_REPORTS" in os.environ:
    sys.meta_path.insert(0, _Finder)
_own = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
if _own is not None and _own.loader is not None:
    _own.loader.exec_module(importlib.util.module_from_spec(_own))
