"""ActorPool: work given to whichever of some actors is free."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import troupe
from troupe import exceptions

if TYPE_CHECKING:
    from troupe._actors.handle import ActorHandle

Call = Callable[[Any, Any], Any]


class ActorPool:
    """A fixed set of actors, each with at most one piece of work at a time.

        pool = ActorPool([worker, other])
        list(pool.map(lambda actor, value: actor.double.remote(value), range(10)))

    What finds no free actor waits here, in order. Not for several threads at once.
    """

    def __init__(self, actors: Iterable[Any]) -> None:
        self._idle = deque(actors)
        self._running: dict[
            Any, tuple[int, Any]
        ] = {}  # the last ref of a piece of work -> (its number, actor)
        self._by_number: dict[int, Any] = {}  # number -> ref, or list of refs
        self._waiting: deque[tuple[Call, Any]] = deque()
        self._submitted = 0  # numbers given
        self._returned = 0  # the number get_next() is at

    def map(self, fn: Call, values: Iterable[Any]) -> Iterator[Any]:
        """The results of `fn(actor, value)`, which returns a ref, in the order of the values; a
        list of results where it returns a list of refs, as of a method with num_returns=2."""
        return self._map(fn, values, self.get_next)

    def map_unordered(self, fn: Call, values: Iterable[Any]) -> Iterator[Any]:
        """Map `fn` over `values` and yield the results in the order in which they arrive."""
        return self._map(fn, values, self.get_next_unordered)

    def _map(self, fn: Call, values: Iterable[Any], take: Callable[[], Any]) -> Iterator[Any]:
        while self.has_next():  # results of earlier work, that nobody took
            try:
                self.get_next_unordered()
            except exceptions.TaskError:
                continue
        for value in values:
            self.submit(fn, value)

        def results() -> Iterator[Any]:
            while self.has_next():
                yield take()

        return results()

    def submit(self, fn: Call, value: object) -> None:
        """Has `fn(actor, value)` run with the next free actor."""
        if not self._idle:
            self._waiting.append((fn, value))
            return
        actor = self._idle.popleft()
        given = fn(actor, value)
        self._running[_last(given)] = (self._submitted, actor)
        self._by_number[self._submitted] = given
        self._submitted += 1

    def has_next(self) -> bool:
        """Return True if there are results to come."""
        return bool(self._running)

    def get_next(self, timeout: float | None = None, ignore_if_timedout: bool = False) -> Any:
        """The next result in the order of submission.

        Raises StopIteration when there is none to come, TimeoutError after `timeout` seconds, when
        the result stays to be got, or with `ignore_if_timedout` is passed over.
        """
        if not self.has_next():
            raise StopIteration("no more results to get")
        while self._returned not in self._by_number:  # already taken by get_next_unordered
            self._returned += 1
        ref = _last(self._by_number[self._returned])
        if timeout is not None and not troupe.wait([ref], timeout=timeout)[0]:
            if not ignore_if_timedout:
                raise TimeoutError(f"no result within {timeout:g} s")
            self._drop(ref, self._returned)
            raise TimeoutError(f"no result within {timeout:g} s; it is passed over")
        return self._take(ref)

    def get_next_unordered(
        self, timeout: float | None = None, ignore_if_timedout: bool = False
    ) -> Any:
        """Any result, the first that is there. Raises as get_next does."""
        if not self.has_next():
            raise StopIteration("no more results to get")
        ready, _ = troupe.wait(list(self._running), timeout=timeout)
        if not ready:
            raise TimeoutError(f"no result within {timeout:g} s")
        return self._take(ready[0])

    def _take(self, ref: Any) -> Any:
        number, actor = self._running.pop(ref)
        given = self._by_number.pop(number)
        self._free(actor)
        return troupe.get(given)

    def _drop(self, ref: Any, number: int) -> None:
        """Passes a result over; its actor is free again, and does what follows after that."""
        _, actor = self._running.pop(ref)
        del self._by_number[number]
        self._free(actor)

    def _free(self, actor: Any) -> None:
        self._idle.append(actor)
        if self._waiting:
            self.submit(*self._waiting.popleft())

    def has_free(self) -> bool:
        """Return True if an actor is idle."""
        return bool(self._idle) and not self._waiting

    def pop_idle(self) -> ActorHandle[Any] | None:
        """Takes a free actor out of the pool; None: there is none."""
        return self._idle.popleft() if self.has_free() else None

    def push(self, actor: ActorHandle[Any]) -> None:
        """Adds an actor. Raises ValueError for one that is in the pool."""
        if actor in self._idle or any(actor == each for _, each in self._running.values()):
            raise ValueError("the actor is in this pool already")
        self._free(actor)


def _last(given: Any) -> Any:
    """Return the ref of a call that is resolved when all refs of the call are."""
    return given[-1] if isinstance(given, list) and given else given
