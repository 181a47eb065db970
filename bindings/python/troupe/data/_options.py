"""Arguments that functions of data have in common: where they run and with what, checked. Pure."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from troupe import _pickled
from troupe.data._plan import Compute, Op, Travels

KNOWN = (
    "num_cpus",
    "num_gpus",
    "memory",
    "label_selector",
    "fallback_strategy",
    "max_calls",
    "resources",
    "accelerator_type",
    "runtime_env",
    "scheduling_strategy",
    "max_retries",
    "priority",
)
_MEANS_NOTHING = (
    "max_restarts",
    "max_task_retries",
    "retry_exceptions",
    "enable_task_events",
    "name",
)


@dataclass(frozen=True)
class TaskPoolStrategy(Travels):
    """Functions run as tasks, `size` at once at most. As Ray's."""

    size: int | None = None

    def compute(self, what: str) -> Compute:
        """As a plan has it."""
        return Compute(
            "tasks", most=None if self.size is None else positive(what, "size", self.size)
        )


@dataclass(frozen=True, kw_only=True)
class ActorPoolStrategy(Travels):
    """A class has instances in actors: `size` of them, or `min_size` at the beginning and
    `max_size` at most. As Ray's."""

    size: int | None = None
    min_size: int | None = None
    max_size: int | None = None
    initial_size: int | None = None
    max_tasks_in_flight_per_actor: int | None = None
    max_concurrent_calls_per_actor: int | None = None
    enable_true_multi_threading: bool | None = None

    def compute(self, what: str) -> Compute:
        """As a plan has it."""
        if self.size is not None:
            size = positive(what, "size", self.size)
            return Compute("actors", size, size)
        least = positive(what, "min_size", self.initial_size or self.min_size or 1)
        most = None if self.max_size is None else positive(what, "max_size", self.max_size)
        if most is not None and most < least:
            raise ValueError(
                f"{what}: ActorPoolStrategy(min_size={least}, max_size={most}): the second is the "
                "larger one"
            )
        return Compute("actors", least, most)


def positive(what: str, name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{what}({name}={value!r}): a whole number of at least 1")
    return value


def of_processes(what: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of tasks and actors that were given. Raises ValueError for what is none."""
    options = dict(given)
    options.update(options.pop("ray_remote_args", None) or {})
    if options.pop("ray_remote_args_fn", None) is not None:
        raise ValueError(
            f"{what}(ray_remote_args_fn=...) is not a part of Troupe: options are the same for all "
            "blocks, as arguments of their own"
        )
    for name in options:
        if name not in KNOWN and name not in _MEANS_NOTHING:
            raise ValueError(
                f"{what}({name}=...): it has no such argument; of where functions run there are "
                f"{', '.join(KNOWN)}"
            )
    return {
        name: value
        for name, value in options.items()
        if value is not None and name not in _MEANS_NOTHING
    }


Strategy = TaskPoolStrategy | ActorPoolStrategy | Literal["tasks", "actors"] | None
"""What `compute=` takes."""


def compute_of(what: str, fn: Any, compute: Strategy, concurrency: Any) -> Compute:
    """Tasks or actors, and how many.

    Raises ValueError or TypeError for what does not go together.
    """
    is_class = inspect.isclass(fn)
    if compute is not None:
        if concurrency is not None:
            raise ValueError(f"{what}(compute=..., concurrency=...): one of them")
        if compute in ("tasks", "actors"):
            compute = TaskPoolStrategy() if compute == "tasks" else ActorPoolStrategy()
        if not isinstance(compute, (TaskPoolStrategy, ActorPoolStrategy)):
            raise TypeError(
                f"{what}(compute={compute!r}): TaskPoolStrategy(size=n), or "
                "ActorPoolStrategy(size=n)"
            )
        if is_class and isinstance(compute, TaskPoolStrategy):
            raise ValueError(
                f"{what}({fn.__name__}, compute=TaskPoolStrategy(...)): a class needs "
                "ActorPoolStrategy, as its instances live in actors"
            )
        return compute.compute(what)
    if concurrency is None:
        return Compute("actors") if is_class else Compute("tasks")
    if isinstance(concurrency, tuple):
        if len(concurrency) not in (2, 3) or not is_class:
            raise ValueError(
                f"{what}(concurrency={concurrency!r}): a number, or of a class (least, most) too"
            )
        return ActorPoolStrategy(
            min_size=concurrency[0], max_size=concurrency[1], initial_size=(*concurrency, None)[2]
        ).compute(what)
    size = positive(what, "concurrency", concurrency)
    return Compute("actors", size, size) if is_class else Compute("tasks", most=size)


def op_of(
    kind: str,
    fn: Any,
    given: Mapping[str, Any],
    *,
    compute: Strategy = None,
    concurrency: Any = None,
    fn_args: Iterable[Any] | None = None,
    fn_kwargs: Mapping[str, Any] | None = None,
    fn_constructor_args: Iterable[Any] | None = None,
    fn_constructor_kwargs: Mapping[str, Any] | None = None,
    **more: Any,
) -> Op:
    """The function as a plan has it.

    Raises ValueError or TypeError naming what can never be right.
    """
    if not callable(fn):
        raise TypeError(f"{kind}({fn!r}): a function, or a class whose instances are called")
    if inspect.isclass(fn) and not any("__call__" in vars(each) for each in fn.__mro__):
        raise TypeError(f"{kind}({fn.__name__}): a class whose instances are called needs __call__")
    if (
        inspect.iscoroutinefunction(fn)
        or inspect.isclass(fn)
        and inspect.iscoroutinefunction(fn.__call__)
    ):
        raise TypeError(
            f"{kind}({_name(fn)}): `async def` functions are not mapped: asyncio.run() inside a "
            "plain one"
        )
    if not inspect.isclass(fn) and (fn_constructor_args or fn_constructor_kwargs):
        raise ValueError(
            f"{kind}({_name(fn)}, fn_constructor_args=...): only a class has a constructor; "
            "fn_args and fn_kwargs are a function's"
        )
    return Op(
        kind,
        fn,
        f"{kind}({_name(fn)})",
        tuple(fn_args or ()),
        dict(fn_kwargs or {}),
        tuple(fn_constructor_args or ()),
        dict(fn_constructor_kwargs or {}),
        compute=compute_of(kind, fn, compute, concurrency),
        options=of_processes(kind, given),
        **more,
    )


def _name(fn: Callable[..., Any]) -> str:
    return getattr(fn, "__name__", None) or type(fn).__name__


_pickled.named_in("troupe.data", ActorPoolStrategy, TaskPoolStrategy)
