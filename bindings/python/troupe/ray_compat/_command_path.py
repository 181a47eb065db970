"""A folder for PATH that has the command `ray` of Troupe (`_command`)."""

from __future__ import annotations

import atexit
import shlex
import sys
from pathlib import Path


def folder() -> str:
    """Return a folder that has the command for as long as this process lives."""
    from troupe._cluster import scratch

    made = scratch.Folder("troupe-ray-")
    atexit.register(made.remove)
    put_into(made.path)
    return str(made.path)


def put_into(place: Path) -> None:
    """Write the command into a folder."""
    script = place / "ray"
    script.write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -m troupe.ray_compat._command "$@"\n',
        encoding="utf-8",
    )
    script.chmod(0o700)
