"""resnet_train_verbatim.py on a launch without GPUs. Changed, and nothing of the launcher's:

* the workers ask for no GPU.
* a subset of 64 images, and batches of 8: two steps an epoch.
"""
import os
import tempfile

import torch
from resnet18 import resnet18
from serverless_gpu.ray import ray_launch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

IMAGES, BATCH_SIZE = 64, 8


def digits():
    data = load_digits()
    images = torch.tensor(data.images / 16.0, dtype=torch.float32).unsqueeze(1)
    return nn.functional.interpolate(images, size=32).expand(-1, 3, -1, -1), torch.tensor(data.target)


def train_func(config):
    import ray.train
    import ray.train.torch

    rank = ray.train.get_context().get_world_rank()
    x, y = digits()
    dataset = TensorDataset(x[:IMAGES], y[:IMAGES])
    loader = ray.train.torch.prepare_data_loader(DataLoader(dataset, batch_size=config["batch_size"], shuffle=True))
    torch.manual_seed(0)
    model = ray.train.torch.prepare_model(resnet18(weights=None, num_classes=10))
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"], momentum=0.9)
    start = 0
    checkpoint = ray.train.get_checkpoint()
    if checkpoint:
        with checkpoint.as_directory() as folder:
            state = torch.load(os.path.join(folder, "state.pt"), map_location="cpu")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["epoch"] + 1
    for epoch in range(start, config["epochs"]):
        loader.sampler.set_epoch(epoch)
        losses = []
        for images, targets in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), targets)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        with tempfile.TemporaryDirectory() as folder:
            saved = None
            if rank == 0:
                print(f"epoch {epoch} loss {sum(losses) / len(losses):.3f}")
                state = {"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save(state, os.path.join(folder, "state.pt"))
                saved = ray.train.Checkpoint.from_directory(folder)
            ray.train.report({"epoch": epoch, "loss": sum(losses) / len(losses)}, checkpoint=saved)


@ray_launch(gpus=4, remote=True, gpu_type="A10")
def train_resnet(epochs, storage):
    from ray.train import CheckpointConfig, FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    trainer = TorchTrainer(
        train_func,
        train_loop_config={"lr": 0.02, "batch_size": BATCH_SIZE, "epochs": epochs},
        scaling_config=ScalingConfig(num_workers=4, use_gpu=False),
        run_config=RunConfig(name="resnet", storage_path=storage, failure_config=FailureConfig(max_failures=2),
                             checkpoint_config=CheckpointConfig(num_to_keep=1)),
    )
    result = trainer.fit()
    with result.checkpoint.as_directory() as folder:
        state = torch.load(os.path.join(folder, "state.pt"), map_location="cpu")
    print(f"kept the state of epoch {state['epoch']}, {sum(each.numel() for each in state['model'].values())} numbers")
    return result.metrics


with tempfile.TemporaryDirectory() as storage:  # on several nodes: a folder that all of them see
    results = train_resnet.distributed(epochs=4, storage=storage)
metrics = next(each for each in results if each)
print("results", len(results), "ranks; epoch", metrics["epoch"], "loss", metrics["loss"] < 2.3)
