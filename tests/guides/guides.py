"""Parts shared by the tests of all guides: their programs by `troupe run-as`, and the allowed
differences between `verbatim` and `cpu`."""

from __future__ import annotations

import difflib
import re
import subprocess
from pathlib import Path

from e2e_conftest import Home

HERE = Path(__file__).parent
TIMEOUT_S = 300.0
CHANGED_LINES_MAX = 12


def run(home: Home, guide: str, address: str, **env: str) -> subprocess.CompletedProcess:
    """`troupe run-as` of `folder/name`, with a cluster at that address."""
    return home.run(
        "run-as",
        str(HERE / f"{guide}.py"),
        ok=False,
        timeout=TIMEOUT_S,
        env={"TROUPE_ADDRESS": address, **env},
    )


def program(guide: str) -> list[str]:
    """Return the program's lines, without its docstring."""
    return (HERE / f"{guide}.py").read_text().partition('"""\n')[2].splitlines()


def check_pair(guide: str, launcher: re.Pattern[str]) -> None:
    """The launcher's lines are the same in both, and few others differ."""
    both = program(f"{guide}_verbatim"), program(f"{guide}_cpu")
    verbatim, cpu = ([line for line in lines if launcher.search(line)] for lines in both)
    assert verbatim == cpu and verbatim
    changed = [
        line
        for line in difflib.unified_diff(*both, lineterm="", n=0)
        if re.match(r"[-+](?![-+])", line)
    ]
    assert 0 < len(changed) <= CHANGED_LINES_MAX and not any(
        launcher.search(line) for line in changed
    ), changed
