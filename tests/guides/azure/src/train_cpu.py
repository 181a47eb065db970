"""What the job of `pytorch_cpu.py` runs in each process: a classifier with DDP, without GPUs. Changed: backend, device."""
import argparse
import json
import os

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--learning_rate", type=float, default=0.01)
parser.add_argument("--model_dir", type=str, required=True)
args = parser.parse_args()

dist.init_process_group("gloo")
device = torch.device("cpu")
digits = load_digits()
data = TensorDataset(torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=32, sampler=sampler)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)).to(device)
model = DistributedDataParallel(model)
optimizer = torch.optim.Adam(model.parameters(), lr=args.learning_rate)
for epoch in range(args.epochs):
    sampler.set_epoch(epoch)
    for features, targets in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(features.to(device)), targets.to(device))
        loss.backward()
        optimizer.step()
features, targets = (each.to(device) for each in data.tensors)
accuracy = (model(features).argmax(1) == targets).float().mean()
dist.all_reduce(accuracy)
accuracy = accuracy.item() / dist.get_world_size()
if dist.get_rank() == 0:
    print(f"accuracy {accuracy:.3f} of {dist.get_world_size()} processes", flush=True)
    os.makedirs(args.model_dir, exist_ok=True)
    torch.save(model.module.state_dict(), os.path.join(args.model_dir, "model.pt"))
    with open("outputs/metrics.json", "w") as file:
        json.dump({"accuracy": accuracy}, file)
dist.destroy_process_group()
