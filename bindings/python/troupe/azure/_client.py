"""`MLClient`: jobs on the cluster that is known here, with the methods that notebooks call."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

from troupe.azure._jobs.not_here import INSTEAD_OF, NOT_HERE
from troupe.azure._jobs.operations import JobOperations

Entity = TypeVar("Entity")


class MLClient:
    """Jobs on this cluster: that of `troupe.init()` or TROUPE_ADDRESS, else the only one of
    TROUPE_HOME, else one of this machine, which ends with this program, after its jobs.

    What says which workspace is meant, and how to speak to it, is taken, and means nothing here:
    credential, subscription, resource group, workspace, registry, `cloud`, `show_progress`,
    `enable_telemetry`.

        MLClient(DefaultAzureCredential(), "subscription", "group", "workspace").jobs.create_or_update(job)
    """

    def __init__(
        self,
        credential: Any = None,
        subscription_id: str | None = None,
        resource_group_name: str | None = None,
        workspace_name: str | None = None,
        registry_name: str | None = None,
        *,
        cloud: str | None = None,
        show_progress: bool = True,
        enable_telemetry: bool = True,
    ) -> None:
        del credential, cloud, show_progress, enable_telemetry
        self.subscription_id, self.resource_group_name = subscription_id, resource_group_name
        self.workspace_name, self.registry_name = workspace_name, registry_name
        self.jobs = JobOperations()

    @classmethod
    def from_config(
        cls,
        credential: Any = None,
        *,
        path: Any = None,
        file_name: str | None = None,
        cloud: str | None = None,
        show_progress: bool = True,
        enable_telemetry: bool = True,
    ) -> MLClient:
        """As the constructor: there is no file of a workspace to be read."""
        del path, file_name
        return cls(
            credential, cloud=cloud, show_progress=show_progress, enable_telemetry=enable_telemetry
        )

    def create_or_update(self, entity: Entity, **options: Any) -> Entity:
        """`jobs.create_or_update` of a job, with its options; a component is returned as it is, for
        it is registered nowhere.

        Raises TypeError for anything else: data, environments and models are not registered here.
        """
        if getattr(entity, "is_component", False) and not options:
            return entity
        return self.jobs.create_or_update(entity, **options)

    def begin_create_or_update(self, entity: Any, **options: Any) -> NoReturn:
        """Raise NotImplementedError with what to use instead: nothing that takes long to make, such
        as compute, a workspace or an endpoint, is made here."""
        del options
        kind = type(entity).__name__
        instead = NOT_HERE.get(INSTEAD_OF.get(kind, ""), "jobs.create_or_update takes jobs")
        raise NotImplementedError(f"begin_create_or_update makes no {kind} here: {instead}")

    def __getattr__(self, name: str) -> Any:
        if name in NOT_HERE:
            raise AttributeError(f"MLClient has no {name} here: {NOT_HERE[name]}")
        raise AttributeError(
            f"MLClient has no {name!r}; it has jobs, create_or_update, from_config"
        )
