"""Environment variables of a program that uses the build in build/PRESET."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def environment(preset: str = "dev") -> dict[str, str]:
    """This process's, with that build's package and programs."""
    build = ROOT / "build" / preset
    return {**os.environ, "PYTHONPATH": f"{build}/python", "TROUPE_BIN_DIR": f"{build}/bin"}
