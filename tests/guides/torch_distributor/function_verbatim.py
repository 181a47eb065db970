"""Handwritten digits with DDP from TorchDistributor's function mode, as a program for Spark: two processes of a cluster, a GPU each, NCCL.

The digits that scikit-learn ships are the data; each process trains on its share, and rank 0's output is what `run` returns.
"""
import os

import torch
import torch.distributed as dist
from pyspark.ml.torch.distributor import TorchDistributor
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.fc = nn.Linear(32 * 4 * 4, 10)

    def forward(self, x):
        return self.fc(self.conv(x).flatten(1))


def create_data():
    data = load_digits()
    x_train, x_test, y_train, y_test = train_test_split(data.images / 16.0, data.target, test_size=0.25, random_state=0, stratify=data.target)
    return (TensorDataset(torch.tensor(x_train, dtype=torch.float32)[:, None], torch.tensor(y_train)),
            torch.tensor(x_test, dtype=torch.float32)[:, None], torch.tensor(y_test))


def train(learning_rate, use_gpu):
    backend = "nccl" if use_gpu else "gloo"
    dist.init_process_group(backend)
    device = int(os.environ["LOCAL_RANK"]) if use_gpu else "cpu"
    torch.manual_seed(0)
    dataset, x_test, y_test = create_data()
    model = DDP(Net().to(device), device_ids=[device] if use_gpu else None)
    sampler = DistributedSampler(dataset, seed=0)
    loader = DataLoader(dataset, batch_size=16, sampler=sampler)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)
    with torch.no_grad():
        accuracy = (model.module(x_test.to(device)).argmax(1).cpu() == y_test).float().mean().item()
    output = {"rank": dist.get_rank(), "world_size": dist.get_world_size(), "accuracy": round(accuracy, 4)}
    dist.destroy_process_group()
    return output


distributor = TorchDistributor(num_processes=2, local_mode=False, use_gpu=True)
print("output", distributor.run(train, 2e-3, True))
