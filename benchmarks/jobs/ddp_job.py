"""The work of benchmarks/doors/ddp_step.py, under Troupe and under torchrun: steps of a DDP model
on processors, by as many threads as the launcher says.

ddp_job.py [--warm-up 20] [--steps 200]     rank 0 prints the seconds of one step, their median, and torch's threads
"""

import argparse
import json
import statistics
import time

import torch
import torch.distributed as dist

WIDTH, LAYERS, BATCH = 256, 4, 128


def steps(warm_up: int, count: int) -> list[float]:
    """Seconds of each step after the first `warm_up`."""
    torch.manual_seed(0)
    layers = [
        each for _ in range(LAYERS) for each in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU())
    ]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(BATCH, WIDTH)
    took = []
    for step in range(warm_up + count):
        begin = time.perf_counter()
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step >= warm_up:
            took.append(time.perf_counter() - begin)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--warm-up", type=int, default=20)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    took = steps(options.warm_up, options.steps)
    if dist.get_rank() == 0:
        print(
            json.dumps({"step_s": statistics.median(took), "threads": torch.get_num_threads()}),
            flush=True,
        )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
