"""mlp_verbatim.py on ranks without GPUs. Changed, and nothing of the launcher's:

* `dist.init_process_group("nccl")` has no backend, and takes gloo; the line that sets the CUDA device is gone.
* the device is the CPU, and DDP has no device_ids.
"""
import torch
import torch.distributed as dist
from serverless_gpu import distributed
from serverless_gpu import runtime as rt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class SimpleMLP(nn.Module):
    def __init__(self, inputs=64, hidden=128, classes=10):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, classes))

    def forward(self, x):
        return self.net(x)


def setup():
    dist.init_process_group()


def cleanup():
    dist.destroy_process_group()


def digits():
    data = load_digits()
    x_train, x_test, y_train, y_test = train_test_split(
        data.data / 16.0, data.target, test_size=0.25, random_state=0, stratify=data.target)
    return (TensorDataset(torch.tensor(x_train, dtype=torch.float32), torch.tensor(y_train)),
            torch.tensor(x_test, dtype=torch.float32), torch.tensor(y_test))


@distributed(gpus=8, gpu_type="A10", remote=True)
def run_train(num_epochs, batch_size):
    setup()
    torch.manual_seed(0)
    device = torch.device("cpu")
    train_set, x_test, y_test = digits()
    model = DDP(SimpleMLP().to(device))
    sampler = DistributedSampler(train_set, seed=0)
    loader = DataLoader(train_set, batch_size=batch_size, sampler=sampler)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    loss_of = nn.CrossEntropyLoss()
    for epoch in range(num_epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_of(model(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()
        if rt.get_global_rank() == 0:
            print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)
    rank, world = rt.get_global_rank(), rt.get_world_size()
    with torch.no_grad():
        right = (model.module(x_test[rank::world].to(device)).argmax(1).cpu() == y_test[rank::world]).sum()
    counts = torch.tensor([float(right), float(len(x_test[rank::world]))], device=device)
    dist.all_reduce(counts)
    cleanup()
    return rank, rt.get_local_rank(), round(float(counts[0] / counts[1]), 4)


results = run_train.distributed(num_epochs=3, batch_size=8)
print("ranks", [rank for rank, _, _ in results])
print("accuracy", sorted({accuracy for _, _, accuracy in results}))
