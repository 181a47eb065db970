"""Ranks that return while others wait for them: how soon the launch fails, and whether a healthy
launch does.

Failing programs: rank 1 of three returns, leaves by `sys.exit(0)` or catches an exception and
returns. The others go on to an operation that rank 1 was to take part in. Each program must fail,
name rank 1, and do so within 10 s of its return. Healthy programs: ranks finish up to minutes
apart, while others work alone, go on in groups of their own, or finish what the rank that returned
has begun. None may fail.

`python benchmarks/groups/returned_ranks.py [--failing 40] [--healthy 200] [--apart 130] [--beside
12] [--keep]`
"""

import argparse
import concurrent.futures
import pathlib
import statistics
import sys
import tempfile
import time
import typing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

RANKS, LEAVES = 3, 1
LIMIT_S, WITHIN_S = 900.0, 10.0
HOWS = ("return", "exit", "caught")
BACKENDS = ("gloo", "troupe")


def leave(how: str, mark: str) -> None:
    """End rank 1 in the given way; with "return" its function goes on to return."""
    pathlib.Path(mark).write_text(str(time.time()))
    if how == "exit":
        sys.exit(0)
    if how == "caught":
        try:
            raise ValueError("out of data")
        except ValueError:
            return


def waits(shape: str, backend: str, how: str, mark: str) -> int:
    """A rank of a program in which the others wait for rank 1."""
    import os

    import torch
    import torch.distributed as dist

    rank, one = int(os.environ["RANK"]), torch.ones(1000)
    if shape == "init_process_group" and rank == LEAVES:
        leave(how, mark)
        return rank
    dist.init_process_group(backend)
    pair = dist.new_group([0, LEAVES])
    others = dist.new_group([0, 2])
    for _ in range(3):
        dist.all_reduce(one)
    net = (
        torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
        if shape == "backward"
        else None
    )
    if rank == LEAVES:
        if shape == "recv":
            dist.send(one, 0)
        leave(how, mark)
        return rank
    if shape == "all_reduce":
        dist.all_reduce(one)
    elif shape == "barrier":
        dist.barrier()
    elif shape == "all_gather_object":
        dist.all_gather_object([None] * RANKS, rank)
    elif shape == "async":
        for each in [dist.all_reduce(one.clone(), async_op=True) for _ in range(2)]:
            each.wait()
    elif shape == "backward" and net is not None:
        net(torch.ones(2, 4)).sum().backward()
    elif shape == "subgroup" and rank == 0:
        dist.all_reduce(one, group=pair)
    elif shape == "two groups":
        dist.all_reduce(one, group=others)
        if rank == 0:
            dist.all_reduce(one, group=pair)
    elif shape == "recv" and rank == 0:
        dist.recv(one, LEAVES)
        dist.recv(one, LEAVES)
    elif shape == "irecv" and rank == 0:
        dist.irecv(one, LEAVES).wait()
    elif shape == "new_group":
        dist.new_group([0, LEAVES])
    return rank


SHAPES = (
    "all_reduce",
    "barrier",
    "all_gather_object",
    "async",
    "backward",
    "subgroup",
    "two groups",
    "recv",
    "irecv",
    "new_group",
    "init_process_group",
)


def ends_well(shape: str, backend: str, apart_s: float) -> int:
    """A rank of a healthy program: rank 1 returns first, the others up to `apart_s` later."""
    import threading

    import torch
    import torch.distributed as dist

    dist.init_process_group(backend)
    rank, one = dist.get_rank(), torch.ones(1000)
    others = dist.new_group([0, 2])
    dist.all_reduce(one)
    pause = threading.Event()
    if shape == "alone" and rank == 0:
        pause.wait(apart_s)
    elif shape == "apart":
        pause.wait(apart_s * ((rank + 2) % 3) / 2)
    elif shape == "group without it" and rank != LEAVES:
        for _ in range(4):
            pause.wait(apart_s / 4 if rank == 0 else 0)  # rank 2 waits for rank 0 all the time
            dist.all_reduce(one, group=others)
    elif shape == "begun by it":
        if rank != LEAVES:
            pause.wait(
                apart_s / (rank + 1)
            )  # operations that rank 1 began without waiting for them end as late as that
        work = dist.all_reduce(one, async_op=True)
        if rank != LEAVES:
            work.wait()
    elif shape == "messages":
        # counts of messages differ between ranks, and rank 2 waits for rank 1's last one, and then
        # for rank 0 alone
        if rank == 0:
            for _ in range(5):
                dist.send(one, 1)
            pause.wait(apart_s)
            dist.send(one, 2)
        elif rank == 1:
            for _ in range(5):
                dist.recv(one, 0)
            dist.send(one, 2)
        else:
            dist.recv(one, 1)
            dist.recv(one, 0)
    elif shape == "in a thread" and rank == LEAVES:
        thread = threading.Thread(target=lambda: (pause.wait(apart_s / 4), dist.all_reduce(one)))
        thread.start()
    elif shape == "in a thread":
        dist.all_reduce(one)
    elif shape == "monitored barrier" and backend == "gloo":
        dist.monitored_barrier()
        if rank != LEAVES:
            pause.wait(apart_s if rank == 0 else 0)
            dist.all_reduce(one, group=others)
    elif shape == "destroyed":
        dist.barrier()
        if rank != LEAVES:
            pause.wait(apart_s / (rank + 1))
        dist.destroy_process_group()
    return rank


HEALTHY = (
    "alone",
    "apart",
    "group without it",
    "begun by it",
    "messages",
    "in a thread",
    "monitored barrier",
    "destroyed",
)


def run_failing(number: int, folder: pathlib.Path) -> tuple[str, float, str]:
    """Run a failing case; return (case, seconds from rank 1's return to the launch's failure, fault
    or "")."""
    from troupe import exceptions
    from troupe.launch import distributed

    shape, how, backend = (
        SHAPES[number % len(SHAPES)],
        HOWS[number % len(HOWS)],
        BACKENDS[number // len(SHAPES) % len(BACKENDS)],
    )
    mark, what = folder / f"mark-{number}", f"{shape}, {how}, {backend}"
    try:
        given = (
            distributed(processes=RANKS, remote=True)(waits)
            .submit(shape, backend, how, str(mark))
            .result(LIMIT_S)
        )
    except exceptions.LaunchError as error:
        seconds = time.time() - float(mark.read_text())
        said = str(error).splitlines()[0]
        right = error.rank == LEAVES and " returned " in said
        return what, seconds, "" if right and seconds <= WITHIN_S else said
    return what, 0.0, f"gave {given}"


def run_healthy(number: int, apart_s: float) -> tuple[str, float, str]:
    """Run a healthy case; return (case, its seconds, fault or "")."""
    from troupe.launch import distributed

    shape, backend, begin = (
        HEALTHY[number % len(HEALTHY)],
        BACKENDS[number // len(HEALTHY) % len(BACKENDS)],
        time.monotonic(),
    )
    try:
        given = (
            distributed(processes=RANKS, remote=True)(ends_well)
            .submit(shape, backend, apart_s)
            .result(LIMIT_S)
        )
        wrong = "" if given == list(range(RANKS)) else f"gave {given}"
    except Exception as error:  # raised by a launch that should have succeeded
        wrong = str(error).splitlines()[0]
    return f"{shape}, {backend}", time.monotonic() - begin, wrong


def show(rows: list[tuple[str, float, str]], title: str) -> dict[str, typing.Any]:
    seconds, wrong = (
        [each for _, each, _ in rows],
        [f"{what}: {said}" for what, _, said in rows if said],
    )
    row = {
        "right": f"{len(rows) - len(wrong)} of {len(rows)}",
        "median_s": round(statistics.median(seconds), 2),
        "worst_s": round(max(seconds), 2),
        **({"wrong": wrong[:20]} if wrong else {}),
    }
    print(f"{title}: {row}", flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--failing", type=int, default=40)
    parser.add_argument("--healthy", type=int, default=200)
    parser.add_argument(
        "--apart",
        type=float,
        default=130.0,
        help="seconds between the first and the last rank's end",
    )
    parser.add_argument("--beside", type=int, default=12, help="healthy launches at the same time")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()

    import report

    import troupe

    rows: dict[str, typing.Any] = {}
    troupe.init(num_cpus=RANKS * options.beside, log_to_driver=False)
    with tempfile.TemporaryDirectory() as directory:
        if options.failing:
            rows["failing programs"] = show(
                [run_failing(number, pathlib.Path(directory)) for number in range(options.failing)],
                "failing programs",
            )
        if options.healthy:
            with concurrent.futures.ThreadPoolExecutor(options.beside) as pool:
                found = list(
                    pool.map(run_healthy, range(options.healthy), [options.apart] * options.healthy)
                )
            rows[f"healthy programs, {options.apart:g} s apart"] = show(found, "healthy programs")
    troupe.shutdown()
    report.keep("returned_ranks", rows, options.keep)


if __name__ == "__main__":
    main()
