"""A command job with the PyTorch distribution, as a guide submits it: by `troupe run-as`. Changed: the script, whose device is the CPU."""
import os

from azure.ai.ml import Input, MLClient, Output, command
from azure.identity import DefaultAzureCredential

ml_client = MLClient(
    DefaultAzureCredential(), subscription_id="<SUBSCRIPTION_ID>", resource_group_name="<RESOURCE_GROUP>", workspace_name="<AML_WORKSPACE_NAME>")

job = command(
    code=os.path.join(os.path.dirname(os.path.abspath(__file__)), "src"),
    command="python train_cpu.py --epochs ${{inputs.epochs}} --learning_rate ${{inputs.learning_rate}} --model_dir ${{outputs.model}}",
    inputs={"epochs": 4, "learning_rate": 0.01, "notes": Input(type="uri_file", path=os.path.abspath(__file__))},
    outputs={"model": Output(type="uri_folder")},
    environment="AzureML-acpt-pytorch-2.2-cuda12.1@latest",
    instance_count=1,
    distribution={"type": "PyTorch", "process_count_per_instance": 2},
    display_name="digits",
)
job = ml_client.jobs.create_or_update(job)
ml_client.jobs.stream(job.name)
ml_client.jobs.download(job.name, download_path="downloaded", all=True)
