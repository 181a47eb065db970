"""`./test long`: what is kept of a run, and what a wrong name is told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import long as runs


@pytest.mark.parametrize(
    ("command", "status"), [("true", 0), ("false", 1), ("sh -c 'seq 100; exit 3'", 3)]
)
def test_how_a_run_ended_is_kept_whatever_it_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str, status: int
) -> None:
    monkeypatch.setattr(runs, "KEPT", tmp_path)
    monkeypatch.setitem(runs.NAMES, "mine", ("a test's", command))
    assert runs.run("mine") == status
    kept = json.loads((runs.KEPT / "mine.json").read_text())
    assert (kept["status"], kept["passed"], kept["command"]) == (status, status == 0, command)
    assert kept["last_lines"] == ([str(n) for n in range(41, 101)] if status == 3 else [])
    assert ("passed at" if status == 0 else "FAILED at") in next(
        line for line in runs.listed().splitlines() if line.startswith("mine")
    )


def test_the_models_are_those_whose_verdicts_are_kept() -> None:
    kept = json.loads((runs.KEPT / "models.json").read_text())
    assert kept["passed"]
    assert kept["reads"] == runs.digests(runs.READS["models"]), "run ./test long models"
    assert any(name.endswith(".pml") for name in kept["reads"])


def test_a_name_that_there_is_not_is_told_the_others() -> None:
    said = subprocess.run(
        [sys.executable, str(runs.ROOT / "scripts" / "long.py"), "fuz"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 2
    assert all(name in said.stderr for name in runs.NAMES)
