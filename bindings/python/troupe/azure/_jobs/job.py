"""A job as the cluster knows it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from troupe._code import yaml_files
from troupe.azure._entities import Input, Named, Output
from troupe.azure._jobs.services import STUDIO, JobService

DESCRIBED = (
    "display_name",
    "description",
    "experiment_name",
    "compute",
    "tags",
    "properties",
    "command",
    "inputs",
    "outputs",
    "parent_job_name",
)
"""Fields of a job that go with its launch, and that `jobs.get` and `jobs.list` know by that."""


class SystemData:
    """When a job was made, and by whom."""

    def __init__(self, created_at: datetime | None, created_by: str | None = None) -> None:
        self.created_at = self.last_modified_at = created_at
        self.created_by = self.last_modified_by = created_by
        self.created_by_type = self.last_modified_by_type = None if created_by is None else "User"

    def __repr__(self) -> str:
        return f"SystemData(created_at={self.created_at}, created_by={self.created_by!r})"

    def to_dict(self) -> dict[str, Any]:
        """Return what is known, times as text."""
        found = {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in vars(self).items()
            if value is not None
        }
        return found


def made_at(seconds: float, user: str = "") -> SystemData | None:
    """Return the creation at a time, in seconds since 1970; None where the time is not known."""
    return SystemData(datetime.fromtimestamp(seconds, UTC), user or None) if seconds else None


class Described:
    """The fields shared by all kinds of jobs that people describe and submit."""

    creation_context: SystemData | None = None
    """None: it was not submitted."""
    log_files: dict[str, str] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what is set of it."""
        raise NotImplementedError

    def dump(self, dest: Any) -> None:
        """Write it as YAML to a new file, or to a file that is open.

        Raises FileExistsError, OSError.
        """
        dump(self.to_dict(), dest)


class Job:
    """A job as the cluster knows it, by whomever it was submitted: name, id, status, how many nodes
    and processes it has.

    Of a job that came as one also what it was described by: `display_name`, `description`,
    `experiment_name`, `compute`, `tags`, `properties`, `command`, `inputs`, `outputs`.
    `creation_context`: when it was submitted, and by whom. `log_files`: paths of what its processes
    printed, by name, where this host keeps them; else None. `services["Studio"].endpoint` is
    `studio_url`.
    """

    type = "command"
    studio_url: str | None = None
    is_command_job = True
    """False for launches that did not come as command jobs, which `jobs.list` gives too."""

    def __init__(
        self,
        name: str,
        launch: str,
        status: str,
        *,
        nodes: int = 0,
        processes: int = 0,
        about: Mapping[str, Any] | None = None,
        created: SystemData | None = None,
    ) -> None:
        about = about or {}
        self.name: str | None = name
        self.id: str | None = launch
        self.status: str | None = status
        self.nodes, self.processes = nodes, processes
        self.display_name: str | None = about.get("display_name")
        self.description: str | None = about.get("description")
        self.experiment_name: str | None = about.get("experiment_name")
        self.compute: str | None = about.get("compute")
        self.command: str | None = about.get("command")
        self.tags: dict[str, str] = dict(about.get("tags") or {})
        self.properties: dict[str, str] = dict(about.get("properties") or {})
        self.inputs, self.outputs = _named(Input, about, "inputs"), _named(Output, about, "outputs")
        self.parent_job_name: str | None = about.get("parent_job_name")
        self.creation_context = created
        self.log_files: dict[str, str] | None = None

    def __repr__(self) -> str:
        return f"<job {self.name} {self.status}>"

    @property
    def services(self) -> dict[str, JobService]:
        """Return the job's services: "Studio" alone, whose endpoint is `studio_url`."""
        return services_of(self.studio_url)

    def to_dict(self) -> dict[str, Any]:
        """Return all that is known of it."""
        found = {name: value for name, value in vars(self).items() if name != "is_command_job"}
        if self.creation_context is not None:
            found["creation_context"] = self.creation_context.to_dict()
        return {"type": self.type, **found}

    def dump(self, dest: Any) -> None:
        """Write it as YAML to a new file, or to a file that is open.

        Raises FileExistsError, OSError.
        """
        dump(self.to_dict(), dest)


def _named(cls: type[Input | Output], about: Mapping[str, Any], name: str) -> Named:
    """Return inputs or outputs of a description. What cannot be read is as it is in it."""
    found = Named()
    for each, value in (about.get(name) or {}).items():
        try:
            found[each] = cls(**value) if isinstance(value, dict) else value
        except (TypeError, ValueError):  # another version's
            found[each] = value
    return found


def services_of(studio_url: str | None) -> dict[str, JobService]:
    """Return the services of a job that was submitted."""
    return {STUDIO: JobService(endpoint=studio_url)}


def plain(value: Any) -> Any:
    """Return a value with what JSON has no words for as text."""
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def dump(fields: Mapping[str, Any], dest: Any) -> None:
    """Write a job's fields as YAML to a new file, or to a file that is open."""
    found = {name: value for name, value in plain(fields).items() if value not in (None, {})}
    text = yaml_files.text_of(found)
    if hasattr(dest, "write"):
        dest.write(text)
        return
    with open(dest, "x", encoding="utf-8") as file:
        file.write(text)
