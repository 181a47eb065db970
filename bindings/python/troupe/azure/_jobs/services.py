"""Services and identities of jobs as scripts describe them. None runs here. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from troupe._code import field_checks
from troupe.azure import _schema
from troupe.azure._entities import Part

STUDIO = "Studio"
SERVICE_TYPES = (
    *("jupyter_lab", "ssh", "tensor_board", "vs_code"),
    *("jupyterlab", "tensorboard", "vscode", "custom"),
)
"""As scripts and files have them, in any case."""
SERVICE = (
    "type",
    "endpoint",
    "port",
    "nodes",
    "properties",
    "status",
    "job_service_type",
    "log_dir",
    "ssh_public_keys",
)
"""Keys of a service in a file."""
IDENTITY_TYPES = (
    *("user_identity", "managed_identity", "managed", "aml_token"),
    *("useridentity", "managedidentity", "amltoken"),
)
IDENTITY = ("type", "client_id", "object_id", "msi_resource_id")
"""Keys of an identity in a file; all but `type` are of a managed one."""


class JobService(Part):
    """A service of a job: a program that would answer at `endpoint` while the job runs.

    None is started here, and submitting a job with one says so. `services["Studio"]` of a job that
    was submitted has as `endpoint` the job's `studio_url`. Raises TypeError or ValueError.

        JobService(type="tensor_board", nodes="all")
    """

    kind: ClassVar[str | None] = None

    def __init__(
        self,
        *,
        endpoint: str | None = None,
        type: str | None = None,
        nodes: str | None = None,
        status: str | None = None,
        port: int | None = None,
        properties: Mapping[str, str] | None = None,
        log_dir: str | None = None,
        ssh_public_keys: str | None = None,
        job_service_type: str | None = None,
    ) -> None:
        named = type or job_service_type or self.kind
        self.type = None if named is None else _schema.one_of("type", named, SERVICE_TYPES)
        if nodes not in (None, "all"):
            raise ValueError(f"nodes is {nodes!r}; a service runs on the first node, or on 'all'")
        self.nodes, self.status, self.endpoint = nodes, status, endpoint
        self.port = None if port is None else _schema.whole("port", port, least=0)
        self.properties = _schema.mapping("properties", properties) or None
        self.log_dir, self.ssh_public_keys = log_dir, ssh_public_keys
        for name, value, owner in (
            ("log_dir", log_dir, "tensorboard"),
            ("ssh_public_keys", ssh_public_keys, "ssh"),
        ):
            if value is not None and self.type and self.type.replace("_", "") != owner:
                raise ValueError(f"{name} is of a service of another type, not of {self.type}")


class JupyterLabJobService(JobService):
    """JupyterLab beside a job."""

    kind = "jupyter_lab"


class SshJobService(JobService):
    """A shell beside a job."""

    kind = "ssh"


class TensorBoardJobService(JobService):
    """TensorBoard beside a job, of the events in `log_dir`."""

    kind = "tensor_board"


class VsCodeJobService(JobService):
    """An editor beside a job."""

    kind = "vs_code"


class UserIdentityConfiguration(Part):
    """The identity of who submits a job. Processes here are the cluster's own user's."""

    def __init__(self) -> None:
        self.type = "user_identity"


class AmlTokenConfiguration(Part):
    """The identity of a job's own token. Processes here are the cluster's own user's."""

    def __init__(self) -> None:
        self.type = "aml_token"


class ManagedIdentityConfiguration(Part):
    """A managed identity. Processes here are the cluster's own user's."""

    def __init__(
        self,
        *,
        client_id: str | None = None,
        resource_id: str | None = None,
        object_id: str | None = None,
        principal_id: str | None = None,
    ) -> None:
        self.type = "managed_identity"
        self.client_id, self.resource_id = client_id, resource_id
        self.object_id, self.principal_id = object_id, principal_id


def check_service(what: str, given: Any) -> None:
    """Check a service of a job. Raises TypeError or ValueError."""
    if not isinstance(given, JobService):
        JobService(**field_checks.mapping(what, given))


def check_identity(given: Any) -> None:
    """Check the identity of a job. Raises TypeError or ValueError."""
    if isinstance(given, Part):
        return
    fields = field_checks.mapping("identity", given)
    if fields.get("type") is None:
        raise ValueError("identity needs type: user_identity, managed_identity or aml_token")
    kind = _schema.one_of("identity: type", fields["type"], IDENTITY_TYPES)
    names = IDENTITY if kind.startswith("managed") else ("type",)
    for name, value in _schema.mapping(f"identity of type {kind}", fields, names).items():
        field_checks.text(f"identity: {name}", value)
