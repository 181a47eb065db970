"""A job as it is asked for: its command, what it holds, when it starts; checked before anything
travels."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from troupe._base.identity import new_id
from troupe._cluster import resources
from troupe._code import runtime_env as _runtime_env

ID_CHARS_MAX = 100
METADATA_BYTES_MAX = 4 << 10
COMMAND_CHARS_MAX = 64 << 10
SHELL = "bash"
_ID = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{ID_CHARS_MAX - 1}}}")


def check_id(job: object) -> str:
    """Return a job's id. Raises TypeError for what is no text, ValueError for what is no id."""
    if not isinstance(job, str):
        raise TypeError(f"a job's id is a text, not {job!r}")
    if not _ID.fullmatch(job):
        raise ValueError(
            f"{job!r} is no id of a job: up to {ID_CHARS_MAX} letters, digits, dots, dashes and "
            "underscores, of which the first is a letter or a digit"
        )
    return job


def id_of_key(key: str) -> str:
    """Return the id that every job submitted with this idempotency key has."""
    return f"job-{hashlib.sha256(key.encode()).hexdigest()[:12]}"


@dataclass(frozen=True)
class JobRequest:
    """A request for one job. `command` is a list of words; a line for a shell is `(SHELL, "-c",
    line)`."""

    command: tuple[str, ...]
    id: str = ""  # "": a new one
    name: str = ""
    cpus: float = 1
    gpus: int = 0
    memory: int = 0  # bytes
    resources: Mapping[str, float] = field(default_factory=dict)
    priority: int = 0
    retries: int = 0
    timeout_s: float | None = None
    grace_s: float = 30.0
    after: tuple[str, ...] = ()
    runtime_env: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)

    def check(self) -> JobRequest:
        """Return the request.

        Raises TypeError or ValueError for the first thing in it that cannot be meant.
        """
        if (
            isinstance(self.command, str)
            or not isinstance(self.command, Sequence)
            or not all(isinstance(each, str) for each in self.command)
        ):
            raise TypeError(f"the command of a job is a list of words, not {self.command!r}")
        if not self.command or not self.command[0]:
            raise ValueError("there is nothing to run: give the command of the job")
        if sum(map(len, self.command)) > COMMAND_CHARS_MAX:
            raise ValueError(
                f"the command of a job has at most {COMMAND_CHARS_MAX} characters: put more into a "
                "file of its working directory"
            )
        if self.id:
            check_id(self.id)
        for name, amount in (("cpus", self.cpus), ("gpus", self.gpus)):
            resources.check_amount(name, amount)
        if self.gpus != int(self.gpus):
            raise ValueError(
                f"gpus must be a whole number, for a job holds whole GPUs, not {self.gpus!r}"
            )
        for name in self.resources:
            resources.check_name(name)
        resources.check_priority(self.priority)
        if isinstance(self.retries, bool) or not isinstance(self.retries, int) or self.retries < 0:
            raise ValueError(f"retries must be a whole number of at least 0, not {self.retries!r}")
        _runtime_env.check(dict(self.runtime_env))
        self._check_metadata()
        return self

    def _check_metadata(self) -> None:
        wrong = [
            each for pair in self.metadata.items() for each in pair if not isinstance(each, str)
        ]
        if wrong:
            raise TypeError(f"metadata has texts for names and values, not {wrong[0]!r}")
        if len(json.dumps(dict(self.metadata)).encode()) > METADATA_BYTES_MAX:
            raise ValueError(
                f"the metadata of a job has at most {METADATA_BYTES_MAX} bytes as JSON"
            )

    @property
    def line(self) -> str:
        """The command as people write it."""
        return (
            self.command[2]
            if len(self.command) == 3 and self.command[:2] == (SHELL, "-c")
            else shlex.join(self.command)
        )

    def with_id(self) -> JobRequest:
        """Return the request with an id, a new one where it has none."""
        return self if self.id else replace(self, id=f"job-{new_id()[:12]}")

    def digest(self) -> str:
        """Return what two requests have in common that ask for the same job."""
        asked = [
            list(self.command),
            self.name,
            self.cpus,
            self.gpus,
            self.memory,
            sorted(self.resources.items()),
            self.priority,
            self.retries,
            self.timeout_s,
            self.grace_s,
            list(self.after),
            json.dumps(self.runtime_env, sort_keys=True, default=str),
            sorted(self.metadata.items()),
        ]
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:32]
