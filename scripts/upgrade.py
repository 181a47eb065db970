"""Builds the wheel of an older commit, and runs the test of an upgrade from it: `./test long
upgrade`.

scripts/upgrade.py [COMMIT]     the previous one by default; exit code as the test's
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import builds

PYTHON = builds.ROOT / ".venv" / "bin" / "python"
TEST = ("-m", "pytest", "-v", "-rs", "-o", "addopts=--strict-markers", "tests/jobs/test_upgrade.py")


def _run(*line: str | Path, env: dict[str, str] | None = None) -> None:
    subprocess.run([str(each) for each in line], cwd=builds.ROOT, check=True, env=env)


def install(commit: str, folder: Path) -> Path:
    """Build the wheel of `commit`, and return the interpreter of an environment that has it."""
    tree, wheels, older = folder / "tree", folder / "wheels", folder / "older"
    _run("git", "worktree", "add", "--detach", tree, commit)
    try:
        _run(PYTHON, "-m", "pip", "wheel", "--no-deps", "-w", wheels, tree)
    finally:
        _run("git", "worktree", "remove", "--force", tree)
    _run(PYTHON, "-m", "venv", older)
    _run(older / "bin" / "python", "-m", "pip", "install", "-q", *wheels.glob("*.whl"))
    return older / "bin" / "python"


def main() -> int:
    commit = sys.argv[1] if len(sys.argv) > 1 else "HEAD~1"
    with tempfile.TemporaryDirectory(prefix="troupe-upgrade-") as folder:
        older = install(commit, Path(folder))
        env = {**os.environ, **builds.environment(), "TROUPE_OLDER_PYTHON": str(older)}
        return subprocess.run(
            [str(PYTHON), *TEST], cwd=builds.ROOT, env=env, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
