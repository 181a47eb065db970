"""Callbacks that write down what trials report, by Ray's names and in Ray's files: for
`RunConfig(callbacks=[...])`. None of them is there unasked.

from troupe.tune.logger import CSVLoggerCallback, JsonLoggerCallback, TBXLoggerCallback

tune.RunConfig(callbacks=[CSVLoggerCallback(), JsonLoggerCallback(), TBXLoggerCallback()])
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from troupe.tune.logger.csv import CSVLoggerCallback
    from troupe.tune.logger.json import JsonLoggerCallback
    from troupe.tune.logger.logger import LoggerCallback, pretty_print
    from troupe.tune.logger.mlflow import MLflowLoggerCallback
    from troupe.tune.logger.tensorboardx import TBXLoggerCallback

_WHERE = {
    "CSVLoggerCallback": "csv",
    "JsonLoggerCallback": "json",
    "LoggerCallback": "logger",
    "MLflowLoggerCallback": "mlflow",
    "TBXLoggerCallback": "tensorboardx",
    "pretty_print": "logger",
}


def __getattr__(name: str) -> Any:
    """Import a public name from the module that defines it."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})


__all__ = [
    "CSVLoggerCallback",
    "JsonLoggerCallback",
    "LoggerCallback",
    "MLflowLoggerCallback",
    "TBXLoggerCallback",
    "pretty_print",
]
