"""TorchDistributor's function mode in local mode, warm: Troupe's against pyspark's own, in one run,
alternately.

Two processes form a Gloo group and do one all-reduce; rank 0 returns its sum. Timed is `run()`,
from the call to the output. Each side is a process that has made its TorchDistributor, and
pyspark's its SparkSession (`local[2]`), and has run once.

    python benchmarks/doors/torch_distributor.py --pyspark PYTHON [--rounds 7] [--keep]

PYTHON is an interpreter that has pyspark and torch, on a machine with Java (Debian:
default-jre-headless):
    python3 -m venv spark && spark/bin/pip install pyspark torch numpy --extra-index-url
    https://download.pytorch.org/whl/cpu
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from contender import Contender  # noqa: E402
from report import await_rest, keep, settle, summary  # noqa: E402

SCRIPT = """
import os, sys, time

told = os.fdopen(os.dup(1), "w")  # what the ranks and torchrun write is none of the figures
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def train():
    import torch, torch.distributed as dist
    dist.init_process_group("gloo")
    total = torch.ones(1)
    dist.all_reduce(total)
    dist.destroy_process_group()
    return float(total)


if sys.argv[1] == "pyspark":
    from pyspark.ml.torch.distributor import TorchDistributor
    from pyspark.sql import SparkSession
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
else:
    from troupe.spark import TorchDistributor
distributor = TorchDistributor(num_processes=2, local_mode=True, use_gpu=False)
assert distributor.run(train) == 2.0
print("ready", file=told, flush=True)
for _ in sys.stdin:
    begin = time.perf_counter()
    assert distributor.run(train) == 2.0
    print(time.perf_counter() - begin, file=told, flush=True)
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--pyspark",
        required=True,
        metavar="PYTHON",
        help="an interpreter that has pyspark and torch",
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--keep", action="store_true", help="write benchmarks/results/torch_distributor.json"
    )
    options = parser.parse_args()
    contenders = {
        "troupe": Contender(sys.executable, SCRIPT, "troupe"),
        "pyspark": Contender(options.pyspark, SCRIPT, "pyspark"),
    }
    times: dict[str, list[float]] = {name: [] for name in contenders}
    await_rest()
    for _ in range(options.rounds):
        for name, contender in contenders.items():
            settle()
            times[name].append(contender.round("go"))
    for contender in contenders.values():
        contender.end()
    rows = {name: summary(taken) for name, taken in times.items()}
    rows["troupe"]["times_faster_than_pyspark"] = round(
        rows["pyspark"]["median_ms"] / rows["troupe"]["median_ms"], 1
    )
    keep("torch_distributor", rows, options.keep)


if __name__ == "__main__":
    main()
