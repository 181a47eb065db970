"""The work of the ranks of one run: a function, or a script with its command line."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from troupe._cluster import resources, workers
from troupe._code import program as _program
from troupe.launch import DistributedFunction, LaunchHandle, _arguments, _hints, _program as _launch
from troupe.spark import _errors
from troupe.spark._rank_zero import RankZero

OptionFiles = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Function:
    """A function with its arguments; `words` and `files`: what its processes have as their command
    line."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    asked: str
    words: Sequence[str] = ()
    files: OptionFiles = ()
    script: str = field(default="", init=False)

    @property
    def command(self) -> str:
        """For people."""
        return f"{getattr(self.function, '__qualname__', type(self.function).__name__)}(...)"

    def start(self, options: Any, session: Any) -> LaunchHandle:
        """Submits it.

        Raises TypeError for what is no function, and for arguments that it does not take; what
        `submit` of troupe.launch does.
        """
        if not callable(self.function):
            raise TypeError(
                f"{self.asked} takes a function, or the path of a Python script, not "
                f"{self.function!r}"
            )
        _hints.check_function(self.function, self.asked, "run({}, ...)")
        _arguments.check(self.function, self.args, self.kwargs, ())
        return _Launched(RankZero(self.function, self.words, self.files), options, session)._launch(
            self.args, dict(self.kwargs), options
        )

    def output(self, handle: LaunchHandle) -> Any:
        """Return the value of rank 0.

        Raises what `result` of a handle does, DistributorError for what cannot be made here.
        """
        import cloudpickle

        handle.succeeded()
        data = handle.raw_result(0)
        try:
            return cloudpickle.loads(data)
        except Exception as error:
            raise _errors.of_output(error, self.command) from error


@dataclass(frozen=True)
class Script:
    """A script; `files`: options that its command line ends with, each with a file."""

    path: str
    words: tuple[str, ...]
    files: OptionFiles = ()
    nodes: int = 0  # over that many, as many ranks on each; 0: wherever they fit

    @property
    def script(self) -> str:
        """The absolute path of the script."""
        return os.path.abspath(self.path)

    @property
    def command(self) -> str:
        """For people."""
        return str([self.path, *self.words])

    def start(self, options: Any, session: Any) -> LaunchHandle:
        """Submits it.

        Raises FileNotFoundError, IsADirectoryError, SyntaxError, and what `submit_command` of
        troupe.launch does.
        """
        if not self.path:
            raise ValueError("the path of the script is empty")
        line = _launch.Line(
            _program.SCRIPT,
            self.path,
            self.words,
            nodes=self.nodes if session.embedded is None else 0,
            traits={"option_files": tuple(self.files)},
        )
        return _launch.start(line, options, session)

    @staticmethod
    def output(handle: LaunchHandle) -> None:
        """None, once all ranks have ended well."""
        handle.succeeded()


Training = Function | Script


class _Launched(DistributedFunction):
    """The launch of one run, on the cluster that was found for it."""

    def __init__(self, function: Callable[..., Any], options: Any, session: Any) -> None:
        super().__init__(function, options)
        self._session = session

    def _place(self, options: Any) -> tuple[Any, Any]:
        return self._session, options

    def _without_place(self, session: Any) -> str:
        return _hints.of_gpus(session, without="use_gpu=False")


def of_this_machine(session: Any, ranks: int) -> dict[str, Any]:
    """Options of ranks that share this machine, as they would under torchrun: they wait for no CPU
    that it has too few of, and a lone one has as many threads as there are CPUs."""
    cpus = max(
        (
            resources.from_wire(node["resources"]).get("CPU", 0)
            for node in workers.node_infos(session)
        ),
        default=0,
    )
    asked: dict[str, Any] = {"cpus_per_rank": 0 if ranks > cpus else 1}
    if ranks == 1 and "OMP_NUM_THREADS" not in os.environ:
        asked["runtime_env"] = {"env_vars": {"OMP_NUM_THREADS": str(len(os.sched_getaffinity(0)))}}
    return asked
