"""Options of launches: what the decorators take, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from troupe import _checks, _pickled, _strategies
from troupe._cluster import infeasible as _infeasible, resources, selectors
from troupe._code import runtime_env as _runtime_env

if TYPE_CHECKING:
    from typing import ParamSpec, TypeVar

    Parameters = ParamSpec("Parameters")
    Result = TypeVar("Result")


STOP_GRACE_S = 10.0


REFORM_TIMEOUT_S = 300.0


_APIS = (None, "troupe", "ray")


_BACKENDS = (None, "troupe")


@dataclass(frozen=True)
class LaunchOptions:
    """What the decorator was given, checked."""

    mode: str
    ranks: int
    gpus: bool
    gpu_type: str
    cpus_per_rank: float
    memory: int
    remote: bool
    max_attempts: int
    timeout: float | None
    runtime_env: dict[str, Any]
    inherit_env: tuple[str, ...]
    name: str
    strategy: str
    priority: int = 0
    where: dict[str, Any] = field(default_factory=dict)
    api: str | None = None
    stop_grace: float = STOP_GRACE_S
    exit_grace: float = _checks.EXIT_GRACE_S
    detach: bool = False
    quiet: bool = False
    infeasible: str | None = None
    preimport: tuple[str, ...] = ()
    ranks_per_node: int = 0
    tracking: bool | None = None
    # where `tracking` says nothing: each launch has a run wherever MLflow is installed, made before
    # it starts
    tracks: bool = False
    run_name: str = ""  # of its run in MLflow; "": the launch's name
    run_experiment: str = ""  # in which the run is; "": as the caller's variables say
    run_tags: Mapping[str, str] = field(default_factory=dict)
    backend: str | None = None
    on_rank_death: str = "fail"
    min_processes: int | None = None
    reform_timeout: float = REFORM_TIMEOUT_S
    hang_timeout: float | None = None
    idempotency_key: str = ""  # "": every submission is a launch of its own
    about: Mapping[str, str] = field(
        default_factory=dict
    )  # what a front door wants told with the launch
    door: str = "launch"  # what it came from, for people: troupe.launch, or which front door

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.launch_options, (_pickled.fields_of(self),)


def _count(what: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise TypeError(f"{what} must be a whole number of at least 1, not {value!r}")
    return value


def _decorator(mode: str) -> str:
    return "distributed" if mode == "distributed" else "ray_launch"


def _options(
    mode: str,
    *,
    gpus: int | None,
    processes: int | None,
    gpu_type: str | None,
    cpus_per_rank: float,
    memory: float | str | None,
    remote: bool,
    max_attempts: int,
    timeout: float | None,
    runtime_env: Mapping[str, Any] | None,
    inherit_env: Iterable[str],
    name: str | None,
    strategy: str,
    priority: int,
    stop_grace: float,
    exit_grace: float,
    api: str | None = None,
    quiet: bool = False,
    infeasible: str | None = None,
    preimport: Iterable[str] = (),
    tracking: bool | None = None,
    backend: str | None = None,
    on_rank_death: str = "fail",
    min_processes: int | None = None,
    reform_timeout: float = REFORM_TIMEOUT_S,
    hang_timeout: float | None = None,
    called: str = "",
    **where: Any,
) -> LaunchOptions:
    asked = called or f"@{_decorator(mode)}"
    if (gpus is None) == (processes is None):
        given = "neither" if gpus is None else "both"
        raise TypeError(
            f"{asked} takes exactly one of gpus= and processes=, {given} given: "
            f"{asked}({'..., ' if called else ''}processes=4)"
        )
    if gpu_type is not None and gpus is None:
        raise TypeError(f"{asked}: gpu_type= goes with gpus=")
    if isinstance(inherit_env, str):
        raise TypeError("inherit_env must be a list of names, not a text")
    if (
        isinstance(cpus_per_rank, bool)
        or not isinstance(cpus_per_rank, (int, float))
        or cpus_per_rank < 0
    ):
        raise TypeError(f"cpus_per_rank must be a number of at least 0, not {cpus_per_rank!r}")
    if timeout is not None and (
        isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0
    ):
        raise ValueError(f"timeout must be more than 0 seconds, not {timeout!r}")
    for what, seconds in (("stop_grace", stop_grace), ("exit_grace", exit_grace)):
        _checks.check_grace(what, seconds)
    _strategies.check(strategy)
    if tracking not in (None, True, False):
        raise TypeError(
            "tracking must be True, False, or None for the rule of docs/mlflow.md, not "
            f"{tracking!r}"
        )
    if backend not in _BACKENDS:
        raise ValueError(
            "backend must be 'troupe' (process groups that name no backend are Troupe's, on CPUs) "
            f"or None (torch chooses), not {backend!r}; "
            "init_process_group() takes any by name"
        )
    if api not in _APIS:
        raise ValueError(
            "api must be 'troupe' (`import ray` is Troupe), 'ray' (a real Ray cluster is started "
            f"on the launch's nodes) or None, not {api!r}"
        )
    ranks = _count("gpus", gpus) if gpus is not None else _count("processes", processes)
    deaths = (on_rank_death, min_processes, reform_timeout, hang_timeout)
    if deaths != ("fail", None, REFORM_TIMEOUT_S, None):
        from troupe.launch import _deaths

        _deaths.check(ranks, *deaths)
    return LaunchOptions(
        mode=mode,
        ranks=ranks,
        on_rank_death=on_rank_death,
        min_processes=min_processes,
        reform_timeout=reform_timeout,
        hang_timeout=hang_timeout,
        gpus=gpus is not None,
        gpu_type=gpu_type or "",
        cpus_per_rank=cpus_per_rank,
        memory=resources.bytes_of(memory or 0),
        remote=bool(remote),
        max_attempts=_count("max_attempts", max_attempts),
        timeout=timeout,
        runtime_env=_runtime_env.check(runtime_env),
        inherit_env=tuple(inherit_env),
        name=name or "",
        strategy=strategy,
        priority=resources.check_priority(priority),
        where=selectors.where(**where),
        api=api,
        stop_grace=stop_grace,
        exit_grace=exit_grace,
        quiet=bool(quiet),
        infeasible=_infeasible.check(infeasible),
        preimport=_checks.check_preimport(preimport),
        tracking=tracking,
        backend=backend,
    )


@_pickled.maker("launch_options")
def _launch_options(fields: Mapping[str, Any]) -> Any:
    """What those were given."""
    return _pickled.of_fields(LaunchOptions, fields)
