"""A rank on a GPU against torchrun, in one run, alternately: a launch, warm and cold, and the step
of a DDP model.

Each contender starts one rank, which forms an NCCL group and does one all-reduce (`gpu_job.py`, the
same file for both). Warm: on a cluster that is there, against `torchrun --standalone`. Cold: a
script of its own that starts and ends its cluster, against the same. The step is that of eight
layers of 1,024, forward, backward, AdamW, as the rank itself takes its time. Ratios are medians of
those of pairs.

    python benchmarks/gpu.py [--rounds 7] [--keep]     # on a machine with a GPU; without one by Gloo, which --keep refuses
"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from jobs import gpu_job  # noqa: E402
from report import keep, settle, summary  # noqa: E402

COLD = """
import sys
sys.path.insert(0, sys.argv[1])
from jobs import gpu_job
from troupe.launch import distributed
print(distributed(quiet=True, **{sys.argv[2]: 1})(gpu_job.run).distributed("all_reduce"))
"""


def output_of(command: list[str]) -> str:
    """Return the output of a command that succeeds."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(
            f"{' '.join(command)} ended with exit code "
            f"{done.returncode}\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}"
        )
    return done.stdout


def by_torchrun(work: str) -> float:
    """Return the time that torchrun's rank prints."""
    printed = output_of(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node=1",
            str(HERE / "jobs/gpu_job.py"),
            work,
        ]
    )
    return float(printed.split()[-1])


def by_launch(count: str, work: str) -> float:
    """Return the time of a launch on the cluster that this process is connected to."""
    from troupe.launch import distributed

    [value] = distributed(remote=True, quiet=True, **{count: 1})(gpu_job.run).distributed(work)
    return value


def timed(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def pairs(
    rounds: int, ours: Callable[[], float], torchruns: Callable[[], float], ratio: str
) -> dict:
    """Both sides one after the other, so many times; who goes first alternates."""
    found: dict[str, list[float]] = {"troupe": [], "torchrun": []}
    for number in range(rounds):
        for name, side in [("troupe", ours), ("torchrun", torchruns)][
            :: 1 if number % 2 == 0 else -1
        ]:
            settle()
            found[name].append(side())
            print(f"  {name} {found[name][-1]:.4f} s", file=sys.stderr, flush=True)
    ratios = [theirs / own for own, theirs in zip(found["troupe"], found["torchrun"])]
    return {
        **{name: summary(taken) for name, taken in found.items()},
        ratio: round(statistics.median(ratios), 3),
    }


def card() -> dict:
    """The GPU, and what drives it."""
    import torch

    fields = ["name", "memory.total", "driver_version"]
    line = output_of(
        ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"]
    ).splitlines()[0]
    name, memory, driver = (each.strip() for each in line.split(","))
    return {
        "gpu": name,
        "memory": memory,
        "driver": driver,
        "torch": torch.__version__,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--keep", action="store_true", help="write benchmarks/results/gpu_launch.json"
    )
    options = parser.parse_args()
    import troupe

    rows: dict[str, dict] = {}
    with troupe.init(log_to_driver=False):
        on_gpu = troupe.cluster_resources().get("GPU", 0) > 0
        if options.keep and not on_gpu:
            raise SystemExit("there is no GPU here: what would be kept are no figures of one")
        count = "gpus" if on_gpu else "processes"
        if on_gpu:
            rows["card"] = card()
        by_launch(count, "ddp_steps")  # both sides warm: files are read from the disk once
        by_torchrun("ddp_steps")
        rows["launch, warm cluster"] = pairs(
            options.rounds,
            lambda: timed(lambda: by_launch(count, "all_reduce")),
            lambda: timed(lambda: by_torchrun("all_reduce")),
            "times_faster_than_torchrun",
        )
        rows["DDP step"] = pairs(
            options.rounds,
            lambda: by_launch(count, "ddp_steps"),
            lambda: by_torchrun("ddp_steps"),
            "times_faster_than_torchrun",
        )
    cold = [sys.executable, "-c", COLD, str(HERE), count]
    rows["launch, cold"] = pairs(
        options.rounds,
        lambda: timed(lambda: output_of(cold)),
        lambda: timed(lambda: by_torchrun("all_reduce")),
        "times_faster_than_torchrun",
    )
    keep("gpu_launch", rows, options.keep)


if __name__ == "__main__":
    main()
