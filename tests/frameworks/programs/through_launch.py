"""Runs another program's `main` on the ranks of a launch: through_launch.py PROGRAM RANKS
ARGUMENTS..."""

from __future__ import annotations

import importlib
import json
import sys

from troupe.launch import distributed

if __name__ == "__main__":
    program, ranks, *words = sys.argv[1:]
    main = distributed(importlib.import_module(program).main, processes=int(ranks), remote=True)
    for said in main.distributed(words):
        print(json.dumps(said), flush=True)
