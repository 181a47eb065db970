"""Handwritten digits with ZeRO from DeepspeedTorchDistributor's function mode, as a program for Spark: two processes of a node, a GPU each.

DeepSpeed's configuration is a dict; `args` in the function has what DeepSpeed's own options say. Rank 0's output is what `run` returns.
"""
import argparse

import deepspeed
import torch
from pyspark.ml.deepspeed.deepspeed_distributor import DeepspeedTorchDistributor
from sklearn.datasets import load_digits
from torch import nn

config = {"train_micro_batch_size_per_gpu": 32, "zero_optimization": {"stage": 2},
          "optimizer": {"type": "AdamW", "params": {"lr": 5e-3, "torch_adam": True}}}


def train(epochs):
    parser = argparse.ArgumentParser()
    deepspeed.add_config_arguments(parser)
    args = parser.parse_args()
    deepspeed.init_distributed()
    rank, world_size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    engine, _, _, _ = deepspeed.initialize(args=args, model=model, model_parameters=model.parameters())
    digits = load_digits()
    x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
    for _ in range(epochs):
        for chosen in torch.randperm(len(x))[rank::world_size].split(32):
            loss = nn.functional.cross_entropy(engine(x[chosen].to(engine.device)), y[chosen].to(engine.device))
            engine.backward(loss)
            engine.step()
    accuracy = (engine(x.to(engine.device)).argmax(1).cpu() == y).float().mean().item()
    torch.distributed.destroy_process_group()
    return {"rank": rank, "world_size": world_size, "accuracy": round(accuracy, 4)}


distributor = DeepspeedTorchDistributor(numGpus=2, nnodes=1, localMode=False, useGpu=True, deepspeedConfig=config)
print("output", distributor.run(train, 4))
