"""Command jobs, as programs for the Azure ML SDK (v2) write them, on this cluster.

    from troupe.azure import Input, MLClient, command

    job = command(code="./src", command="python train.py --epochs ${{inputs.epochs}} --data ${{inputs.data}}",
                  inputs={"epochs": 3, "data": Input(type="uri_folder", path="./data")}, environment="any",
                  instance_count=2, distribution={"type": "PyTorch", "process_count_per_instance": 4})
    ml_client = MLClient()
    job = ml_client.jobs.create_or_update(job)
    ml_client.jobs.stream(job.name)

`troupe run-as script.py` runs a script that imports `azure.ai.ml` as it is, and `troupe azure job
create -f job.yml` a job in a file. What differs: docs/coming/azure.md.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from troupe.azure._client import MLClient
    from troupe.azure._command import Command
    from troupe.azure._distributions import (
        MpiDistribution,
        PyTorchDistribution,
        RayDistribution,
        TensorFlowDistribution,
    )
    from troupe.azure._entities import (
        CommandJobLimits,
        Data,
        Input,
        JobResourceConfiguration,
        JobResourceConfiguration as ResourceConfiguration,
        Model,
        Output,
        QueueSettings,
    )
    from troupe.azure._jobs.command import command
    from troupe.azure._jobs.described import AmlCompute, Environment, Workspace
    from troupe.azure._jobs.job import Job
    from troupe.azure._jobs.operations import JobOperations
    from troupe.azure._jobs.services import (
        AmlTokenConfiguration,
        JobService,
        JupyterLabJobService,
        ManagedIdentityConfiguration,
        SshJobService,
        TensorBoardJobService,
        UserIdentityConfiguration,
        VsCodeJobService,
    )
    from troupe.azure._pipeline.dsl import CommandComponent, load_component
    from troupe.azure._pipeline.job import PipelineJob, PipelineJobSettings
    from troupe.azure._yaml.load import load_job
    from troupe.azure.constants import AssetTypes, InputOutputModes

_WHERE = {
    "JobOperations": "_jobs.operations",
    "MLClient": "_client",
    "Command": "_command",
    "Job": "_jobs.job",
    "command": "_jobs.command",
    "MpiDistribution": "_distributions",
    "PyTorchDistribution": "_distributions",
    "RayDistribution": "_distributions",
    "TensorFlowDistribution": "_distributions",
    "CommandJobLimits": "_entities",
    "Data": "_entities",
    "Environment": "_jobs.described",
    "Input": "_entities",
    "JobResourceConfiguration": "_entities",
    "Output": "_entities",
    "QueueSettings": "_entities",
    "AmlCompute": "_jobs.described",
    "Model": "_entities",
    "Workspace": "_jobs.described",
    "AmlTokenConfiguration": "_jobs.services",
    "JobService": "_jobs.services",
    "JupyterLabJobService": "_jobs.services",
    "ManagedIdentityConfiguration": "_jobs.services",
    "SshJobService": "_jobs.services",
    "TensorBoardJobService": "_jobs.services",
    "UserIdentityConfiguration": "_jobs.services",
    "VsCodeJobService": "_jobs.services",
    "load_job": "_yaml.load",
    "CommandComponent": "_pipeline.dsl",
    "load_component": "_pipeline.dsl",
    "PipelineJob": "_pipeline.job",
    "PipelineJobSettings": "_pipeline.job",
    "AssetTypes": "constants",
    "InputOutputModes": "constants",
}

__all__ = [
    "AmlCompute",
    "AmlTokenConfiguration",
    "AssetTypes",
    "Command",
    "CommandComponent",
    "CommandJobLimits",
    "Data",
    "Environment",
    "Input",
    "InputOutputModes",
    "Job",
    "JobOperations",
    "JobResourceConfiguration",
    "JobService",
    "JupyterLabJobService",
    "MLClient",
    "ManagedIdentityConfiguration",
    "Model",
    "MpiDistribution",
    "Output",
    "PipelineJob",
    "PipelineJobSettings",
    "PyTorchDistribution",
    "QueueSettings",
    "RayDistribution",
    "ResourceConfiguration",
    "SshJobService",
    "TensorBoardJobService",
    "TensorFlowDistribution",
    "UserIdentityConfiguration",
    "VsCodeJobService",
    "Workspace",
    "command",
    "dsl",
    "load_component",
    "load_job",
]


def __getattr__(name: str) -> Any:
    """Import a public name from the module that defines it."""
    if name == "dsl":
        return importlib.import_module("troupe.azure.dsl")
    if name == "ResourceConfiguration":
        return importlib.import_module("troupe.azure._entities").JobResourceConfiguration
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
