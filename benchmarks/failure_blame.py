"""Accuracy of the rank named in the error when one of several ranks ends: Troupe and torchrun
alternately, beside a busy loop on each core.

Four ranks in a loop of collectives; rank 2 ends in each of the ways that a rank can, the others see
closed connections and say so. Right is who names rank 2 and how it ended. Then launches that end
well: whether all of them do.

Part of failure.py: `python benchmarks/failure.py --blame 40 --ends 200 [--keep]`.
"""

import contextlib
import pathlib
import re
import subprocess
import sys
import time
import typing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
from stress import busy_cores  # noqa: E402

BLAMED = 2
# How rank 2 ends, and what of that must be in the error. torchrun takes an exit with 0 for success,
# so there it is only seen whom it names.
WAYS = {
    "raises ValueError": ("raise ValueError('diverged')", "ValueError"),
    "SIGKILL": ("os.kill(os.getpid(), 9)", "SIGKILL"),
    "SIGSEGV": ("ctypes.string_at(0)", "SIGSEGV"),
    "os._exit(5)": ("os._exit(5)", "5"),
    "sys.exit(3)": ("sys.exit(3)", "3"),
    "sys.exit(0)": ("sys.exit(0)", "returned before"),
    "returns early": ("pass", "returned before"),
}
TRAINING = """
import ctypes, datetime, os, sys
def train(word):
    import torch, torch.distributed as dist
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=10))
    dist.barrier()
    for step in range(100_000):
        if step == 3 and dist.get_rank() == 2:
            exec(word, {"os": os, "sys": sys, "ctypes": ctypes})
            return
        dist.all_reduce(torch.ones(1000))
"""
TORCHRUN_LIMIT_S = 300.0


@contextlib.contextmanager
def two_nodes() -> typing.Iterator[None]:
    """This process is the driver of a cluster of two workers, each as a host of its own to the
    other."""
    import troupe
    from troupe.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    cluster.add_node(num_cpus=2)
    troupe.init(cluster.address, log_to_driver=False)
    try:
        yield
    finally:
        troupe.shutdown()
        cluster.shutdown()


def by_troupe(word: str, named: str) -> tuple[bool, str]:
    """(right, what was said first)."""
    from troupe import exceptions
    from troupe.launch import distributed

    space: dict[str, typing.Any] = {}
    exec(TRAINING, space)
    try:
        distributed(processes=4, strategy="SPREAD", remote=True)(space["train"]).submit(
            word
        ).result(TORCHRUN_LIMIT_S)
    except exceptions.LaunchError as error:
        said = str(error).splitlines()[0]
        return error.rank == BLAMED and named in said, said
    return False, "succeeded"


def by_torchrun(word: str, named: str, folder: pathlib.Path) -> tuple[bool, str]:
    """Run the case under `torchrun --standalone` and compare the root cause it names.

    Of exits with 0 it has no word: there rank 2 must be named.
    """
    script = folder / "train.py"
    script.write_text(TRAINING + "\ntrain(sys.argv[1])\n")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node=4",
            str(script),
            word,
        ],
        capture_output=True,
        text=True,
        timeout=TORCHRUN_LIMIT_S,
    )
    cause = done.stderr.partition("Root Cause")[2]
    rank, code = re.search(r"rank\s*:\s*(\d+)", cause), re.search(r"exitcode\s*:\s*(-?\d+)", cause)
    said = (
        f"rank {rank[1]}, exitcode {code[1]}"
        if rank and code
        else "no root cause"
        if done.returncode
        else "succeeded"
    )
    return bool(rank) and int(rank[1]) == BLAMED, said


def blame_rows(rounds: int, torchrun_rounds: int, folder: pathlib.Path) -> dict:
    rows = {}
    with two_nodes(), busy_cores():
        for way, (word, named) in WAYS.items():
            right, wrong = {"troupe": 0, "torchrun": 0}, {"troupe": [], "torchrun": []}
            for turn in range(rounds):
                contenders = {"troupe": lambda: by_troupe(word, named)}
                if turn < torchrun_rounds:
                    contenders["torchrun"] = lambda: by_torchrun(word, named, folder)
                for name, run in contenders.items():
                    ok, said = run()
                    right[name] += ok
                    if not ok:
                        wrong[name].append(said)
            rows[f"blame: {way}"] = {
                "troupe": f"{right['troupe']} of {rounds}",
                "torchrun": f"{right['torchrun']} of {torchrun_rounds}",
                **{
                    f"{name}_said_else": sorted(set(said))[:3]
                    for name, said in wrong.items()
                    if said
                },
            }
            print(f"blame: {way}: {rows[f'blame: {way}']}", flush=True)
    return rows


def ends_rows(rounds: int) -> dict:
    """Launches in which nothing fails, whatever rank is done first."""
    from troupe.launch import distributed

    def first() -> int:
        import torch.distributed as dist

        dist.init_process_group("gloo")
        return dist.get_rank()

    def gather() -> float:
        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo")
        mine = torch.full((100_000,), float(dist.get_rank()))
        parts = [torch.empty_like(mine) for _ in range(4)] if dist.get_rank() == 0 else None
        dist.gather(mine, parts)
        return sum(float(part[0]) for part in parts) if parts else 0.0

    rows = {}
    with two_nodes(), busy_cores():
        for what, function, expected in (
            ("init_process_group() and return", first, [0, 1, 2, 3]),
            ("gather to rank 0, the others leave", gather, [6.0, 0.0, 0.0, 0.0]),
        ):
            job, wrong, begin = (
                distributed(processes=4, remote=True)(function),
                [],
                time.monotonic(),
            )
            for _ in range(rounds):
                try:
                    given = job.submit().result(TORCHRUN_LIMIT_S)
                    if given != expected:
                        wrong.append(f"gave {given}")
                except Exception as error:  # any error is a rank's that failed
                    wrong.append(str(error).splitlines()[0])
            rows[f"ends well: {what}"] = {
                "troupe": f"{rounds - len(wrong)} of {rounds}",
                "seconds_each": round((time.monotonic() - begin) / rounds, 2),
                **({"said_else": sorted(set(wrong))[:3]} if wrong else {}),
            }
            print(f"ends well: {what}: {rows[f'ends well: {what}']}", flush=True)
    return rows
