"""Options of remote functions: checked by name and type. Pure."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from troupe._actors.method_options import MethodOptions
from troupe._actors.method_table import STREAMING
from troupe._actors.option_table import PLACED
from troupe._base import checks as _checks, words as _words
from troupe._cluster import selectors
from troupe._tasks.option_table import RETRIES, TASKS
from troupe._typed import option as _option


@dataclasses.dataclass(frozen=True)
class TaskOptions:
    """How the tasks of a function run.

    Attributes:
        given: options as the table's checks leave them, by name; what no attribute says is there.
    """

    name: str = ""
    returns: MethodOptions = MethodOptions()
    max_retries: int = RETRIES
    retry_exceptions: bool | tuple[type[BaseException], ...] = False
    max_calls: int = 0
    given: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def target(self, key: str) -> str:
        """Return the call target of the function known by `key`."""
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
    _checks.refuse_unknown("a task", options, TASKS, error=ValueError)
    held = _option.held(TASKS, options)
    if held.get("tensor_transport"):
        _refuse_transport(options["tensor_transport"])
    options = selectors.of_node(options)
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise ValueError(
            f"{function.__name__} is an `async def` function: those run in actors only\n"
            "  make it a method of a class, or call asyncio.run() inside a plain function"
        )
    selectors.where(options.get("label_selector"), options.get("fallback_strategy"))
    returns = options.get("num_returns")
    if returns is None and inspect.isgeneratorfunction(function):
        returns = STREAMING
    _words.current.check_yields(function, returns)
    given = {
        "num_returns": returns,
        "_generator_backpressure_num_objects": options.get("_generator_backpressure_num_objects"),
    }
    retries, calls = held.get("max_retries"), held.get("max_calls")
    if calls is None:
        # Memory that a task leaves on a GPU, and a CUDA context that it broke, end with its process
        calls = 1 if options.get("num_gpus") else 0
    return TaskOptions(
        name=str(options.get("name") or getattr(function, "__qualname__", "task")),
        returns=MethodOptions().with_given(given),
        max_retries=RETRIES if retries is None else retries,
        retry_exceptions=held.get("retry_exceptions", False),
        max_calls=calls,
        given=held,
    )


def _refuse_transport(value: Any) -> None:
    raise ValueError(
        f"tensor_transport={value!r} is for methods of actors: a task's process is used again, "
        "and keeps no tensors\n"
        "  make it a method of an actor, or leave the option away: what a task returns is "
        "written to shared memory, and read there"
    )


def placing(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that say where tasks run and with which resources; one CPU by default."""
    options = selectors.of_node(options)
    chosen = {
        name: value for name, value in options.items() if name in PLACED and value is not None
    }
    chosen.setdefault("num_cpus", 1)
    return chosen
