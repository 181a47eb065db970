"""A program, run by torchrun, by `troupe submit`, or as a function by `@distributed`: the losses of
its ranks."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from e2e_conftest import torch_aborted_at_the_end
from losses import Losses, said

PROGRAMS = Path(__file__).parent / "programs"
LIMIT_S = 900.0
END_S = 60.0
VARIABLES = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",  # losses depend on the number of threads
    "CUDA_VISIBLE_DEVICES": "",
    "DS_ACCELERATOR": "cpu",
    "HF_HUB_OFFLINE": "1",
    "PYTHONUNBUFFERED": "1",
}
"""What both sides run with."""


def ended(line: Sequence[str]) -> tuple[int, str, str]:
    """The exit code of `python LINE`, and what it printed on stdout and on stderr.

    Each run compiles anew. What it started ends with it where it takes longer than its limit.
    """
    with (
        tempfile.TemporaryDirectory() as compiled,
        subprocess.Popen(
            [sys.executable, *line],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **VARIABLES, "TORCHINDUCTOR_CACHE_DIR": compiled},
        ) as child,
    ):
        try:
            printed, errors = child.communicate(timeout=LIMIT_S)
        except BaseException:
            # torchrun's ranks are in sessions of their own: it ends them itself, or they would live
            # on
            child.terminate()
            try:
                child.communicate(timeout=END_S)
            except subprocess.TimeoutExpired:
                child.kill()
            raise
    return child.returncode, printed, errors


def run(line: Sequence[str]) -> tuple[str, str]:
    """Return stdout and stderr of `python LINE`; it has to end with 0."""
    code, printed, errors = ended(line)
    assert code == 0, f"{' '.join(line)} ended with {code}\n{printed}\n{errors}"
    return printed, errors


def program(name: str) -> str:
    return str(PROGRAMS / f"{name}.py")


def by_torchrun(name: str, *words: str, ranks: int = 2) -> Losses:
    """The yardstick: it counts once all of its ranks have said their losses, though torch abort one
    of them after that, as DeepSpeed's programs do now and then (`torch_aborted_at_the_end`)."""
    line = [
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(ranks),
        program(name),
        *words,
    ]
    code, printed, errors = ended(line)
    assert code == 0 or torch_aborted_at_the_end(errors), (
        f"{' '.join(line)} ended with {code}\n{printed}\n{errors}"
    )
    return said(printed, ranks)


def by_submit(name: str, *words: str, ranks: int = 2, options: Sequence[str] = ()) -> Losses:
    """Forked with torch loaded; in fresh interpreters with the option `--fresh`."""
    printed, lines = run(
        ["-m", "troupe", "submit", *options, "--nproc-per-node", str(ranks), program(name), *words]
    )
    assert "in fresh interpreters" not in lines, (
        lines
    )  # a variable that libraries read when they are loaded would cost the fork
    return said(printed, ranks)


def by_distributed(name: str, *words: str, ranks: int = 2) -> Losses:
    """The program's `main`, as the function of a launch; what it returns, from each rank."""
    return said(run([program("through_launch"), name, str(ranks), *words])[0], ranks)
