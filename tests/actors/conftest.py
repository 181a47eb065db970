"""Fixtures of the call path's tests."""

import os
import sys
import tempfile
import time

import pytest
from call_support import Actor, CallError, native


@pytest.fixture(autouse=True)
def error_factory():
    native.set_error_factory(CallError)
    native.set_task_error_factory(None)
    yield
    native.set_error_factory(None)
    native.set_task_error_factory(None)
    bridge = sys.modules.get("troupe._base.bridge")
    if bridge is not None:  # the package's own tests run in this process too
        bridge.raise_our_errors()


@pytest.fixture
def start():
    """start(make, max_concurrency=1, groups=[], loop=False) -> Actor; all are killed at the end of
    the test."""
    actors = []
    with tempfile.TemporaryDirectory(prefix="trp-") as directory:

        def make_actor(make, max_concurrency=1, **serving):
            actors.append(Actor(directory, make, max_concurrency, **serving))
            return actors[-1]

        yield make_actor
        for actor in actors:
            if actor.alive():
                actor.kill()
                actor.wait()


@pytest.fixture
def fifo(tmp_path):
    """A FIFO for a method to read until the test lets it end, by writing into it."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


@pytest.fixture
def eventually():
    """Waits for a condition, with a deadline."""

    def wait_for(condition, seconds=60.0):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds} s: {condition}"
            time.sleep(0.005)  # lint-ok: a last resort, where no event can be waited for

    return wait_for
