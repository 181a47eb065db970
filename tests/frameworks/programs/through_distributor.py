"""Runs another program's `main` by TorchDistributor: through_distributor.py PROGRAM RANKS
ARGUMENTS...

TorchDistributor gives rank 0's output alone, so each rank prints its own.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

from pyspark.ml.torch.distributor import TorchDistributor


def said(program: str, words: list[str]) -> int:
    """Run one rank's part."""
    print(json.dumps(importlib.import_module(program).main(words)), flush=True)
    return int(os.environ["RANK"])


if __name__ == "__main__":
    program, ranks, *words = sys.argv[1:]
    output = TorchDistributor(num_processes=int(ranks), local_mode=False, use_gpu=False).run(
        said, program, words
    )
    print("output", output, flush=True)
