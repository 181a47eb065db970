"""A searcher that may take long, asked by a thread of its own, so that none of its calls holds up a
decision.

The engine's thread puts calls in, in their order; answers and failures come to callbacks on the
searcher's thread. What the searcher is, an object here or one in a process of its own (`child`),
the thread does not know.
"""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
from collections.abc import Callable
from typing import Any

from troupe.tune._core.deciding import End, Proposal, Report, Searcher, Where
from troupe.tune._search.child import Child

_CALLS_MAX = 20_000
"""Calls that wait for the searcher: past that many the engine waits for it, instead of keeping ever
more of them."""


class Apart:
    """Calls a searcher elsewhere.

    Nothing here blocks, unless the searcher is 20,000 calls behind.

    `on_answer(trial, proposal, finished)`: what `propose` was answered, and whether there will
    never be another. `on_failure(error)`: a call has raised, or the searcher's process has ended;
    nothing is asked any more. Both are called by the searcher's thread.
    """

    def __init__(
        self,
        searcher: Searcher,
        on_answer: Callable[[str, Proposal | None, bool], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        self._searcher: Any = Child(searcher) if searcher.where is Where.PROCESS else searcher
        self._on_answer, self._on_failure = on_answer, on_failure
        self._calls: queue.Queue[tuple[str, tuple[Any, ...]] | None] = queue.Queue(_CALLS_MAX)
        self._has_said = False
        self._closed = self._finishing = False
        self._over = threading.Event()
        self.made = 0
        """How many calls have come to an end."""
        self._thread = threading.Thread(
            target=self._run, name=f"sweep's searcher {type(searcher).__name__}", daemon=True
        )
        self._thread.start()

    def propose(self, trial: str) -> None:
        """Asks for a configuration: the answer comes to `on_answer`."""
        self._put("propose", trial)

    def proposed(self, trial: str, proposal: Proposal) -> None:
        """As `Searcher.proposed`."""
        self._put("proposed", trial, proposal)

    def reported(self, report: Report) -> None:
        """As `Searcher.reported`."""
        self._put("reported", report)

    def ended(self, trial: str, end: End, last: Report | None) -> None:
        """As `Searcher.ended`."""
        self._put("ended", trial, end, last)

    def finish(self) -> None:
        """Ask for nothing more: the searcher hears what it was told so far, and `Searcher.over`
        last. Returns at once; see `wait_for_end`."""
        self._finishing = True
        with contextlib.suppress(queue.Full):  # a thread that is behind looks for the end itself
            self._calls.put_nowait(None)

    def wait_for_end(self, timeout: float | None) -> bool:
        """Return True once no call will be made any more, False after `timeout` seconds."""
        return self._over.wait(timeout)

    def waiting(self) -> int:
        """Return about how many calls are still to be made."""
        return self._calls.qsize()

    def _put(self, name: str, *arguments: Any) -> None:
        if self._closed or self._finishing:
            return
        if self._calls.full() and not self._has_said:
            self._has_said = True
            print(
                f"sweep: the searcher is {_CALLS_MAX} calls behind, so trials wait for it",
                file=sys.stderr,
            )
        self._calls.put((name, arguments))

    def close(self) -> None:
        """End it now: calls that wait are dropped, and a process of the searcher's is over when
        this returns. A call in this process runs on, its answer unread."""
        self._closed = True
        if isinstance(self._searcher, Child):
            self._searcher.close()
        with contextlib.suppress(
            queue.Full
        ):  # then its thread ends after the call that it makes now
            self._calls.put_nowait(None)
        if isinstance(self._searcher, Child) and threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        try:
            while (call := self._calls.get()) is not None and not self._closed:
                if (
                    not self._finishing or call[0] != "propose"
                ):  # nobody would run what it proposes at the end
                    self._make(*call)
                self.made += 1
                if self._closed or self._finishing and self._calls.empty():
                    break
            if self._finishing and not self._closed:
                self._make("over", ())
        finally:
            self._over.set()

    def _make(self, name: str, arguments: tuple[Any, ...]) -> None:
        try:
            answer = getattr(self._searcher, name)(*arguments)
            finished = self._searcher.finished() if name == "propose" else False
        except Exception as error:  # a searcher of the user's may raise anything
            if not self._closed:
                self._closed = True
                self._on_failure(error)
            return
        if name == "propose" and not self._closed:
            self._on_answer(arguments[0], answer, finished)
