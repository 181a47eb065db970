"""Values that scripts build and pass, and that nothing is made of here. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troupe._code import field_checks
from troupe.azure import _schema
from troupe.azure._entities import Part


class AmlCompute(Part):
    """A compute cluster as scripts describe it.

    Nothing makes one here: `instance_types.yml` says which nodes its name means.

    AmlCompute(name="cpu-cluster", size="Standard_DS3_v2", max_instances=4)
    """

    type = "amlcompute"

    def __init__(
        self,
        *,
        name: str,
        size: str | None = None,
        description: str | None = None,
        location: str | None = None,
        min_instances: int | None = None,
        max_instances: int | None = None,
        idle_time_before_scale_down: int | None = None,
        tier: str | None = None,
        identity: Any = None,
        tags: Mapping[str, str] | None = None,
        ssh_settings: Any = None,
        ssh_public_access_enabled: bool | None = None,
        network_settings: Any = None,
        enable_node_public_ip: bool | None = None,
    ) -> None:
        self.name = field_checks.text("a compute's name", name)
        self.size, self.description, self.location, self.tier, self.identity = (
            size,
            description,
            location,
            tier,
            identity,
        )
        self.min_instances, self.max_instances, self.idle_time_before_scale_down = (
            min_instances,
            max_instances,
            idle_time_before_scale_down,
        )
        self.ssh_settings, self.ssh_public_access_enabled = ssh_settings, ssh_public_access_enabled
        self.network_settings, self.enable_node_public_ip = network_settings, enable_node_public_ip
        self.tags = _schema.mapping("tags", tags)


class Workspace(Part):
    """A workspace as scripts describe it.

    There is none here, but the cluster that TROUPE_ADDRESS names.
    """

    def __init__(
        self,
        *,
        name: str,
        description: str | None = None,
        display_name: str | None = None,
        location: str | None = None,
        resource_group: str | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        self.name = field_checks.text("a workspace's name", name)
        self.description, self.display_name, self.location, self.resource_group = (
            description,
            display_name,
            location,
            resource_group,
        )
        self.tags = _schema.mapping("tags", tags)


class Environment(Part):
    """An environment a job names: here it is always the nodes' own, and a job says so once.

    Environment(name="train", image="mcr.microsoft.com/azureml/base", conda_file="env.yml")
    """

    def __init__(
        self,
        *,
        name: str | None = None,
        version: str | None = None,
        description: str | None = None,
        image: str | None = None,
        build: Any = None,
        conda_file: Any = None,
        tags: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        datastore: str | None = None,
        inference_config: Any = None,
        os_type: str | None = None,
    ) -> None:
        self.name, self.version, self.description, self.image, self.build = (
            name,
            version,
            description,
            image,
            build,
        )
        self.conda_file, self.datastore, self.inference_config, self.os_type = (
            conda_file,
            datastore,
            inference_config,
            os_type,
        )
        self.tags, self.properties = (
            _schema.mapping("tags", tags),
            _schema.mapping("properties", properties),
        )

    def __str__(self) -> str:
        return str(self.name or self.image or self.conda_file or "an environment without a name")
