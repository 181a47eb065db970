"""Programs written for Ray, run as users run them.

Not in conftest.py, of which there are several: pytest finds one of them by that name.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from conftest import TIMEOUT_S, Home


def run_as_ray(
    home: Home,
    script: Path,
    text: str,
    *args: str,
    ok: bool = True,
    env: dict[str, str] | None = None,
    timeout: float = TIMEOUT_S,
) -> subprocess.CompletedProcess:
    """Writes a program and runs it by `troupe run-as-ray`; with `ok` its exit code must be 0."""
    script.write_text(text)
    done = home.run("run-as-ray", str(script), *args, ok=False, env=env, timeout=timeout)
    assert not ok or done.returncode == 0, (
        f"{script} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    )
    return done
