"""The latest known state of launches, actors and groups, kept current by pushes from the head.

View: one session of one process. `post` is called by the thread that reads the session, `wait` by
any other. A state that ends an object stays until `forget`: only what is told of that end later
(how many still watch a run) replaces it, and callbacks hear of the end once. `followed` is what
must be watched again when the session comes back to a head that lost it.

What is kept does not grow with the age of the session. News of an actor count only while somebody
has subscribed to it, as who asks for one does before: its process may well be told of after
`forget`. A launch is kept while its handle lives. Of groups, and launches without a handle, that
ended the latest ENDED_MAX are.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from troupe import exceptions
from troupe._base import callbacks as _callbacks
from troupe._cluster import signals

Entry = tuple[dict[str, Any], bytes]
ENDED_MAX = 1000
"""As many as the head remembers."""
_ENDS = {"launch": {"terminal"}, "actor": {"dead"}, "group": {"removed", "infeasible"}}


def _has_ended(noun: str, entry: Entry | None) -> bool:
    return entry is not None and entry[0].get("state") in _ENDS[noun]


class _Waiters(threading.Condition):
    """The threads that wait for news of one object."""

    count = 0


class Board:
    """The known state of each (noun, id), with waiting and callbacks."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], Entry] = {}
        self._callbacks: dict[tuple[str, str], list[Callable[[dict[str, Any], bytes], None]]] = {}
        self._closers: dict[tuple[str, str], list[Callable[[BaseException], None]]] = {}
        self._lock = threading.Lock()
        self._waiters: dict[tuple[str, str], _Waiters] = {}
        self._closed: BaseException | None = None
        self._followed: set[tuple[str, str]] = set()
        self._ended: deque[tuple[str, str]] = deque()  # groups and launches, the oldest first
        self._left: deque[tuple[str, str]] = deque()  # to be dropped

    def follow(self, noun: str, identity: str) -> None:
        """The state of this object is wanted, whether or not any has come yet."""
        with self._lock:
            self._followed.add((noun, identity))

    def follows(self, noun: str, identity: str) -> bool:
        """Return True if the state of this object will come, or has."""
        with self._lock:
            return (noun, identity) in self._followed

    def followed(self) -> list[tuple[str, str]]:
        """Return the keys that are followed and have not ended."""
        with self._lock:
            wanted = {*self._followed, *self._entries, *self._callbacks}
            return [key for key in sorted(wanted) if not _has_ended(key[0], self._entries.get(key))]

    def post(self, noun: str, identity: str, info: dict[str, Any], attachment: bytes = b"") -> None:
        """A push arrived.

        Callbacks run here, on the session's reading thread: they must not block.
        """
        self._post((noun, identity), (info, attachment))

    def post_reply(
        self,
        noun: str,
        identity: str,
        info: dict[str, Any],
        attachment: bytes = b"",
        *,
        before: Entry | None = None,
    ) -> None:
        """A request's answer: counts only if no push came since, for that one is newer.

        `before`: the state at the request. A push that comes while callbacks hear of the answer is
        heard of beside it, on its own thread: they tell the older by what it says.
        """
        self._post((noun, identity), (info, attachment), answers=(before,))

    def _post(
        self, key: tuple[str, str], entry: Entry, *, answers: tuple[Entry | None] | None = None
    ) -> None:
        """`answers`: of an answer the state before its request; None: a push."""
        noun = key[0]
        ends = _has_ended(noun, entry)
        with self._lock:
            self._drop_what_was_left()
            if answers is not None and self._entries.get(key) is not answers[0]:
                return
            ended = _has_ended(noun, self._entries.get(key))
            if ended and not ends or noun == "actor" and key not in self._callbacks:
                return
            self._entries[key] = entry
            callbacks = [] if ended else list(self._callbacks.get(key, ()))
            if ends and not ended and noun != "actor":
                self._remember_end(key)
            waiters = self._waiters.get(key)
            if waiters is not None:
                waiters.notify_all()
        _callbacks.run_all(f"what hears of {noun} {key[1]}", callbacks, *entry)

    def get(self, noun: str, identity: str) -> Entry | None:
        """The latest state, or None."""
        with self._lock:
            return self._entries.get((noun, identity))

    def wait(
        self,
        noun: str,
        identity: str,
        accept: Callable[[dict[str, Any]], Any],
        timeout: float | None = None,
    ) -> Entry:
        """Blocks until a state satisfies `accept`.

        Raises TimeoutError after `timeout` seconds, or the error the session ended with.
        """
        key = (noun, identity)
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            while True:
                entry = self._entries.get(key)
                if entry is not None and accept(entry[0]):
                    return entry
                if self._closed is not None:
                    raise self._closed
                remaining = None if deadline is None else deadline - time.monotonic()
                if remaining is not None and remaining <= 0:
                    raise TimeoutError
                self._wait_for_news(key, remaining)

    def _wait_for_news(self, key: tuple[str, str], timeout: float | None) -> None:
        waiters = self._waiters.get(key)
        if waiters is None:
            waiters = self._waiters[key] = _Waiters(self._lock)
        waiters.count += 1
        try:
            waiters.wait(signals.at_most(timeout))
        finally:
            waiters.count -= 1
            if waiters.count == 0:
                del self._waiters[key]

    def subscribe(
        self,
        noun: str,
        identity: str,
        callback: Callable[[dict[str, Any], bytes], None],
        closed: Callable[[BaseException], None] | None = None,
    ) -> None:
        """Runs `callback(info, attachment)` for the present state, if any, and every later one;
        `closed(error)` when the session ends and nothing is told any more."""
        key = (noun, identity)
        with self._lock:
            self._callbacks.setdefault(key, []).append(callback)
            if closed is not None:
                self._closers.setdefault(key, []).append(closed)
            entry, error = self._entries.get(key), self._closed
        if entry is not None:
            callback(*entry)
        if closed is not None and error is not None:
            closed(error)

    def forget(self, noun: str, identity: str) -> None:
        """Drops what is kept of an object."""
        with self._lock:
            self._drop((noun, identity))

    def leave(self, noun: str, identity: str) -> None:
        """`forget` for finalizers, which may run in the middle of anything here: takes no lock, and
        is done by the next `post`."""
        self._left.append((noun, identity))

    def _drop_what_was_left(self) -> None:
        while self._left:
            self._drop(self._left.popleft())

    def _remember_end(self, key: tuple[str, str]) -> None:
        self._ended.append(key)
        if len(self._ended) > ENDED_MAX:
            oldest = self._ended.popleft()
            if (
                oldest[0] == "group" or oldest not in self._followed
            ):  # a launch with a handle is that one's to leave
                self._drop(oldest)

    def _drop(self, key: tuple[str, str]) -> None:
        self._entries.pop(key, None)
        self._callbacks.pop(key, None)
        self._closers.pop(key, None)
        self._followed.discard(key)

    def close(self, error: BaseException | None = None) -> None:
        """The session ended: everyone who waits gets `error`."""
        with self._lock:
            again = self._closed is not None
            self._closed = error or exceptions.ConnectionError(
                "the session to the cluster has ended"
            )
            closers = (
                [] if again else [each for key in self._closers for each in self._closers[key]]
            )
            for waiters in self._waiters.values():
                waiters.notify_all()
        _callbacks.run_all("what hears of the end of the session", closers, self._closed)
