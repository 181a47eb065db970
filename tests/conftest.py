"""Fixtures and hooks of all Python tests."""

import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

# A shell that runs this in the background ignores SIGINT for it and for every process below: tests
# of Ctrl-C would then wait for ever for what cannot come.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Launches of `serverless_gpu` have a run wherever MLflow is installed: tests of that
# (doors/tracking) take this away.
os.environ.setdefault("TROUPE_TRACKING", "0")

FRAMEWORKS = Path(__file__).parent / "frameworks"


def named(folder: Path, arguments: Sequence[str]) -> bool:
    """Return True if one of pytest's arguments is that folder, or lies in it."""
    return any(Path(each.partition("::")[0]).resolve().is_relative_to(folder) for each in arguments)


def pytest_ignore_collect(collection_path, config):
    """Frameworks' programs need an environment of their own (`./test frameworks`): they run where
    they are named."""
    return True if collection_path == FRAMEWORKS and not named(FRAMEWORKS, config.args) else None


def pytest_collection_modifyitems(items):
    """Mark tests that look for a violation of a property: scripts/verdict.py gives them no second
    run.

    A test has one name in every process: by it, it is given to one of several workers, and run once
    more.
    """
    for item in items:
        if re.search(r" at 0x[0-9a-f]+", item.nodeid):
            raise pytest.UsageError(
                f"{item.nodeid}: the name has an address in it, another one in each process; give "
                "its parameters ids"
            )
        function = getattr(item, "obj", None)
        if item.get_closest_marker("property") or getattr(function, "is_hypothesis_test", False):
            item.user_properties.append(("property", "1"))
