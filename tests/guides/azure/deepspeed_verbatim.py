"""A command job that DeepSpeed's own launcher starts, as a guide submits it: by `troupe run-as`. `launcher` stands for a script that makes a
hostfile and starts sshd."""
import os

from azure.ai.ml import MLClient, command
from azure.identity import DefaultAzureCredential

ml_client = MLClient(
    DefaultAzureCredential(), subscription_id="<SUBSCRIPTION_ID>", resource_group_name="<RESOURCE_GROUP>", workspace_name="<AML_WORKSPACE_NAME>")

job = command(
    code=os.path.join(os.path.dirname(os.path.abspath(__file__)), "src"),
    command="deepspeed deepspeed_verbatim.py --epochs ${{inputs.epochs}} --deepspeed --deepspeed_config ds_config.json",
    inputs={"epochs": 4},
    environment="AzureML-acpt-pytorch-2.2-cuda12.1@latest",
    instance_count=1,
    distribution={"type": "PyTorch", "process_count_per_instance": 2, "launcher": "deepspeed"},
    display_name="digits",
)
job = ml_client.jobs.create_or_update(job)
ml_client.jobs.stream(job.name)
