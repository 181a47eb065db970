"""The results of `begin_` methods."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class Poller:
    """Something that was begun and goes on by itself, as azure.core.polling.LROPoller.

    A program that ends waits for it.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        executor = ThreadPoolExecutor(1, thread_name_prefix="troupe-poller")
        self._future = executor.submit(work)
        executor.shutdown(wait=False)
        self._lock = threading.Lock()  # guards both fields below
        self._has_called_back = False
        self._callbacks: list[Callable[[Poller], None]] = []
        self._future.add_done_callback(self._call_back)

    def result(self, timeout: float | None = None) -> None:
        """Block until the end, `timeout` seconds at most, and return None.

        Raises what the work raises, and TimeoutError.
        """
        self._future.result(timeout)

    def wait(self, timeout: float | None = None) -> None:
        """Block until the end, or for `timeout` seconds; `done` says which.

        Raises what the work raises.
        """
        with contextlib.suppress(TimeoutError):
            self.result(timeout)

    def add_done_callback(self, func: Callable[[Poller], None]) -> None:
        """Call the function with this once it has ended; at once where it has."""
        with self._lock:
            if not self._has_called_back:
                self._callbacks.append(func)
                return
        func(self)

    def remove_done_callback(self, func: Callable[[Poller], None]) -> None:
        """Call the function no more. Raises ValueError where it was not added."""
        with self._lock:
            self._callbacks.remove(func)

    def _call_back(self, _: Future[None]) -> None:
        with self._lock:
            self._has_called_back = True
        for each in self._callbacks:
            each(self)

    def done(self) -> bool:
        """Return True if it has ended."""
        return self._future.done()

    def status(self) -> str:
        """Return "InProgress", "Succeeded" or "Failed"."""
        return (
            "InProgress"
            if not self.done()
            else "Succeeded"
            if self._future.exception() is None
            else "Failed"
        )
