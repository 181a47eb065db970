"""A job as the cluster knows it. Pure."""

from __future__ import annotations

from typing import Any


class Job:
    """A job as the cluster knows it, by whomever it was submitted: name, id, status, how many nodes
    and processes it has."""

    type = "command"
    studio_url: str | None = None
    is_command_job = True
    """False for launches that did not come as command jobs, which `jobs.list` gives too."""

    def __init__(
        self, name: str, launch: str, status: str, *, nodes: int = 0, processes: int = 0
    ) -> None:
        self.name: str | None = name
        self.id: str | None = launch
        self.status: str | None = status
        self.nodes, self.processes = nodes, processes
        self.properties: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"<job {self.name} {self.status}>"

    def to_dict(self) -> dict[str, Any]:
        """All of it."""
        return {
            "type": self.type,
            **{name: value for name, value in vars(self).items() if name != "is_command_job"},
        }
