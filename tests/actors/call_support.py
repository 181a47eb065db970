"""Parts shared by the call path's tests: the extension module, actors as forked processes, one
actor class."""

import asyncio
import importlib.util
import os
import pathlib
import signal
import sys
import threading
import time
import traceback

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


get, wait = native.get, native.wait
ACTOR_DIED, ACTOR_UNAVAILABLE, MAYBE_EXECUTED, NOT_SENT, TIMEOUT, TOO_LARGE = 11, 12, 13, 14, 7, 10


class CallError(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class Odd(Exception):
    """An exception whose __init__ does not take its args."""

    def __init__(self, a, b):
        super().__init__("odd one")
        self.a, self.b = a, b


def never() -> None:
    raise ValueError("it does not load")


class Stubborn(Exception):
    """Is pickled, and cannot be loaded."""

    def __reduce__(self):
        return never, ()


class Counter:
    def __init__(self):
        self.n = 0

    def f(self):
        return b"ok"

    def inc(self, by=1):
        self.n += by
        return self.n

    def echo(self, *args, **kwargs):
        return (args, kwargs) if kwargs or len(args) != 1 else args[0]

    def boom(self):
        return self._deeper({}, "missing")

    def _deeper(self, where, key):
        return where[key]

    def odd(self):
        raise Odd(1, 2)

    def stubborn(self):
        raise Stubborn("a stubborn one")

    def local_error(self):
        class Local(Exception):
            pass

        raise Local("made here")

    def unpicklable(self):
        return threading.Lock()

    def sleep(self, seconds):
        time.sleep(seconds)  # lint-ok: a method that takes this long
        return seconds

    def read(self, fifo):
        """Takes as long as nobody has written into it."""
        with open(fifo, encoding="ascii") as file:
            return file.read()

    def big(self, size):
        return b"x" * size

    def pid(self):
        return os.getpid()

    def leave(self, code=3):
        sys.exit(code)

    def fork_child(self, seconds):
        pid = os.fork()
        if pid == 0:
            time.sleep(seconds)  # lint-ok: a child that lives this long
            os._exit(0)
        return pid


_ready = os.pipe()


class Actor:
    """A process that serves `instance` at a socket; made by fork before any channel exists in
    it."""

    def __init__(self, directory, make, max_concurrency=1, **serving):
        self.path = os.path.join(directory, f"a{len(os.listdir(directory))}.sock")
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                server = native.CallServer(self.path)
                os.write(_ready[1], b"x")
                if serving.pop("loop", False):
                    server.serve_on_loop(
                        asyncio.new_event_loop(), make(), max_concurrency, **serving
                    )
                else:
                    server.serve(make(), max_concurrency, **serving)
                code = 0
            except SystemExit as exit:
                code = exit.code or 0
            except BaseException:
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


def code_of(ref, timeout=20):
    with pytest.raises(CallError) as caught:
        get(ref, timeout)
    return caught.value.code, str(caught.value)
