"""A part of the kill sweep (kill_sweep.py runs the whole): nothing acknowledged is lost, nothing is
doubled."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import Home

HEAD = Path(os.environ.get("TROUPE_BIN_DIR", "/nonexistent"), "troupe-head")


@pytest.mark.property
@pytest.mark.skipif(
    not HEAD.exists() or b"TROUPE_FAULTS" not in HEAD.read_bytes(),
    reason="needs a build with faults",
)
def test_a_head_killed_at_numbered_places_loses_and_doubles_nothing(home: Home) -> None:
    import kill_sweep

    result = kill_sweep.sweep(kills=15, seed=7)
    assert result["violations"] == []
    for place in kill_sweep.SNAPSHOT_PLACES:
        assert result["kills_by_place"].get(f"journal.snapshot.{place}"), result
    assert result["kills"] >= 15 and result["operations"] > 100, result
