"""Remote functions: each call runs in a process of its own, forked for it and ended after it."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from troupe import _actor_handle, _actor_link, _actors, _calls, _capture, _session, exceptions

_KNOWN = {"num_cpus", "num_gpus", "memory", "resources", "runtime_env", "scheduling_strategy", "name", "max_retries",
          "num_returns", "max_calls", "retry_exceptions"}
_ONLY = {"num_returns": (1,), "max_retries": (0, 3), "max_calls": (0, 1), "retry_exceptions": (False,)}


class _Runner:
    """The actor that runs one task."""

    def run(self, payload: bytes) -> Any:
        import cloudpickle

        function, args, kwargs = cloudpickle.loads(payload)
        return function(*args, **kwargs)


class RemoteFunction:
    """What `@troupe.remote` makes of a function. `remote(...)` starts it; nothing is retried."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        for name, value in options.items():
            if name not in _KNOWN:
                raise ValueError(f"{name!r} is no option of a task; there are: {', '.join(sorted(_KNOWN))}")
            if name in _ONLY and value not in _ONLY[name]:
                raise ValueError(f"the task option {name}={value!r} is not supported by this version")
        self._function = function
        self._options = dict(options)
        self.__name__ = getattr(function, "__name__", "task")
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"remote functions are started by {self.__name__}.remote(...), not by calling them")

    def __reduce__(self) -> tuple:
        return RemoteFunction, (self._function, self._options)

    def options(self, **options: Any) -> "RemoteFunction":
        """The same function with other options."""
        return RemoteFunction(self._function, {**self._options, **options})

    def remote(self, *args: Any, **kwargs: Any) -> Any:
        """Starts the task; a ref of what it returns.

        Raises LaunchError when function or arguments cannot travel, PlacementError when no node can ever
        run it. A process that dies fails the ref with ActorDiedError.
        """
        payload = _capture.dumps(self._function, _actor_link.resolve_args(args), _actor_link.resolve_kwargs(kwargs),
                                 what=f"the function {self.__name__}")
        options = {name: value for name, value in self._options.items() if name not in _ONLY and name != "name"}
        options.setdefault("num_cpus", 1)
        runner = _actors.create(_Runner, (), {}, options)
        ref = runner.run.remote(payload)
        key = ref.hex()
        _running[key] = runner
        _calls.when_done(ref, lambda: _end(_running.pop(key, runner)))
        return ref


_running: dict[str, _actor_handle.ActorHandle] = {}  # by the ref of what it runs


def cancel(ref: Any, *, force: bool) -> bool:
    """Ends the process of a task; False: the ref is not that of a task that runs."""
    runner = _running.get(ref.hex())
    if runner is None:
        return False
    kind = exceptions.WorkerCrashedError if force else exceptions.CancelledError
    runner._link.fail(kind(f"the task was cancelled by troupe.cancel(force={force})"))
    return True


def _end(runner: _actor_handle.ActorHandle) -> None:
    session: _session.Session = runner._link.session
    if not session.closed:
        session.control.send("KillActor", {"actor": runner._actor_id})
