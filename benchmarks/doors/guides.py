"""Guides' programs by `troupe run-as`, on a machine without a cluster and GPUs: seconds from the
start of the command to what a person sees.

Each program of tests/guides, as the vendors print it (`verbatim`) and for CPUs (`cpu`), with
nothing set, and what docs/coming/databricks_air.md shows, in Python and as a workload's file.
`fresh`: TROUPE_HOME is an empty folder. `again`: the same command once more in that folder.

    python benchmarks/doors/guides.py [--only WORD ...] [--to-rank] [--keep]

On a machine that others use `chrt -r 5` before the command gives it the processors; `--to-rank`
then ends each command at its first line of a rank.

first    the first line of any kind: which cluster the program has
launch   the launch's line: its ranks are ready
rank     the first line that a rank, or the program after its launch, has written
end      the command's end, with its exit code. `verbatim` programs end at their first line of
         CUDA where there is no GPU (exit code 1), after their ranks have run
"""

import argparse
import os
import pathlib
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.fspath(pathlib.Path(__file__).resolve().parents[1]))

from report import keep

ROOT = pathlib.Path(__file__).resolve().parents[2]
GUIDES = ROOT / "tests" / "guides"
NAMES = (
    "serverless_gpu/mlp",
    "serverless_gpu/actors",
    "serverless_gpu/resnet_actors",
    "serverless_gpu/resnet_train",
    "databricks_air/digits",
    "torch_distributor/function",
    "torch_distributor/file",
    "azure/pytorch",
    "azure/mpi",
)
LIMIT_S = 300.0
MUST_S = 10.0
READY = re.compile(r"^launch \w+ · .*\bready in\b")
OWN = re.compile(r"^(launch \w+ · |troupe: |  )")
AIR = """
from databricks.air import distributed


@distributed(num_accelerators=8, accelerator_type="GPU_8xH100")
def train(epochs):
    import torch.distributed as dist

    dist.init_process_group()
    return dist.get_rank()


print(train.distributed(epochs=3))
"""
WORKLOAD = """
experiment_name: simple-training
compute: {num_accelerators: 16, accelerator_type: GPU_8xH100}
environment: {env_variables: {BATCH_SIZE: '32'}}
code_source: {root_path: .}
hyperparameters: {lr: 0.001}
command: |
  torchrun --nnodes $NUM_NODES --node_rank $NODE_RANK --master_addr $MASTER_ADDR \\
    --master_port $MASTER_PORT --nproc_per_node 8 $CODE_SOURCE_PATH/train.py
"""
TRAIN = """
import torch.distributed as dist

dist.init_process_group("gloo")
print("rank", dist.get_rank(), "of", dist.get_world_size(), flush=True)
dist.destroy_process_group()
"""


def commands(folder: pathlib.Path) -> dict[str, list[str]]:
    """Return the words after `troupe` of each program, by its name."""
    pages = folder / "pages"
    pages.mkdir()
    for name, text in (("air.py", AIR), ("train.yaml", WORKLOAD), ("train.py", TRAIN)):
        (pages / name).write_text(text)
    found = {
        f"{name}_{kind}": ["run-as", os.fspath(GUIDES / f"{name}_{kind}.py")]
        for name in NAMES
        if name != "azure/mpi" or shutil.which("mpirun")
        for kind in ("cpu", "verbatim")
    }
    found["databricks_air/page"] = ["run-as", os.fspath(pages / "air.py")]
    found["databricks_air/workload"] = ["air", "run", "-f", os.fspath(pages / "train.yaml")]
    return found


def _read(stream, lines: queue.SimpleQueue) -> None:
    for line in stream:
        lines.put((time.perf_counter(), stream, line.rstrip("\n")))
    lines.put((time.perf_counter(), stream, None))


def measure(words: list[str], folder: pathlib.Path, home: pathlib.Path, to_rank: bool) -> dict:
    """Run `troupe WORDS` in that folder, and return when it said what, in seconds.

    `to_rank`: the command is ended at its first line of a rank.
    """
    environment = {name: value for name, value in os.environ.items() if name != "TROUPE_ADDRESS"}
    environment["TROUPE_HOME"] = os.fspath(home)
    load = os.getloadavg()[0]
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "troupe", *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    overdue = threading.Timer(LIMIT_S, process.kill)
    overdue.start()
    lines: queue.SimpleQueue = queue.SimpleQueue()
    for stream in (process.stdout, process.stderr):
        threading.Thread(target=_read, args=(stream, lines), daemon=True).start()
    seen: dict[str, float] = {}
    ended, tail = 0, []
    while ended < 2:
        at, stream, line = lines.get()
        if line is None:
            ended += 1
            continue
        tail = [*tail[-20:], line]
        seen.setdefault("first", at - begin)
        if READY.match(line):
            seen.setdefault("launch", at - begin)
        elif line and (stream is process.stdout or not OWN.match(line)) and "launch" in seen:
            if "rank" not in seen and to_rank:
                process.send_signal(signal.SIGINT)
            seen.setdefault("rank", at - begin)
    code = process.wait()
    overdue.cancel()
    if "launch" not in seen or "rank" not in seen:
        print("\n".join(tail), file=sys.stderr)
    return {
        **{
            f"{name}_s": round(seen[name], 2)
            for name in ("first", "launch", "rank")
            if name in seen
        },
        **({} if to_rank else {"end_s": round(time.perf_counter() - begin, 2), "exit_code": code}),
        "load": round(load, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", default=[], help="words in the names of programs")
    parser.add_argument("--to-rank", action="store_true", help="end each at a rank's first line")
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    rows: dict[str, dict] = {}
    with tempfile.TemporaryDirectory(prefix="troupe-bench-") as place:
        for name, words in commands(pathlib.Path(place)).items():
            if given.only and not any(each in name for each in given.only):
                continue
            folder = pathlib.Path(place) / name.replace("/", "-")
            folder.mkdir()
            for when in ("fresh", "again"):
                row = measure(words, folder, folder / "home", given.to_rank)
                rows[f"{name} {when}"] = row
                late = row.get("rank_s", LIMIT_S) > MUST_S
                print(f"{name:36} {when:6} {row}{'  LATE' if late else ''}", flush=True)
    keep("guides", rows, given.keep, part=bool(given.only))


if __name__ == "__main__":
    main()
