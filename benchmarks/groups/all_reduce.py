"""all_reduce and a DDP step of two ranks on a host, or of one or more on each of two: the backend
`troupe` against torch's Gloo, by turns in the same processes.

Each rank has both groups. In a round each size is reduced by one, then by the other, who is first
by turns; what a rank's process took of the CPU meanwhile is counted too. The DDP step is of a model
of 8 MB, one thread each.

    python benchmarks/groups/all_reduce.py [--rounds 15] [--hosts 2] [--ranks 2] [--keep]

Two hosts are network namespaces of this machine, joined by virtual cables: what its processors copy
for them is what a network card would do.
"""

import argparse
import os
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from report import keep, settle, summary  # noqa: E402

SIZES = {"4 KB": 1 << 10, "1 MB": 1 << 18, "16 MB": 1 << 22, "64 MB": 1 << 24}  # floats
INNER = {"4 KB": 200, "1 MB": 30, "16 MB": 4, "64 MB": 1}  # so many within one measurement
BACKENDS = ("troupe", "gloo")


def rank(rounds: int) -> dict:
    """{what: {backend: [(seconds, seconds of this process's CPU), ...]}} of one rank."""
    import time

    import torch
    import torch.distributed as dist
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    groups = {name: dist.new_group(backend=name) for name in BACKENDS}
    tensors = {what: torch.ones(count) for what, count in SIZES.items()}
    steps = {}
    for name, group in groups.items():
        layers = nn.Sequential(
            *[nn.Sequential(nn.Linear(512, 512), nn.ReLU()) for _ in range(8)], nn.Linear(512, 10)
        )
        model = nn.parallel.DistributedDataParallel(layers, process_group=group)
        steps[name] = (model, torch.optim.SGD(model.parameters(), 0.01))
    x, y = torch.randn(32, 512), torch.randint(0, 10, (32,))

    def reduce(what: str, name: str) -> None:
        for _ in range(INNER[what]):
            dist.all_reduce(tensors[what], dist.ReduceOp.MAX, group=groups[name])

    def step(_: str, name: str) -> None:
        model, optimizer = steps[name]
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    runs = {**dict.fromkeys(SIZES, reduce), "DDP step": step}
    found = {what: {name: [] for name in BACKENDS} for what in runs}
    for number in range(rounds + 1):
        for what, run in runs.items():
            for name in BACKENDS if number % 2 else reversed(BACKENDS):
                dist.barrier()
                begin, cpu = time.perf_counter(), time.process_time()
                run(what, name)
                took = time.perf_counter() - begin, time.process_time() - cpu
                if number:  # the first round connects
                    found[what][name].append(tuple(each / INNER.get(what, 1) for each in took))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--hosts", type=int, choices=(1, 2), default=1)
    parser.add_argument("--ranks", type=int, default=2, help="in all")
    parser.add_argument(
        "--keep",
        action="store_true",
        help="write benchmarks/results/all_reduce.json, or all_reduce_hosts.json",
    )
    options = parser.parse_args()
    os.environ.pop("TROUPE_ADDRESS", None)
    if options.hosts == 1:
        from troupe.launch import distributed

        settle()
        ranks = distributed(processes=options.ranks, quiet=True)(rank).distributed(options.rounds)
    else:
        ranks = over_hosts(options.ranks, options.rounds)
    keep("all_reduce" if options.hosts == 1 else "all_reduce_hosts", rows(ranks), options.keep)


def over_hosts(count: int, rounds: int) -> list[dict]:
    """Return each rank's results, half of the ranks on each host."""
    import cloudpickle
    from two_hosts import cluster

    from troupe.launch import distributed

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with cluster(count // 2):
        settle()
        return distributed(processes=count, remote=True, quiet=True, strategy="SPREAD")(
            rank
        ).distributed(rounds)


def rows(ranks: list[dict]) -> dict:
    """By what was run: times of the first rank, CPU time of all, the median of the paired
    ratios."""
    found = {}
    for what, of_backend in ranks[0].items():
        row = {}
        for name, taken in of_backend.items():
            row[name] = summary([seconds for seconds, _ in taken])
            cpu = zip(
                *([seconds for _, seconds in each[what][name]] for each in ranks), strict=True
            )
            row[f"{name}, CPU of {'both' if len(ranks) == 2 else 'all'} ranks"] = summary(
                [sum(of_turn) for of_turn in cpu]
            )
        pairs = zip(of_backend["gloo"], of_backend["troupe"], strict=True)
        row["gloo / troupe, median of pairs"] = round(
            statistics.median(theirs / ours for (theirs, _), (ours, _) in pairs), 3
        )
        found[what] = row
    return found


if __name__ == "__main__":
    main()
