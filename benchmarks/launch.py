"""A launch on a warm cluster against torchrun and against the floor, in one run, alternately.

Each contender starts N ranks, forms a Gloo group, does one all-reduce (or one DDP step with AdamW)
and hands every rank's result back. Printed: median, best and the ratio to torchrun and to the floor
(a bare zygote, floor_zygote.py). Before each contender the machine is left alone for half a second,
so that nobody pays for the processes that the one before has left to end, or for those that the
zygote parks.

    python benchmarks/launch.py [--rounds 7] [--keep]
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from floor_zygote import FloorZygote  # noqa: E402
from report import keep, settle, summary  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


def troupe_work(work: str):
    """The function every rank runs under Troupe; the group comes from the environment."""

    def run() -> float:
        import torch
        import torch.distributed as dist

        torch.set_num_threads(1)
        dist.init_process_group("gloo")
        if work == "ddp_step":
            model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
            optimizer = torch.optim.AdamW(model.parameters())
            model(torch.ones(4, 64)).sum().backward()
            optimizer.step()
        value = torch.ones(1)
        dist.all_reduce(value)
        return float(value)

    return run


def time_troupe(world_size: int, work: str) -> float:
    from troupe.launch import distributed

    job = distributed(processes=world_size, remote=True)(troupe_work(work))
    begin = time.perf_counter()
    results = job.distributed()
    took = time.perf_counter() - begin
    assert results == [float(world_size)] * world_size, results
    return took


def time_torchrun(world_size: int, work: str) -> float:
    begin = time.perf_counter()
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            f"--nproc-per-node={world_size}",
            str(HERE / "jobs/torchrun_job.py"),
            work,
        ],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise SystemExit(f"torchrun ended with exit code {done.returncode}\n{done.stderr[-3000:]}")
    return time.perf_counter() - begin


def compare(
    world_size: int, work: str, rounds: int, with_torchrun: bool, floor: FloorZygote
) -> dict:
    times: dict[str, list[float]] = {"troupe": [], "floor": [], "torchrun": []}
    for _ in range(rounds):
        settle()
        times["troupe"].append(time_troupe(world_size, work))
        settle()
        times["floor"].append(floor.launch(world_size, work))
        if with_torchrun and len(times["torchrun"]) < 5:
            times["torchrun"].append(time_torchrun(world_size, work))
    row: dict = {name: summary(taken) for name, taken in times.items() if taken}
    if times["torchrun"]:
        row["times_faster_than_torchrun"] = round(
            row["torchrun"]["median_ms"] / row["troupe"]["median_ms"], 1
        )
    row["times_the_floor"] = round(row["troupe"]["median_ms"] / row["floor"]["median_ms"], 2)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/launch.json")
    options = parser.parse_args()
    import troupe

    with tempfile.TemporaryDirectory() as directory, troupe.init(num_cpus=16, log_to_driver=False):
        floor = FloorZygote(directory)
        time_troupe(2, "ddp_step")  # both sides warm: imports of the first step are paid once
        floor.launch(2, "ddp_step")
        rows = {}
        for world_size, work, with_torchrun in (
            (2, "all_reduce", True),
            (4, "ddp_step", True),
            (16, "all_reduce", False),
        ):
            rows[f"{world_size} ranks, {work}"] = compare(
                world_size, work, options.rounds, with_torchrun, floor
            )
        floor.close()
    keep("launch", rows, options.keep)


if __name__ == "__main__":
    main()
