"""The work of benchmarks/gpu.py: a launch's ranks call `run`, torchrun runs this file.

gpu_job.py WORK     WORK: all_reduce, or ddp_steps, which prints the median step's seconds
"""

import os
import statistics
import sys
import time

WARM_UP_STEPS, STEPS = 30, 100


def run(work: str) -> float:
    """Run one rank: forms the group of its environment, one all-reduce; with "ddp_steps" returns
    the median time of a DDP step."""
    import torch
    import torch.distributed as dist

    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(1)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    value = torch.ones(1, device=device)
    dist.all_reduce(value)
    assert value.item() == dist.get_world_size()
    return _ddp_steps(device) if work == "ddp_steps" else float(value.item())


def _ddp_steps(device) -> float:
    import torch

    on_gpu, width = device.type == "cuda", 1024 if device.type == "cuda" else 64
    torch.manual_seed(0)
    layers = [each for _ in range(8) for each in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(*layers).to(device), device_ids=[device.index] if on_gpu else None
    )
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(256, width, device=device)
    took = []
    for step in range(WARM_UP_STEPS + STEPS):
        begin = time.perf_counter()
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if on_gpu:
            torch.cuda.synchronize()
        if step >= WARM_UP_STEPS:
            took.append(time.perf_counter() - begin)
    return statistics.median(took)


if __name__ == "__main__":
    print(run(sys.argv[1]))
    # As the other contenders leave: torch's Gloo destructor can end a rank with SIGABRT at this
    # point.
    sys.stdout.flush()
    os._exit(0)
