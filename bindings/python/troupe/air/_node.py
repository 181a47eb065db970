"""Preparations on a node before a workload's command: a folder for it, its code, variables, and the
port at which its processes meet.

    air-LAUNCH-EPOCH-NODE/     of the host's cache
      code/                    $CODE_SOURCE_PATH: a copy of its own, and the command's directory
      hyperparameters.yaml     $HYPERPARAMETERS_PATH
      mlflow/                  what the command logs by MLflow (`_tracking.jobs.job_store`)

View: one rank of the launch, before it becomes the shell that runs the command.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from troupe import _pickled
from troupe._code import disk, packages, runtime_env
from troupe._tracking.jobs import job_store
from troupe.launch import _context, _ports

SHELL = "bash"
_OF_RANKS = (
    "RANK",
    "LOCAL_RANK",
    "GROUP_RANK",
    "ROLE_RANK",
    "ROLE_NAME",
    "LOCAL_WORLD_SIZE",
    "GROUP_WORLD_SIZE",
    "ROLE_WORLD_SIZE",
)
"""Variables that belong to ranks. The command is none: it starts them, by torchrun for one."""


@dataclass(frozen=True)
class NodeStart:
    """The start of a workload, as it travels to its nodes."""

    command: str
    accelerators: int
    nodes: int
    code: Mapping[str, Any] | None = None  # as `air._code.package` returns it
    hyperparameters: str = ""  # YAML text
    run: Mapping[str, Any] | None = None  # as `job_store.wish_of` returns it

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.air_node, (_pickled.fields_of(self),)

    def __call__(self, session: Any) -> Callable[[], Sequence[str]]:
        """Make and enter the folder.

        Return a function that sets the variables and returns the rest of the shell's command line.

        Raises:
            OutOfDiskError, OSError: if the code cannot be written.
            RuntimeEnvSetupError, ObjectLostError: if the code cannot be had.
        """
        context = _context.current()
        folder = packages.held(
            f"air-{context.launch}-{context.epoch}-{context.node}",
            lambda made: self._make(made, session),
            "the folder of the workload",
        )
        os.chdir(folder / "code")
        meeting = _ports.Meeting(session, context, folder)

        def begin() -> Sequence[str]:
            os.environ.update(
                meeting.variables(session, context), **self._variables(folder, context.rank)
            )
            if self.run is not None:
                node = context.node if context.node_count > 1 else ""
                job_store.apply(job_store.variables(folder, node, self.run, os.environ, {}))
            for name in _OF_RANKS:
                os.environ.pop(name, None)
            return "-c", self.command

        return begin

    def _variables(self, folder: Path, rank: int) -> dict[str, str]:
        # `python` and `torchrun` of a command are those of the node's own interpreter, whatever its
        # worker was started from.
        path = os.pathsep.join(
            [os.path.dirname(sys.executable), *filter(None, [os.environ.get("PATH")])]
        )
        return {
            "CODE_SOURCE_PATH": str(folder / "code"),
            "HYPERPARAMETERS_PATH": str(folder / "hyperparameters.yaml"),
            "NUM_NODES": str(self.nodes),
            "NODE_RANK": str(rank),
            "NUM_ACCELERATORS": str(self.accelerators),
            "WORLD_SIZE": str(self.accelerators),
            "PATH": path,
        }

    def _make(self, folder: Path, session: Any) -> None:
        code = folder / "code"
        if self.code is not None:
            here = runtime_env.package_here(self.code, session, "code_source")
            disk.copy_tree(here, code, "code_source", symlinks=True, remedy=packages.ROOM)
        else:
            code.mkdir()
        (folder / "hyperparameters.yaml").write_text(self.hyperparameters)


@_pickled.maker("air_node")
def _air_node(fields: Mapping[str, Any]) -> Any:
    """Return what a node of an AI Runtime workload does before it runs the command."""
    return _pickled.of_fields(NodeStart, fields)
