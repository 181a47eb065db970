"""A retried stream while the answer of its call is still under way, without processes.

Method: attempts that are stand-ins, whose items and answers come when the test says.
"""

from __future__ import annotations

import collections
import threading
from typing import Any

import pytest

from troupe import exceptions
from troupe._actors import retried_streams
from troupe._actors.method_options import MethodOptions
from troupe._actors.streams import NOT_YET
from troupe._base import calls as _calls


class Attempt:
    """A call of a streaming method: its items, then an error or the end, and an answer that comes
    after them."""

    def __init__(self, *values: int) -> None:
        self._items: collections.deque[Any] = collections.deque()
        self._next = self._answer = _calls.Promise()
        self._next = _calls.Promise()
        for value in values:
            self.give(value)

    def give(self, value: int) -> None:
        self._next.set_value(value)
        self._items.append(self._next.ref)
        self._next = _calls.Promise()

    def raises(self, error: Exception) -> None:
        """The last item; its answer comes by `ends()`."""
        self._next.set_error(error)
        self._items.append(self._next.ref)
        self._error = error

    def ends(self) -> None:
        self._answer.set_error(self._error)

    def answer(self) -> Any:
        return self._answer.ref

    def front(self) -> Any:
        return self._items[0] if self._items else self._next.ref

    def take(self) -> Any:
        return self._items.popleft()


class Stream(retried_streams.RetriedStream):
    """A stream of attempts that the test has made."""

    def __init__(self, *attempts: Attempt) -> None:
        self._waiting = collections.deque(attempts)
        self._link: Any = None
        self._options, self._left = MethodOptions(retry_exceptions=True), len(attempts) - 1
        self._frozen: Any = retried_streams._retries.Frozen((), {})
        self._lock = threading.RLock()
        self._promise = _calls.Promise()
        self._call: Any = retried_streams._retries.OpenCall(self._promise.ref)
        self._taken = self._skipped = 0
        self._ended = None
        self._attempt = self._made()
        self._watch()

    def _made(self) -> Any:
        return self._waiting.popleft()


def test_an_error_is_no_item_before_the_answer_says_that_it_is_the_last() -> None:
    first, second = Attempt(1, 2), Attempt(1, 2, 3)
    stream = Stream(first, second)
    assert [_calls.get(stream.take()) for _ in range(2)] == [1, 2]
    first.raises(exceptions.TaskError("once"))
    assert (
        stream.taken_if_there() is NOT_YET and not stream.next_ready() and not stream.is_finished()
    )
    first.ends()
    assert _calls.get(next(stream)) == 3, "of the attempt after it, and what was given is left out"


def test_what_was_in_front_before_a_call_is_made_again_is_waited_for() -> None:
    first, second = Attempt(1), Attempt()
    stream = Stream(first, second)
    assert _calls.get(next(stream)) == 1
    first.raises(exceptions.TaskError("once"))
    first.ends()
    assert stream.taken_if_there() is NOT_YET
    with pytest.raises(ValueError, match="not there yet"):
        stream.take()
    threading.Timer(0.05, lambda: (second.give(1), second.give(2))).start()
    assert _calls.get(next(stream)) == 2


def test_after_its_retries_the_error_is_the_last_item() -> None:
    only = Attempt(1)
    stream = Stream(only)
    only.raises(LookupError("for good"))
    only.ends()
    assert _calls.get(next(stream)) == 1
    with pytest.raises(LookupError):
        _calls.get(next(stream))
