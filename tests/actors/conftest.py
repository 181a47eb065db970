"""Fixtures of the call path's tests: the extension module, and actors as forked processes."""

import importlib.util
import os
import pathlib
import signal
import sys
import tempfile
import time

import pytest


def _load_native():
    """troupe._native of the build tree, without the package around it."""
    try:
        from troupe import _native

        return _native
    except ImportError:
        pass
    root = pathlib.Path(__file__).resolve().parents[2]
    builds = os.environ.get("TROUPE_BUILD_DIR", str(root / "build" / "dev"))
    for file in sorted(pathlib.Path(builds).glob("python/troupe/_native*.so")):
        spec = importlib.util.spec_from_file_location("troupe._native", file)
        module = importlib.util.module_from_spec(spec)
        sys.modules.setdefault("_native", module)
        spec.loader.exec_module(module)
        return module
    pytest.skip("troupe._native is not built", allow_module_level=True)


native = _load_native()


class Actor:
    """A process that serves `instance` at a socket; made by fork before any channel exists in it."""

    def __init__(self, directory, make, max_concurrency=1):
        self.path = os.path.join(directory, f"a{len(os.listdir(directory))}.sock")
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                server = native.CallServer(self.path)
                os.write(_ready[1], b"x")
                server.serve(make(), max_concurrency)
                code = 0
            except SystemExit as exit:
                code = exit.code or 0
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                os._exit(code)
        assert os.read(_ready[0], 1) == b"x"
        self.status = None

    def connect(self, **options):
        options.setdefault("description", f"actor Test({self.pid})")
        return native.CallChannel(self.path, **options)

    def kill(self, how=signal.SIGKILL):
        os.kill(self.pid, how)

    def wait(self):
        if self.status is None:
            self.status = os.waitpid(self.pid, 0)[1]
        return self.status

    def alive(self):
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid != 0:
                self.status = status
        return self.status is None


_ready = os.pipe()


@pytest.fixture
def start():
    """start(make, max_concurrency=1) -> Actor; all are killed at the end of the test."""
    actors = []
    with tempfile.TemporaryDirectory(prefix="trp-") as directory:

        def make_actor(make, max_concurrency=1):
            actors.append(Actor(directory, make, max_concurrency))
            return actors[-1]

        yield make_actor
        for actor in actors:
            if actor.alive():
                actor.kill()
                actor.wait()


@pytest.fixture
def eventually():
    """Waits for a condition with a deadline; the last resort where no event can be waited for."""

    def wait_for(condition, seconds=10.0):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds} s: {condition}"
            time.sleep(0.005)

    return wait_for
