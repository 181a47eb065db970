"""Sweeps on a full disk: a checkpoint that does not fit is the trial's error, a journal that cannot
be written ends the sweep, which goes on once there is room.

Method: programs with clusters of their own, whose sweep's folder is on a file system of 1 MiB.
"""

from __future__ import annotations

import sys
from pathlib import Path

from small_disks import left_of, needs_mounts, on_a_small_disk

pytestmark = needs_mounts

PROGRAM = """
import os, sys
from pathlib import Path
import troupe
from troupe import tune

there, filler, big = Path(sys.argv[1]), Path(sys.argv[1], "filler"), Path(sys.argv[2])
big.mkdir()
(big / "weights").write_bytes(bytes(2 << 20))

def too_large(config):
    tune.report({"x": config["a"]}, checkpoint=tune.Checkpoint(config["big"]) if config["a"] == 0 else None)

def talks(config):
    for step in range(100):
        tune.report({"x": step, "text": "y" * 5000})

def sweep(function, name, space):
    return tune.Tuner(function, param_space=space, tune_config=tune.TuneConfig(metric="x", mode="max"), run_config=tune.RunConfig(name=name, storage_path=there)).fit()

troupe.init(num_cpus=1)
grid = sweep(too_large, "checkpoints", {"a": tune.grid_search([0, 1]), "big": str(big)})
print("checkpoints", type(grid[0].error).__name__, isinstance(grid[0].error, OSError), grid[1].error)
print(str(grid[0].error).splitlines()[0])
try:
    sweep(talks, "journal", {})
except OSError as error:
    print("journal", error.errno, error.strerror, error.filename)
import shutil
shutil.rmtree(there / "checkpoints")
filler.unlink(missing_ok=True)
os.truncate(there / "room", 0)
grid = tune.Tuner.restore(there / "journal", talks).fit()
print("went on", grid.num_errors, grid[0].metrics["x"], len(grid[0].metrics_history))
"""


def test_d6_a_sweep_on_a_full_disk_says_so_and_goes_on_once_there_is_room(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PROGRAM)
    there = tmp_path / "there"
    line = [sys.executable, str(script), str(there), str(tmp_path / "big")]
    done = on_a_small_disk(
        there,
        ["bash", "-c", f'head -c 2500000 /dev/zero >{there}/room; exec "$@"', "bash", *line],
        options="size=3m",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [each for each in done.stdout.splitlines() if not each.startswith("left: ")]
    assert lines[0] == "checkpoints TrialFailedError(OSError) True None", done.stdout
    assert (
        "OutOfDiskError" in lines[1]
        and "cannot be written" in lines[1]
        and lines[1].endswith("No space left on device")
    ), done.stdout
    journal = next(each for each in lines if each.startswith("journal "))
    assert journal.startswith(
        "journal 28 the sweep's journal cannot be written"
    ) and journal.endswith("journal/sweep.db"), done.stdout
    assert "went on 0 99 100" in lines, done.stdout + done.stderr
    assert not [each for each in left_of(done) if "staging" in each], left_of(done)
