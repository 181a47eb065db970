"""Says which rank it is and on which node: what a launcher's start has reached.

No framework is loaded.
"""

import os
import sys

words = [
    "here",
    os.environ["RANK"],
    "of",
    os.environ["WORLD_SIZE"],
    "local",
    os.environ["LOCAL_RANK"],
    "devices",
    os.environ["CUDA_VISIBLE_DEVICES"],
    "at",
    os.environ["MASTER_ADDR"],
    "in",
    os.getcwd(),
    "words",
    *sys.argv[1:],
]
sys.stdout.write(" ".join(words) + "\n")  # a single write: ranks share a pipe
