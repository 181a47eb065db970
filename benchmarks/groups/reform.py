"""A rank is killed in DDP's backward: when the others are out of it, and when a full step of the
next group is done.

Four ranks on one node train a model of 8 MB on Gloo; rank 3 kills itself with SIGKILL in the
backward pass of a step, and its clock just before is the beginning. By turns, in one run:

* in process: `on_rank_death="shrink"` and `troupe.train.attempts()`, the same processes in a group
  of three;
* restarted processes: torchrun, `--max-restarts 1 --monitor-interval 0.1` and
  TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1, without which torch 2.11's restart meets the addresses of
  the former ranks and fails; and the launch's own `max_attempts=2`, all four ranks anew;
* torchrun by its defaults, of which is told how many of the rounds did a step after the kill at
  all.

    python benchmarks/groups/reform.py [--rounds 5] [--keep]
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from report import keep, settle, summary  # noqa: E402

RANKS, VICTIM, FATAL_STEP, WIDTH = 4, 3, 5, 1024
LIMIT_S = 180


def say(folder: str, name: str) -> None:
    """This moment, in a file that is whole or not there."""
    path = pathlib.Path(folder, name)
    path.with_suffix(path.suffix + ".new").write_text(json.dumps(time.time()))
    path.with_suffix(path.suffix + ".new").rename(path)


def steps(folder: str, rank: int, first: bool) -> None:
    """Trains until the victim's end, or for one step of the group after it."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, WIDTH)
    )
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    inputs = torch.ones(8, WIDTH)
    step = 0

    def in_backward(_: torch.Tensor) -> None:
        if first and rank == VICTIM and step == FATAL_STEP:
            say(folder, "killed")
            os.kill(os.getpid(), signal.SIGKILL)

    net[2].weight.register_hook(in_backward)
    while True:
        optimizer.zero_grad()
        loss = model(inputs).sum()
        try:
            loss.backward()
        except RuntimeError:
            say(folder, f"out.{rank}")
            raise
        optimizer.step()
        step += 1
        if not first:
            return say(folder, f"step.{rank}")


def in_process(folder: str) -> None:
    """A rank of a launch that goes on."""
    from troupe import train

    for attempt in train.attempts("gloo"):
        with attempt:
            steps(folder, attempt.rank, attempt.number == 1)


def restarted(folder: str) -> None:
    """A rank that is started again with all others."""
    import torch.distributed as dist

    signal.signal(
        signal.SIGTERM, lambda *_: None
    )  # an error would be raised later, in other code; the end of the collective is measured
    dist.init_process_group("gloo")
    steps(folder, dist.get_rank(), os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0")


def times(folder: str, survivors: int) -> tuple[float, float]:
    """Seconds from the kill: the last survivor's exception (those that were never told have none),
    the last rank's step of the next group."""
    begin = json.loads(pathlib.Path(folder, "killed").read_text())
    out = [json.loads(each.read_text()) - begin for each in pathlib.Path(folder).glob("out.[0-9]")]
    step = [
        json.loads(each.read_text()) - begin for each in pathlib.Path(folder).glob("step.[0-9]")
    ]
    assert len(step) == survivors, f"{len(step)} of {survivors} ranks did a step after the kill"
    return max(out, default=float("nan")), max(step)


def launched(function, **options) -> tuple[float, float]:
    from troupe.launch import distributed

    survivors = RANKS if "max_attempts" in options else RANKS - 1
    with tempfile.TemporaryDirectory() as folder:
        distributed(processes=RANKS, remote=True, quiet=True, **options)(function).submit(
            folder
        ).result(LIMIT_S)
        return times(folder, survivors)


def by_torchrun() -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        torchrun(folder, "--monitor-interval", "0.1", TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1")
        return times(
            folder,
            RANKS,
            # The ranks' results count, not the exit code: one in eight aborts in torch's own
            # threads when the interpreter ends
        )


def torchrun_recovers() -> bool:
    """By its defaults, but for the one restart that it is allowed, within LIMIT_S."""
    with tempfile.TemporaryDirectory() as folder:
        torchrun(folder)
        return len(list(pathlib.Path(folder).glob("step.[0-9]"))) == RANKS


def torchrun(folder: str, *more: str, **variables: str) -> None:
    """Returns at its end, or ends it after LIMIT_S."""
    line = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nnodes",
        "1",
        "--nproc-per-node",
        str(RANKS),
        "--max-restarts",
        "1",
        *more,
        "--rdzv-backend",
        "c10d",
        "--rdzv-endpoint",
        "127.0.0.1:0",
        __file__,
        "--as-rank",
        folder,
    ]
    with subprocess.Popen(
        line,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **variables, "OMP_NUM_THREADS": "1"},
    ) as process:
        try:
            process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            # The ranks are in sessions of their own: the process ends them itself
            process.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/reform.json")
    parser.add_argument("--as-rank", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_rank:
        return restarted(options.as_rank)
    import troupe

    os.environ.pop("TROUPE_ADDRESS", None)
    turns = {
        "in process": lambda: launched(in_process, on_rank_death="shrink"),
        "restarted processes: this launch's max_attempts": lambda: launched(
            restarted, max_attempts=2
        ),
        "restarted processes: torchrun": by_torchrun,
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in turns}
    recovered = 0
    with troupe.init(num_cpus=RANKS):
        turns["in process"]()
        for _ in range(options.rounds):
            for name, turn in turns.items():
                settle()
                found[name].append(turn())
            recovered += torchrun_recovers()
    rows = {
        name: {
            "survivors out": summary([out for out, _ in each]),
            "full step": summary([step for _, step in each]),
        }
        for name, each in found.items()
    }
    ratio = (
        rows["restarted processes: torchrun"]["full step"]["median_ms"]
        / rows["in process"]["full step"]["median_ms"]
    )
    rows["in process against restarted processes"] = {"torchrun_times": round(ratio, 1)}
    rows["torchrun by its defaults"] = {"recovered": recovered, "of": options.rounds}
    keep("reform", rows, options.keep)


if __name__ == "__main__":
    main()
