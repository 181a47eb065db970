"""The packages that Troupe stands in for, beside `ray`: their modules, names, and what to use for
what is not there."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from troupe.stand_ins._finder import Package, StandInModule


def _words(rows: Mapping[str, str]) -> Callable[[str], str]:
    """instead_of of a package: by the longest of these that a name is, or is below."""

    def instead_of(name: str) -> str:
        parts = name.split(".")
        return next(
            (
                rows[each]
                for end in range(len(parts), 0, -1)
                if (each := ".".join(parts[:end])) in rows
            ),
            "",
        )

    return instead_of


_VOLUME_DATA = (
    "Checkpointable",
    "DataLoader",
    "UCVolumeDataset",
    "UCVolumeReader",
    "UCVolumeWriter",
)
_RUNTIME = (
    "get_global_rank",
    "get_local_rank",
    "get_local_world_size",
    "get_node_rank",
    "get_replica_rank",
    "get_world_size",
)

SERVERLESS_GPU = Package(
    claims=("serverless_gpu",),
    modules={
        "serverless_gpu": dict.fromkeys(
            ("GPUType", "RayMetricsMonitor", "distributed", "ray_launch"), "serverless_gpu"
        ),
        "serverless_gpu.data": dict.fromkeys(_VOLUME_DATA, "air.data"),
        "serverless_gpu.compute": {"GPUType": "serverless_gpu.compute"},
        "serverless_gpu.launcher": {
            "distributed": "serverless_gpu.launcher",
            "DistributedFunction": "serverless_gpu:ServerlessFunction",
        },
        "serverless_gpu.ray": dict.fromkeys(
            ("RayMetricsMonitor", "ray_launch"), "serverless_gpu.ray"
        ),
        "serverless_gpu.runtime": dict.fromkeys(_RUNTIME, "serverless_gpu.runtime"),
    },
    instead_of=_words(
        {
            "serverless_gpu.launcher.DistributedFunctionCall": "the handle that f.submit(...) "
            "returns: result(), cancel(), "
            "logs(), status()",
            "serverless_gpu.asynchronous": "f.submit(...), which returns a handle at once",
        }
    ),
)

DATABRICKS_AIR = Package(
    claims=("databricks.air",),
    above=("databricks",),
    modules={
        "databricks.air": dict.fromkeys(("distributed", "ray_init", "ray_launch"), "air"),
        "databricks.air.data": dict.fromkeys(_VOLUME_DATA, "air.data"),
    },
    instead_of=_words(
        {
            "databricks.air.data.UCDataset": "troupe.data.read_parquet(path) of the table's files",
            "databricks.air.runtime": "RANK, LOCAL_RANK and WORLD_SIZE, or "
            "troupe.serverless_gpu.runtime",
        }
    ),
)

TORCH_DISTRIBUTOR = Package(
    claims=("pyspark.ml.torch", "pyspark.ml.deepspeed"),
    above=("pyspark", "pyspark.ml"),
    absent="Troupe stands in for pyspark.ml.torch and pyspark.ml.deepspeed alone, whose "
    "distributors need no SparkSession here: leave that out, and what it is "
    "given to; data that Spark prepares is read by each rank, as Parquet "
    "(troupe.data.read_parquet); or pip install pyspark, which is used for all else",
    modules={
        "pyspark.ml.torch": {},
        "pyspark.ml.torch.distributor": {"TorchDistributor": "spark"},
        "pyspark.ml.deepspeed": {},
        "pyspark.ml.deepspeed.deepspeed_distributor": dict.fromkeys(
            ("DeepspeedTorchDistributor", "TorchDistributor"), "spark"
        ),
    },
    instead_of=_words(
        {
            "pyspark.ml.torch.distributor._get_spark_partition_data_loader": "troupe.data.read_parquet(path).streaming_split(n) "
            "in the function that "
            "run() is "
            "given",
            "pyspark.ml.torch.distributor.Distributor": (
                "pyspark.ml.torch.distributor.TorchDistributor"
            ),
            "pyspark.ml.torch.TorchDistributor": "pyspark.ml.torch.distributor.TorchDistributor",
            "pyspark.ml.torch.log_communication": "what TorchDistributor shows by itself, and "
            "troupe logs",
            "pyspark.ml.torch.data": "troupe.data.read_parquet(path).streaming_split(n), and "
            "iter_torch_batches() of a share",
            "pyspark.ml.torch.torch_run_process_wrapper": "troupe torchrun, whose ranks end with "
            "it",
        }
    ),
)

_DISTRIBUTIONS = (
    "MpiDistribution",
    "PyTorchDistribution",
    "RayDistribution",
    "TensorFlowDistribution",
)
_AZURE_ENTITIES = (
    "AmlCompute",
    "AmlTokenConfiguration",
    "Command",
    "CommandComponent",
    "CommandJobLimits",
    "Data",
    "Environment",
    "Input",
    "Job",
    "JobResourceConfiguration",
    "JobService",
    "JupyterLabJobService",
    "ManagedIdentityConfiguration",
    "Model",
    "Output",
    "PipelineJob",
    "PipelineJobSettings",
    "QueueSettings",
    "ResourceConfiguration",
    "SshJobService",
    "TensorBoardJobService",
    "UserIdentityConfiguration",
    "VsCodeJobService",
    "Workspace",
)
_AZURE_SWEEP = (
    "BanditPolicy",
    "BayesianSamplingAlgorithm",
    "Choice",
    "GridSamplingAlgorithm",
    "LogNormal",
    "LogUniform",
    "MedianStoppingPolicy",
    "Normal",
    "Objective",
    "QLogNormal",
    "QLogUniform",
    "QNormal",
    "QUniform",
    "Randint",
    "RandomSamplingAlgorithm",
    "SamplingAlgorithm",
    "SweepJob",
    "SweepJobLimits",
    "TruncationSelectionPolicy",
    "Uniform",
)
_CREDENTIALS = (
    "AzureCliCredential",
    "DefaultAzureCredential",
    "DeviceCodeCredential",
    "EnvironmentCredential",
    "InteractiveBrowserCredential",
    "ManagedIdentityCredential",
)

AZURE_ML = Package(
    claims=("azure.ai.ml",),
    above=("azure", "azure.ai"),
    modules={
        "azure.ai.ml": dict.fromkeys(
            (
                *_DISTRIBUTIONS,
                "AmlTokenConfiguration",
                "Input",
                "ManagedIdentityConfiguration",
                "UserIdentityConfiguration",
                "MLClient",
                "Output",
                "command",
                "load_component",
                "load_job",
            ),
            "azure",
        ),
        "azure.ai.ml.dsl": {"pipeline": "azure.dsl"},
        "azure.ai.ml.constants": dict.fromkeys(
            ("AssetTypes", "InputOutputModes", "ListViewType"), "azure.constants"
        ),
        "azure.ai.ml.entities": {
            **dict.fromkeys(_AZURE_ENTITIES, "azure"),
            "CommandJob": "azure:Command",
        },
        "azure.ai.ml.sweep": dict.fromkeys(_AZURE_SWEEP, "azure.sweep"),
    },
    otherwise={"azure.identity": dict.fromkeys(_CREDENTIALS, "azure.credentials")},
    instead_of=_words(
        {
            "azure.ai.ml.automl": "a program of your own in a command job",
            "azure.ai.ml.spark": "troupe.spark, or a program of your own in a command job",
        }
    ),
)


class ServerlessModule(StandInModule):
    """A module of the serverless GPU API."""

    package = SERVERLESS_GPU


class AirModule(StandInModule):
    """A module of the AI Runtime API."""

    package = DATABRICKS_AIR


class TorchDistributorModule(StandInModule):
    """A module of TorchDistributor's."""

    package = TORCH_DISTRIBUTOR


class AzureModule(StandInModule):
    """A module of Azure ML's."""

    package = AZURE_ML


MODULE_CLASSES: dict[str, type[StandInModule]] = {
    "serverless_gpu": ServerlessModule,
    "databricks": AirModule,
    "pyspark": TorchDistributorModule,
    "azure": AzureModule,
}
"""By the name of the package's root, which is also its name for `troupe run-as --only`."""
