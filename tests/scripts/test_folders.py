"""Tests that run where none is named: not those that need an environment of their own.

Method: the collection of pytest itself, of the two folders that are looked at.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("arguments", "frameworks"),
    [
        (["tests"], False),
        (["tests/frameworks"], True),
        (["tests/frameworks/test_losses.py"], True),
        (
            [
                str(ROOT / "tests" / "frameworks" / "test_losses.py")
                + "::test_lines_of_ranks_are_found_among_others"
            ],
            True,
        ),
    ],
)
def test_frameworks_are_collected_only_where_they_are_named(
    arguments: list[str], frameworks: bool
) -> None:
    others = [
        f"--ignore={each}"
        for each in (ROOT / "tests").iterdir()
        if each.is_dir() and each.name not in ("frameworks", "scripts")
    ]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "--collect-only",
            "-p",
            "no:cacheprovider",
            *others,
            *arguments,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ("test_losses.py" in done.stdout) is frameworks, done.stdout + done.stderr
