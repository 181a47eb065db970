"""The folder of a pipeline: its plan, and what has become of each step, written whole at each
change.

~/troupe_results/NAME/
  pipeline.json          the plan
  state.json             the state of each step
  driver.lock            locked as long as a driver runs the pipeline
  code/DIGEST            the code of steps, as it was when the pipeline was submitted
  steps/STEP/outputs/OUTPUT  an output that has no path of its own
  steps/STEP/std_log.txt     what the step's processes printed
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from troupe._cluster import folders, home
from troupe.azure._pipeline import graph, plan as _plan

PLAN, STATE, LOCK = "pipeline.json", "state.json", "driver.lock"
LOG = "std_log.txt"
_REPAIR = "what its steps wrote is beside it, in steps/"


@dataclass
class StepState:
    """The state of a step.

    `job`: the name of its job, or of the one that it reuses; `outputs`: by name, `path`, `type` and
    `digest` of each.

    `seconds`: how long it has taken, from its start.
    """

    status: str = graph.NOT_STARTED
    job: str = ""
    cause: str = ""
    exit_code: int | None = None
    signal: int | None = None
    is_reused: bool = False
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    started: float = 0.0
    seconds: float = 0.0


@dataclass
class State:
    """A pipeline as it is. `version` counts the changes."""

    status: str = graph.NOT_STARTED
    cause: str = ""
    version: int = 0
    host: str = ""
    pid: int = 0
    steps: dict[str, StepState] = field(default_factory=dict)

    def statuses(self) -> dict[str, str]:
        """Return the state of each step."""
        return {name: each.status for name, each in self.steps.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON has it."""
        return asdict(self)


def read_state(fields: Mapping[str, Any]) -> State:
    """Return the state that `State.to_dict` gave."""
    return State(
        **{**fields, "steps": {name: StepState(**each) for name, each in fields["steps"].items()}}
    )


class Folder:
    """A pipeline's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, made: _plan.Plan) -> None:
        """Write the plan, with all steps not started. By the plan's file the pipeline is found."""
        self.save(State(steps={name: StepState() for name in made.steps}))
        with folders.replacement(self.path / PLAN) as fresh:
            fresh.write_text(json.dumps(made.to_dict(), indent=1))

    def began_s(self) -> float:
        """Return when the plan was written, in seconds since 1970."""
        return (self.path / PLAN).stat().st_mtime

    def plan(self) -> _plan.Plan | None:
        """Return the plan; None: there is no pipeline here. Raises DamagedFileError."""
        fields = home.read_record(self.path / PLAN, _REPAIR, name=str, steps=dict)
        return None if fields is None else _plan.read(fields)

    def state(self) -> State:
        """Return the state as it was last saved. Raises FileNotFoundError, DamagedFileError."""
        fields = home.read_record(self.path / STATE, _REPAIR, status=str, steps=dict)
        if fields is None:
            raise FileNotFoundError(f"there is no {self.path / STATE}: {_REPAIR}")
        return read_state(fields)

    def save(self, state: State) -> None:
        """Write the state in place of the last one."""
        with folders.replacement(self.path / STATE) as fresh:
            fresh.write_text(json.dumps(state.to_dict()))

    def step(self, name: str) -> Path:
        """Return the folder of a step."""
        return self.path / "steps" / name

    def lock(self) -> int:
        """Take the driver's lock for as long as this process lives, or the descriptor is open.

        Blocks while an earlier driver has not ended.
        """
        descriptor = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return descriptor

    def is_driven(self) -> bool:
        """Return True if a process of this host has the driver's lock."""
        return not self._can_share(fcntl.LOCK_SH | fcntl.LOCK_NB)

    def wait(self) -> None:
        """Block until no process of this host has the driver's lock."""
        self._can_share(fcntl.LOCK_SH)

    def _can_share(self, how: int) -> bool:
        try:
            descriptor = os.open(self.path / LOCK, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return True
        try:
            fcntl.flock(descriptor, how)
        except BlockingIOError:
            return False
        finally:
            os.close(descriptor)
        return True


def here() -> tuple[str, int]:
    """Return this host's name and this process's id."""
    return socket.gethostname(), os.getpid()
