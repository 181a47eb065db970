"""The step between a rank of a launch and the command of a job: the process stops being a rank and
becomes a driver of the whole cluster.

View: the job's process on its node, before it executes the command. A job has one log: its stdout
goes where its stderr goes, so that lines stand in the order in which they were written.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from troupe import _pickled, exceptions, stand_ins
from troupe._base import job as _job
from troupe._cluster import variables
from troupe._code import packages
from troupe.ray_compat import _command_path

ID = "TROUPE_SUBMISSION_ID"
ATTEMPT = "TROUPE_JOB_ATTEMPT"
_DESCRIPTOR_LEAST = 100  # so that a shell's own redirections do not meet it
_OF_RANKS = (
    "RANK",
    "LOCAL_RANK",
    "NODE_RANK",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "ROLE_RANK",
    "ROLE_WORLD_SIZE",
    "ROLE_NAME",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_USE_AGENT_STORE",
    "TORCHELASTIC_MAX_RESTARTS",
    "TROUPE_LAUNCH_ID",
    "TROUPE_EPOCH",
    "TROUPE_RUNTIME_ENV",
    "TROUPE_SPAWNS",
    "TROUPE_JOB_AFTER",
    "TROUPE_JOB_TOKEN_ID",
)
"""Variables that say that a process is a rank of a launch. A job's process is none."""
_BY_THE_WORKER = ("NCCL_SOCKET_IFNAME", "NCCL_IB_HCA", "GLOO_SOCKET_IFNAME", "OMP_NUM_THREADS")
"""Variables that a worker sets for a rank on its node.

Those of a job's process travel to what the job starts, on other nodes, so only the user's stay.
"""


@dataclass(frozen=True)
class JobStart:
    """The start of a job, as it travels to its node."""

    job: str
    token: str = field(repr=False, default="")
    runtime_env: Mapping[str, Any] = field(default_factory=dict)
    is_by_token: bool = False
    """Whether the job's processes show the token even on the head's host, where the head's socket
    would make them the head's own user: whoever submitted it came by a token, too."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.job_start, (_pickled.fields_of(self),)

    def __call__(self, session: Any) -> Callable[[], Sequence[str]]:
        """Return a function that makes this process a driver, called when the command is about to
        be executed."""
        launch, attempt = session.launch, session.epoch
        ray = _ray_command() if stand_ins.RAY in stand_ins.passed_on() else []
        own = {*variables.carried, *(self.runtime_env.get("env_vars") or {})}
        gone = [*_OF_RANKS, *(name for name in _BY_THE_WORKER if name not in own)]
        address = os.environ.get("TROUPE_ADDRESS", "")
        if self.is_by_token and address.startswith("unix:"):
            address = session.request("GetStatus", {})[1]["address"]

        def begin() -> Sequence[str]:
            for name in gone:
                os.environ.pop(name, None)
            os.environ.update(
                {ID: self.job, ATTEMPT: str(attempt), _job.JOB: launch[:8], _job.NAMESPACE: launch}
            )
            if self.runtime_env:
                os.environ[_job.RUNTIME_ENV] = json.dumps(dict(self.runtime_env))
            if self.token:
                os.environ["TROUPE_TOKEN_FILE"] = _in_memory(self.token)
                os.environ["TROUPE_ADDRESS"] = address
            os.environ["PATH"] = os.pathsep.join([*ray, *filter(None, [os.environ.get("PATH")])])
            os.dup2(2, 1)
            return ()

        return begin


def _ray_command() -> list[str]:
    """Return the folder that has the command `ray`, for a job in which `import ray` means Troupe.

    It stays while the job's process lives.
    """
    name = f"ray-command-{hashlib.sha256(sys.executable.encode()).hexdigest()[:8]}"
    return [str(packages.held(name, _command_path.put_into, "the command ray"))]


def _in_memory(token: str) -> str:
    """Return the path of a file in memory that has the token, for this process, what it becomes,
    and what it starts."""
    try:
        made = os.memfd_create("token", 0)
    except OSError as error:
        raise exceptions.RuntimeEnvSetupError(
            f"the token of the job could not be kept in memory: {error.strerror}"
        ) from error
    os.fchmod(made, 0o600)
    os.write(made, token.encode())
    kept = fcntl.fcntl(made, fcntl.F_DUPFD, _DESCRIPTOR_LEAST)
    os.close(made)
    return f"/proc/{os.getpid()}/fd/{kept}"


@_pickled.maker("job_start")
def _job_start(fields: Mapping[str, Any]) -> Any:
    """Return what a job's process does before it executes the command."""
    return _pickled.of_fields(JobStart, fields)
