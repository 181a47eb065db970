"""The GPUs of this machine as NVIDIA's own command tells them: the tests' process makes no CUDA
context of its own by looking."""

from __future__ import annotations

import functools
import shutil
import subprocess
import time
from pathlib import Path

WITHIN_S = 30.0


def query(*fields: str) -> list[list[str]]:
    """Return fields of `nvidia-smi --query-gpu` for each GPU."""
    done = subprocess.run(
        ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        check=True,
        timeout=WITHIN_S,
    )
    return [
        [each.strip() for each in line.split(",")]
        for line in done.stdout.splitlines()
        if line.strip()
    ]


@functools.cache
def missing() -> str:
    """Why tests of GPUs cannot run here; "" where they can."""
    if shutil.which("nvidia-smi") is None:
        return "no NVIDIA driver here (no nvidia-smi)"
    try:
        if (found := len(query("name"))) != 1:
            return f"these tests are for one GPU, and nvidia-smi finds {found or 'none'} here"
    except (OSError, subprocess.SubprocessError) as error:
        return f"nvidia-smi does not answer here: {error}"
    try:
        import torch
    except ImportError:
        return "no torch here"
    return "" if torch.version.cuda else f"torch {torch.__version__} is built without CUDA"


@functools.cache
def count() -> int:
    """How many there are."""
    return len(query("name"))


def used_mib() -> int:
    """Return the used memory of the first GPU, by whomever."""
    return int(query("memory.used")[0][0])


def total_mib() -> int:
    """The first one's memory."""
    return int(query("memory.total")[0][0])


def free_again(most_mib: int) -> None:
    """Waits until no more than that is used; fails where more is."""
    deadline = time.monotonic() + WITHIN_S
    while (used := used_mib()) > most_mib:
        assert time.monotonic() < deadline, (
            f"{used} MiB of the GPU's memory are used, {most_mib} MiB were before"
        )
        time.sleep(0.05)  # lint-ok: polling the card, up to a deadline


def described() -> list[str]:
    """A line for each card, and one of what runs on it."""
    import torch

    cards = [
        f"GPU {number}: {name}, {memory} MiB, driver {driver}"
        for number, (name, memory, driver) in enumerate(
            query("name", "memory.total", "driver_version")
        )
    ]
    nccl = ".".join(map(str, torch.cuda.nccl.version()))
    system = next(
        (
            line.partition("=")[2].strip().strip('"')
            for line in Path("/etc/os-release").read_text().splitlines()
            if line.startswith("PRETTY_NAME=")
        ),
        "?",
    )
    return [*cards, f"torch {torch.__version__}, NCCL {nccl}, {system}"]
