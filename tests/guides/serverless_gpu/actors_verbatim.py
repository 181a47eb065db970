"""Data-parallel training by Ray actors from @ray_launch, as a program for the serverless GPU API: sixteen GPUs.

Each actor has a GPU and its share of scikit-learn's digits; after each round the driver averages their weights.
"""
import os

import torch
from serverless_gpu.ray import ray_launch
from sklearn.datasets import load_digits
from torch import nn


def mlp():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def digits():
    data = load_digits()
    return torch.tensor(data.data / 16.0, dtype=torch.float32), torch.tensor(data.target)


class Trainer:
    def __init__(self, index, count):
        self.device = torch.device("cuda")
        x, y = digits()
        self.x, self.y = x[:1400][index::count].to(self.device), y[:1400][index::count].to(self.device)
        self.model = mlp().to(self.device)

    def train(self, weights, steps):
        self.model.load_state_dict(weights)
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        for _ in range(steps):
            optimizer.zero_grad()
            nn.functional.cross_entropy(self.model(self.x), self.y).backward()
            optimizer.step()
        return {name: value.cpu() for name, value in self.model.state_dict().items()}

    def where(self):
        return os.getpid()


@ray_launch(gpus=16, remote=True, gpu_type="A10")
def foo():
    import ray

    workers = 4
    group = ray.util.placement_group([{"CPU": 1, "GPU": 1}] * workers, strategy="SPREAD")
    ray.get(group.ready())
    strategy = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(group)
    trainer = ray.remote(num_cpus=1, num_gpus=1)(Trainer).options(scheduling_strategy=strategy)
    trainers = [trainer.remote(index, workers) for index in range(workers)]
    assert len(set(ray.get([each.where.remote() for each in trainers]))) == workers
    weights = mlp().state_dict()
    for _ in range(5):
        of_all = ray.get([each.train.remote(weights, 20) for each in trainers])
        weights = {name: sum(each[name] for each in of_all) / workers for name in weights}
    model = mlp()
    model.load_state_dict(weights)
    x, y = digits()
    with torch.no_grad():
        accuracy = (model(x[1400:]).argmax(1) == y[1400:]).float().mean().item()
    print(f"accuracy {accuracy:.3f} with {workers} actors on {len(ray.nodes())} nodes")
    return accuracy


results = foo.distributed()
print("results", len(results), "ranks;", "first", next(each for each in results if each) >= 0.85)
