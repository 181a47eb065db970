"""Programs for `databricks.air`, as a notebook has them: by `troupe run-as`, on a machine without a
cluster and without GPUs.

Method: each program in a process of its own, with nothing set.
"""

from __future__ import annotations

import importlib.util
import re

import guides
import pytest
from e2e_conftest import Home

LAUNCHER = re.compile(r"databricks\.air|@distributed|\.distributed\(")

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "sklearn")),
    reason="needs torch and scikit-learn",
)


def test_the_launchers_lines_are_the_guides() -> None:
    guides.check_pair("databricks_air/digits", LAUNCHER)


def test_digits_on_a_machine_with_nothing(home: Home) -> None:
    """A17, A18: two CPU ranks of an embedded cluster, NCCL's group by Gloo, each said once."""
    done = home.run(
        "run-as",
        str(guides.HERE / "databricks_air/digits_cpu.py"),
        ok=False,
        timeout=guides.TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"^accuracy \[([\d.]+), \1\]$", done.stdout, re.M)
    assert found is not None and float(found[1]) > 0.9, done.stdout
    assert done.stderr.count("no cluster of this user runs on this host") == 1, done.stderr
    assert (
        done.stderr.count("means 2 processes without GPUs, and gpu_type='H100' is ignored") == 1
    ), done.stderr
