"""A command job with the TensorFlow distribution, as a guide submits it: by `troupe run-as`. Changed: the script, which adds up without NCCL."""
import os

from azure.ai.ml import MLClient, TensorFlowDistribution, command
from azure.identity import DefaultAzureCredential

ml_client = MLClient(
    DefaultAzureCredential(), subscription_id="<SUBSCRIPTION_ID>", resource_group_name="<RESOURCE_GROUP>", workspace_name="<AML_WORKSPACE_NAME>")

job = command(
    code=os.path.join(os.path.dirname(os.path.abspath(__file__)), "src"),
    command="python tensorflow_cpu.py",
    environment="AzureML-tensorflow-2.16-cuda12@latest",
    instance_count=2,
    distribution=TensorFlowDistribution(worker_count=2, added_property=7),
    display_name="digits",
)
job = ml_client.jobs.create_or_update(job)
ml_client.jobs.stream(job.name)
