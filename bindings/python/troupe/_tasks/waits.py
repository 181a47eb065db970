"""Lending of CPUs by a task that waits: first to tasks of its own, then to whoever waits.

Tasks that this process started may have them at once (`_tasks.leases`). When the wait has lasted
LEND_AFTER_S, what those do not use is the node's to give, until the wait is over: the worker is
told (CpuLent), and for processes that were lent their CPUs it is told by whom. Then the task goes
on at once; who was given its CPU meanwhile keeps it until that is given back.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

from troupe._base import bridge as _bridge
from troupe._cluster import session as _session
from troupe._tasks.of_session import LEASES

LEND_AFTER_S = 0.02
"""Shorter waits are not worth a word to worker and head."""
_UNIT = 10_000


class Lending:
    """The lending of one process for tasks that has `cpus`, from the actor `lender` or, where that
    is empty, its own."""

    def __init__(self, cpus: float, lender: str) -> None:
        self.cpus, self.lender = cpus, lender
        self._lock = threading.Lock()
        self._waits = 0  # waits that have lasted
        self._over = False
        self._said = (False, 0)

    @property
    def lent(self) -> float:
        """The CPUs that the node may give to others just now."""
        return self._said[1] / _UNIT

    @contextlib.contextmanager
    def wait(self, leases: Any) -> Iterator[None]:
        """Around one that lasts; `leases` are the processes for tasks of this one, if it has
        any."""
        counted = False
        try:
            with self._lock:
                self._waits += 1
                counted = True
                if leases is None:
                    self._say(0.0)
            if leases is not None:
                leases.wake()  # the thread counts the CPUs in use
            yield
        finally:
            with self._lock:
                self._waits -= counted
                if not self._waits:
                    self._say(0.0)

    def for_good(self, leases: Any) -> None:
        """This process runs nothing any more, and stays for what it owns: that is a wait without an
        end."""
        with self._lock:
            if self._over:
                return
            self._over = True
            self._waits += 1
            if leases is None:
                self._say(0.0)
        if leases is not None:
            leases.wake()

    def look(self, borrowed: float) -> None:
        """So much is in use by tasks of its own."""
        with self._lock:
            if self._waits:
                self._say(borrowed)

    def _say(self, borrowed: float) -> None:
        says = (
            bool(self._waits),
            max(0, round((self.cpus - borrowed) * _UNIT)) if self._waits else 0,
        )
        session = _session.current_or_none()
        if says == self._said or session is None or session.closed:
            return
        self._said = says
        session.control.send(
            "CpuLent",
            {
                "waits": says[0],
                "amount": says[1],
                **({"lender": self.lender} if self.lender else {}),
            },
        )


@contextlib.contextmanager
def waiting(
    lending: Lending, refs: Any, timeout: float | None, most: int | None = None
) -> Iterator[float | None]:
    """Around a wait of the task for `most` of these refs, all for None; gives what is left of its
    timeout."""
    session = _session.current_or_none()
    if session is None or not _bridge.native.running_call():
        yield timeout  # a thread of the user's
        return
    leases = LEASES.known(session)
    begun = time.monotonic()
    if leases is not None:
        leases.lend(True)
    try:
        if not lending.cpus or _come_soon(refs, timeout, most):
            yield timeout
            return
        with lending.wait(leases):
            yield None if timeout is None else max(0.0, begun + timeout - time.monotonic())
    finally:
        if leases is not None:
            leases.lend(False)


def _come_soon(refs: Any, timeout: float | None, most: int | None) -> bool:
    """Waits for a moment. Also where the wait itself is as short, or is going to raise."""
    from troupe._base import calls as _calls

    if timeout is not None and timeout <= LEND_AFTER_S:
        return True
    listed = refs if isinstance(refs, (list, tuple)) else [refs]
    asked = {
        id(each): each.front() if isinstance(each, _calls.RefStream) else each for each in listed
    }
    if not asked or not all(type(each) is _calls.Ref for each in asked.values()):
        return True
    wanted = len(asked) if most is None else min(most, len(asked))
    return wanted < 1 or len(_calls.wait(list(asked.values()), wanted, LEND_AFTER_S)[0]) >= wanted
