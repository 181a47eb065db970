"""Parts shared by the tests of `troupe submit`: the command in a folder of its own, and scripts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from e2e_conftest import TIMEOUT_S, torch_aborted_at_the_end

LIMIT_S = 4 * TIMEOUT_S
TORCHRUNS_MAX = 5

TRAIN = """
import sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from parts import data

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)))
optimizer = torch.optim.AdamW(model.parameters(), lr=float(sys.argv[sys.argv.index("--lr") + 1]))
features, targets = data(dist.get_rank())
for step in range(5):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(features), targets)
    loss.backward()
    optimizer.step()
    dist.all_reduce(loss)
    if dist.get_rank() == 0:
        print("loss", step, loss.item().hex(), flush=True)
dist.destroy_process_group()
"""
SAYS = (
    "import os, sys\nprint('out', os.environ['RANK'], flush=True)\nprint('err', "
    "os.environ['RANK'], file=sys.stderr, flush=True)\n"
)
PARTS = """
import torch

def data(rank):
    numbers = torch.Generator().manual_seed(rank)
    features = torch.randn(32, 8, generator=numbers)
    return features, features.sum(1, keepdim=True) * float(open("scale.txt").read())
"""


def project(folder: Path, **files: str) -> Path:
    """A folder with these files, by their names without `.py`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / (name if "." in name else f"{name}.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def training(folder: Path) -> Path:
    """A repository with its own train.py, a module beside it and a file that it reads by a relative
    path."""
    return project(folder, train=TRAIN, parts=PARTS, **{"scale.txt": "0.5\n"})


def troupe_in(
    folder: Path, *args: str, env: dict[str, str] | None = None, timeout: float = LIMIT_S
) -> subprocess.CompletedProcess:
    """`troupe ARGS`, started in that folder."""
    return subprocess.run(
        [sys.executable, "-m", "troupe", *args],
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=folder,
        env={**os.environ, **(env or {})},
    )


def torchrun_in(
    folder: Path, *words: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess:
    """torchrun itself, of this interpreter: the yardstick.

    Run again where torch aborts one of its ranks, which comes and goes.
    """
    for _ in range(TORCHRUNS_MAX):
        done = subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", *words],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env={**os.environ, **(env or {})},
        )
        if not torch_aborted_at_the_end(done.stderr):
            break
    return done


def started_in(
    folder: Path, *args: str, ignored: Sequence[signal.Signals] = ()
) -> subprocess.Popen:
    """Start the command without waiting; Ctrl-C is `send_signal(SIGINT)`.

    `ignored`: signals that it is started with as ignored, as a shell's background commands are.
    """

    def prepare() -> None:
        _as_in_a_terminal()
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    return subprocess.Popen(
        [sys.executable, "-m", "troupe", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        preexec_fn=prepare,
    )


def _as_in_a_terminal() -> None:
    """Heed the keys' signals, which a shell has its background commands ignore, and so all that
    these start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


def printed(done: subprocess.CompletedProcess, code: int = 0) -> list[str]:
    """The lines of its stdout, in order of their text; its exit code is checked."""
    assert done.returncode == code, f"ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return sorted(done.stdout.splitlines())


def two(*words: str) -> Sequence[str]:
    """A line of two ranks."""
    return ("submit", "--nproc-per-node", "2", *words)
