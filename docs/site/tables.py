"""Compares the tables of reference pages with the code that they are about."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = ("bindings", "runtime", "head", "worker", "actors", "placement")
_READ = re.compile(r"[\"'](TROUPE_[A-Z_]+)[\"']")
INTERNAL = set(
    """
CONTROL_FD CPP_ARGUMENTS CPP_FUNCTION CPU_SHARE FAULTS GLOO_FOR_NCCL JOB_AFTER JOB_COMMAND
JOB_FOLDER JOB_ID JOB_MLFLOW JOB_MLFLOW_RUN JOB_RUNTIME_ENV JOB_TOKEN_ID MLFLOW_EMPTY
MLFLOW_LOCKS NODE_PYTHONPATH ONE_LAUNCH PROCESS_ID RDMA_PORTS RUNTIME_ENV SPAWNS STALL
STAND_INS STORE_PEERS SWEEP_METRIC SWEEP_REPORTS TEST_LIMITS THREADS TOKEN TORCH_BACKEND
TRACE_DIR TRACKER TRACKING_STORE UNDER_WORKERS
""".split()
)
"""Variables that processes of the runtime set for each other, and those of its tests."""


def variables() -> list[str]:
    """Return what docs/reference/environment.md lacks of the variables that the code names."""
    named: set[str] = set()
    mentioned: set[str] = set()
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".cc", ".h"):
                text = path.read_text()
                named |= set(_READ.findall(text))
                mentioned |= set(re.findall(r"\bTROUPE_[A-Z_]+\b", text))
    page = (ROOT / "docs/reference/environment.md").read_text()
    listed = set(re.findall(r"`(TROUPE_[A-Z_]+)`", page))
    internal = {f"TROUPE_{each}" for each in INTERNAL}
    return [
        *(f"environment.md lacks {each}" for each in sorted(named - listed - internal)),
        *(f"environment.md has {each}, which no code names" for each in sorted(listed - mentioned)),
        *(f"INTERNAL has {each}, which no code names" for each in sorted(internal - named)),
    ]


def errors() -> list[str]:
    """Return how docs/reference/errors.md differs from the classes of `troupe.exceptions`."""
    from troupe import exceptions

    defined = {
        name
        for name, value in vars(exceptions).items()
        if inspect.isclass(value)
        and value.__module__ == exceptions.__name__
        and value.__name__ == name
    }
    page = (ROOT / "docs/reference/errors.md").read_text()
    listed = set(re.findall(r"^\| `(\w+)`", page, re.M))
    return [
        *(f"errors.md lacks {each}" for each in sorted(defined - listed)),
        *(f"errors.md has {each}, which is no error" for each in sorted(listed - defined)),
    ]
