"""How a rank or actor process ends: exit handlers and flush under a deadline, then os._exit.

Never by the interpreter's finalization: torch's Gloo groups can deadlock in their destructor, which
joins a thread that waits for the GIL (pytorch#56297). `keep_groups_alive` keeps the groups that user
code destroys, so that no such destructor runs before the process is gone.
"""
from __future__ import annotations

import _thread
import atexit
import os
import sys
import threading
from typing import NoReturn

EXIT_DEADLINE_S = 5.0
WATCH_DEADLINE_S = 1.0  # for the thread that watches the exit handlers to begin
_kept: list[object] = []
_leaving = threading.Lock()


def forget_inherited_exit_handlers() -> None:
    """After fork: exit handlers that the zygote's imports registered are not this process's."""
    atexit._clear()


def leave(code: int) -> NoReturn:
    """Runs the exit handlers, flushes, ends the process with `code`; the first caller's code counts."""
    if not _leaving.acquire(blocking=False):
        threading.Event().wait()  # another thread is leaving already
    try:
        if _watched(code):
            atexit._run_exitfuncs()
    finally:
        flush()
        os._exit(code)


def _watched(code: int) -> bool:
    """Whether something will end this process after EXIT_DEADLINE_S: not where there is no memory for a thread.

    (`threading.Thread.start` would wait for ever for a thread that has died of that.)
    """
    begun, never = _thread.allocate_lock(), _thread.allocate_lock()
    begun.acquire()
    never.acquire()

    def watch() -> None:
        begun.release()
        never.acquire(timeout=EXIT_DEADLINE_S)
        os._exit(code)

    try:
        _thread.start_new_thread(watch, ())
    except (RuntimeError, MemoryError):
        return False
    return begun.acquire(timeout=WATCH_DEADLINE_S)


def leave_now(code: int) -> NoReturn:
    """Flushes what it can and ends at once: for the control thread, while user code may run."""
    flush()
    os._exit(code)


def flush() -> None:
    """Flushes stdout and stderr; a closed or full stream is no reason to stay."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue


def keep_groups_alive() -> None:
    """Wraps torch.distributed.destroy_process_group, now or when torch.distributed is imported."""
    module = sys.modules.get("torch.distributed.distributed_c10d")
    if module is not None:
        _wrap(module)
    elif not any(isinstance(finder, _AfterImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterImport())


def _wrap(module) -> None:
    destroy = module.destroy_process_group
    if hasattr(destroy, "_troupe_original"):
        return

    def destroy_process_group(group=None):
        _kept.extend(list(module._world.pg_map))
        return destroy(group)

    destroy_process_group.__doc__ = destroy.__doc__
    destroy_process_group._troupe_original = destroy
    module.destroy_process_group = destroy_process_group
    package = sys.modules.get("torch.distributed")
    if package is not None and hasattr(package, "destroy_process_group"):
        package.destroy_process_group = destroy_process_group


class _AfterImport:
    """Meta-path finder that wraps the module right after it has been executed."""

    def find_spec(self, name: str, path, target=None):
        if name != "torch.distributed.distributed_c10d":
            return None
        import importlib.util

        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module) -> None:
            run(module)
            _wrap(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
