"""What DeepSpeed's launcher starts on each node for `deepspeed_verbatim.py`: a classifier with ZeRO, on GPUs."""
import argparse

import deepspeed
import torch
from sklearn.datasets import load_digits
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int)
parser.add_argument("--epochs", type=int, default=1)
parser = deepspeed.add_config_arguments(parser)
args = parser.parse_args()

deepspeed.init_distributed("nccl")
rank, world_size = torch.distributed.get_rank(), torch.distributed.get_world_size()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
engine, _, _, _ = deepspeed.initialize(args=args, model=model, model_parameters=model.parameters())
digits = load_digits()
x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
for _ in range(args.epochs):
    for chosen in torch.randperm(len(x))[rank::world_size].split(32):
        loss = nn.functional.cross_entropy(engine(x[chosen].to(engine.device)), y[chosen].to(engine.device))
        engine.backward(loss)
        engine.step()
accuracy = (engine(x.to(engine.device)).argmax(1).cpu() == y).float().mean().item()
if rank == 0:
    print(f"accuracy {accuracy:.3f} of {world_size} processes", flush=True)
torch.distributed.destroy_process_group()
