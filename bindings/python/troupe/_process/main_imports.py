"""Children by multiprocessing's spawn that cannot import the program's script: their pool fails,
instead of making others without end.

A child of spawn or forkserver imports the script as `__mp_main__` before it does anything. Where
the script has no `if __name__ == "__main__":` around what starts the program, that starts the
program again in the child. Python refuses processes there, and Troupe actors, tasks and launches;
the child ends, and a `multiprocessing.Pool` makes another one, which ends the same way. In a
process of a cluster that loop had no end and nobody to press Ctrl-C.

View: ranks, actors and processes for tasks. What their children do: `troupe._code.main_import`.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

from troupe._base.after_import import after_import
from troupe._code.main_import import EXIT_CODE, VARIABLE

_TEXT = """a child process of this pool could not import the script {script}, so it cannot run anything, and no other child could: its traceback is on stderr.
  The child imports the script first. Put what starts the program, Troupe's calls among it, under:
      if __name__ == "__main__":
  See "Safe importing of main module" in https://docs.python.org/3/library/multiprocessing.html"""
_broken: list[list[Any]] = []  # workers' lists of pools whose children cannot import the script
_here = threading.local()


def watch_pools() -> None:
    """From now on a pool of this process fails where its children cannot import the script.

    Idempotent.
    """
    if VARIABLE not in os.environ:
        os.environ[VARIABLE] = "1"
        after_import({"multiprocessing.pool": _change})


def _change(module: Any) -> None:
    pool = module.Pool
    handle, join, check = (
        pool._handle_workers.__func__,
        pool._join_exited_workers,
        pool._check_running,
    )

    def handle_workers(cls: type, cache: dict[int, Any], *rest: Any) -> None:
        _here.cache = cache
        handle(cls, cache, *rest)

    def join_exited_workers(workers: list[Any]) -> bool:
        failed = any(each.exitcode == EXIT_CODE for each in workers)
        joined = join(workers)
        if failed:
            _broken.append(workers)
        if any(each is workers for each in _broken):
            _fail(_here.cache)
            return False  # no others are made
        found: bool = joined
        return found

    def check_running(self: Any) -> None:
        check(self)
        if any(each is self._pool for each in _broken):
            raise RuntimeError(_text())

    pool._handle_workers = classmethod(handle_workers)
    pool._join_exited_workers = staticmethod(join_exited_workers)
    pool._check_running = check_running


def _fail(cache: dict[int, Any]) -> None:
    """End what the pool was asked for with the error.

    A result of several parts is over once all of them are.
    """
    error = RuntimeError(_text())
    for job, result in list(cache.items()):
        parts = getattr(result, "_number_left", 1)
        for _ in range(parts):
            if job in cache:
                result._set(getattr(result, "_index", 0), (False, error))


def _text() -> str:
    return _TEXT.format(
        script=getattr(sys.modules.get("__main__"), "__file__", None) or "of this program"
    )
