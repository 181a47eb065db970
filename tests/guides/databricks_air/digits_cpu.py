"""A classifier on the digits with DDP, as a notebook for `databricks.air` has it, on CPUs.

Changed: the device lines."""
import torch
import torch.distributed as dist
from databricks.air import distributed
from sklearn.datasets import load_digits
from torch.nn.parallel import DistributedDataParallel as DDP


@distributed(num_accelerators=2, accelerator_type="GPU_2xH100")
def train(epochs):
    device = torch.device("cpu")
    dist.init_process_group("nccl")
    torch.manual_seed(0)
    images, labels = load_digits(return_X_y=True)
    mine = slice(dist.get_rank(), None, dist.get_world_size())
    features = torch.tensor(images[mine] / 16, dtype=torch.float32).to(device)
    targets = torch.tensor(labels[mine]).to(device)
    model = DDP(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)).to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(features), targets)
        loss.backward()
        optimizer.step()
    accuracy = (model(features).argmax(1) == targets).float().mean()
    dist.all_reduce(accuracy)
    return round(accuracy.item() / dist.get_world_size(), 3)


print("accuracy", train.distributed(epochs=60))
