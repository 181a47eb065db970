"""The step of a DDP model under `troupe submit` against the same file under torchrun, in one run,
in turns.

Two ranks on processors, one thread each on both sides: OMP_NUM_THREADS is left to the launchers. A
round is torchrun, Troupe, torchrun; its ratio is Troupe's median step by the first torchrun's, and
what the two torchruns differ by says what this machine can tell apart: by more than NOISE_MOST in
the median of rounds, the ratio means nothing here, and that is said instead.

    python benchmarks/doors/ddp_step.py [--rounds 7] [--steps 200] [--keep]
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from contender import troupe_command  # noqa: E402
from report import await_rest, keep, settle  # noqa: E402

JOB = str(pathlib.Path(__file__).resolve().parent.parent / "jobs/ddp_job.py")
TROUPE = ["-m", "troupe", "submit", "--quiet", "--nproc-per-node", "2"]
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
NOISE_MOST = 0.03


def step_of(line: list[str], steps: int, home: str) -> float:
    """The median step's seconds of one run.

    Raises SystemExit where it failed or had more than a thread.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("OMP_NUM_THREADS", "TROUPE_ADDRESS")
    }
    done = subprocess.run(
        [sys.executable, *line, JOB, "--steps", str(steps)],
        capture_output=True,
        text=True,
        env={**environment, "TROUPE_HOME": home},
    )
    if done.returncode != 0:
        raise SystemExit(
            f"{' '.join(line)} ended with exit code {done.returncode}\n{done.stderr[-3000:]}"
        )
    said = json.loads(next(each for each in done.stdout.splitlines() if each.startswith("{")))
    if said["threads"] != 1:
        raise SystemExit(
            f"{' '.join(line)} gave its ranks {said['threads']} threads each: the steps cannot be "
            "compared"
        )
    return said["step_s"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument(
        "--keep", action="store_true", help="write benchmarks/results/ddp_step.json"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="troupe-bench-") as home:
        troupe_command(home, "start", "--head", "--port", "0", "--num-cpus", "2")
        rounds: list[tuple[float, float, float]] = []
        try:
            await_rest()
            for _ in range(options.rounds):
                one = []
                for line in (TORCHRUN, TROUPE, TORCHRUN):
                    settle()
                    one.append(step_of(line, options.steps, home))
                rounds.append(tuple(one))
        finally:
            troupe_command(home, "stop", "--all")
    noise = statistics.median(abs(again / first - 1) for first, _, again in rounds)
    ratio = statistics.median(troupe / first for first, troupe, _ in rounds)
    row = {
        "torchrun_ms": round(statistics.median(first for first, _, _ in rounds) * 1e3, 3),
        "troupe_ms": round(statistics.median(troupe for _, troupe, _ in rounds) * 1e3, 3),
        "ratio": round(ratio, 3),
        "two_torchruns_differ_by": round(noise, 3),
        "rounds": len(rounds),
        "verdict": "measured"
        if noise <= NOISE_MOST
        else f"not measurable here: two torchruns differ by {noise:.1%}",
    }
    keep("ddp_step", {"2 ranks, a step of DDP": row}, options.keep)


if __name__ == "__main__":
    main()
