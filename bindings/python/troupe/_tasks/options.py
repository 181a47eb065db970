"""Options of remote functions: checked by name and type. Pure."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from troupe import _checks, _words
from troupe._actors import method_options
from troupe._actors.method_options import STREAMING, MethodOptions
from troupe._cluster import infeasible, resources, selectors

RETRIES = 3
_PLACING = {
    "num_cpus",
    "num_gpus",
    "memory",
    "resources",
    "runtime_env",
    "scheduling_strategy",
    "accelerator_type",
    "label_selector",
    "fallback_strategy",
    "priority",
    "infeasible",
    "preimport",
}
_KNOWN = {
    *_PLACING,
    "name",
    "num_returns",
    "max_retries",
    "retry_exceptions",
    "max_calls",
    "_generator_backpressure_num_objects",
}
_IGNORED = {"enable_task_events"}  # Ray's, without a meaning here


def option_names() -> set[str]:
    """Return the options of a remote function that mean something, or are accepted as Ray's."""
    return {*_KNOWN, *_IGNORED, "tensor_transport", *selectors.GROUP_OPTIONS}


@dataclasses.dataclass(frozen=True)
class TaskOptions:
    """How the tasks of a function run."""

    name: str = ""
    returns: MethodOptions = MethodOptions()
    max_retries: int = RETRIES
    retry_exceptions: bool | tuple[type[BaseException], ...] = False
    max_calls: int = 0

    def target(self, key: str) -> str:
        """What the call path takes for a call of the function known by `key`."""
        return self.returns.target(key)

    @property
    def retried(self) -> int:
        """Exceptions that are a reason to run it again: 0 none, 1 all, 2 some."""
        return (
            2
            if isinstance(self.retry_exceptions, tuple) and self.retry_exceptions
            else int(self.retry_exceptions is True)
        )


def check(function: Callable[..., Any], options: Mapping[str, Any]) -> TaskOptions:
    """The options.

    Raises ValueError or TypeError naming the one that can never be right, and what may be.
    """
    _checks.refuse_unknown("a task", options, option_names(), error=ValueError)
    if "tensor_transport" in options:
        _check_transport(options["tensor_transport"])
    options = selectors.of_node(options)
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise ValueError(
            f"{function.__name__} is an `async def` function: those run in actors only\n"
            "  make it a method of a class, or call asyncio.run() inside a plain function"
        )
    resources.check_options(options, gpu_parts_later=_words.current.late_checks())
    _checks.check_preimport(options.get("preimport") or ())
    selectors.where(options.get("label_selector"), options.get("fallback_strategy"))
    resources.check_priority(options.get("priority") or 0)
    infeasible.check(options.get("infeasible"))
    given_name = options.get("name")
    if given_name is not None and not isinstance(given_name, str):
        raise TypeError(f"name must be a text, not {given_name!r}")
    returns = options.get("num_returns")
    if returns is None and inspect.isgeneratorfunction(function):
        returns = STREAMING
    _words.current.check_yields(function, returns)
    given = {
        "num_returns": returns,
        "_generator_backpressure_num_objects": options.get("_generator_backpressure_num_objects"),
    }
    calls = (
        1 if options.get("num_gpus") else 0
    )  # what the task leaves on the GPU, and a context of CUDA that it broke, go with the process
    return TaskOptions(
        name=given_name or getattr(function, "__qualname__", "task"),
        returns=MethodOptions().with_given(given),
        max_retries=_whole(
            "max_retries", options.get("max_retries"), RETRIES, least=-1, also="-1 for any number"
        ),
        retry_exceptions=method_options.check(
            {"retry_exceptions": options.get("retry_exceptions")}
        )["retry_exceptions"],
        max_calls=_whole(
            "max_calls", options.get("max_calls"), calls, least=0, also="0 for any number"
        ),
    )


def _check_transport(value: Any) -> None:
    if method_options.keeps_tensors(value):
        raise ValueError(
            f"tensor_transport={value!r} is for methods of actors: a task's process is used again, "
            "and keeps no tensors\n"
            "  make it a method of an actor, or leave the option away: what a task returns is "
            "written to shared memory, and read there"
        )


def placing(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those that say where tasks run and with what; one CPU unless they say otherwise."""
    options = selectors.of_node(options)
    chosen = {
        name: value for name, value in options.items() if name in _PLACING and value is not None
    }
    chosen.setdefault("num_cpus", 1)
    return chosen


def _whole(name: str, value: Any, default: int, *, least: int, also: str) -> int:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, or {also}, not {value!r}")
    if not least <= value < 1 << 31:
        raise ValueError(f"{name} must be a whole number of at least 0, or {also}, not {value!r}")
    return value
