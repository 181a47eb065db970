"""What `begin_` methods return."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


class Poller:
    """Something that was begun and goes on by itself, as azure.core.polling.LROPoller.

    A program that ends waits for it.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        executor = ThreadPoolExecutor(1, thread_name_prefix="troupe-poller")
        self._future = executor.submit(work)
        executor.shutdown(wait=False)

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
