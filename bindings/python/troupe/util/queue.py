"""Queue: first in, first out, between processes; its items are kept by an async actor."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import queue
import time
import weakref
from collections.abc import Iterable, Mapping
from typing import Any

import troupe
from troupe import exceptions
from troupe._base import calls as _calls
from troupe.util._queue_line import Line
from troupe.util._queue_turns import Turns

_WAITING_MAX = 1 << 30  # limit for all processes, each of which bounds its own


class Empty(queue.Empty):
    """Nothing came in time."""


class Full(queue.Full):
    """There was no room in time."""


class _Keeper:
    """The actor behind a queue.

    Those who wait for room or for an item do so beside each other and beside all other calls, on
    one event loop: its methods are in no concurrency group, each of which has a loop of its own.
    """

    def __init__(self, maxsize: int) -> None:
        self._line = Line(maxsize if maxsize > 0 else None)
        self._maxsize = maxsize
        self._given: dict[str, _Given] = {}  # items given to getters that may still be interrupted

    def qsize(self) -> int:
        return len(self._line)

    def empty(self) -> bool:
        return len(self._line) == 0

    def full(self) -> bool:
        return self._line.free == 0

    async def put(self, item: Any, timeout: float | None) -> None:
        try:
            await self._line.put(item, timeout)
        except TimeoutError:
            raise Full(_late("room", timeout)) from None

    async def get(self, timeout: float | None, taking: list[Any] | None = None) -> Any:
        """The next item.

        `taking`: a ref of the getter's, whose value is whether it took what it was given. Where it
        did not, or its process ended before it said `took`, the item stays in the queue.
        """
        word = taking[0] if taking else None
        taken = None if word is None else asyncio.ensure_future(_word_of(word))
        try:
            item = await self._next(timeout, taken)
        except BaseException:
            if taken is not None:
                taken.cancel()
            raise
        if word is not None and taken is not None:
            ticket = word.hex()
            self._given[ticket] = _Given(item, taken)
            taken.add_done_callback(lambda _: self._settle(ticket))
        return item

    async def _next(self, timeout: float | None, left: asyncio.Future[Any] | None) -> Any:
        waits = asyncio.ensure_future(self._line.get(timeout))
        try:
            await asyncio.wait(
                {waits, left} if left else {waits}, return_when=asyncio.FIRST_COMPLETED
            )
        except BaseException:  # the call was cancelled
            self._withdraw(waits)
            raise
        if not waits.done():
            self._withdraw(waits)
            raise Empty("whoever asked for an item has left")
        try:
            return waits.result()
        except TimeoutError:
            raise Empty(_late("item", timeout)) from None

    def took(self, ticket: str) -> None:
        """The getter has its item, and is not waiting any more when it has this answer."""
        given = self._given.get(ticket)
        if given is not None:
            given.took = True

    def get_ready(self) -> list[Any]:
        """The next item, or nothing, where there is none."""
        return self._line.take(min(1, len(self._line)))

    def put_nowait(self, items: list[Any]) -> None:
        free = self._line.free
        if free is not None and len(items) > free:
            raise Full(
                f"no room: {len(self._line)} of {self._maxsize} items are there, and {len(items)} "
                "more were put"
            )
        self._line.add(items)

    def get_nowait(self, count: int) -> list[Any]:
        if count > len(self._line):
            raise Empty(f"items asked for: {count}, there: {len(self._line)}")
        return self._line.take(count)

    def _withdraw(self, waits: asyncio.Future[Any]) -> None:
        if not waits.done():
            waits.cancel()
        elif waits.exception() is None:
            self._line.give_back(waits.result())

    def _settle(self, ticket: str) -> None:
        given = self._given.pop(ticket)
        word = None if given.word.cancelled() else given.word.result()
        if not (given.took if word is None else word):
            self._line.give_back(given.item)


@dataclasses.dataclass
class _Given:
    item: Any
    word: asyncio.Future[bool | None]
    took: bool = False


async def _word_of(ref: Any) -> bool | None:
    """Return the getter's answer; None if its process is gone."""
    try:
        return bool(await ref)
    except exceptions.TroupeError:
        return None


class _Taking:
    """Tells the keeper whether a getter took its item: it did where nothing was raised."""

    def __init__(self) -> None:
        self._promise = _calls.Promise()
        self.word = [self._promise.ref]
        self.ticket = self._promise.ref.hex()

    def __enter__(self) -> _Taking:
        return self

    def __exit__(self, raised: type[BaseException] | None, *_: object) -> None:
        self._promise.set_value(raised is None)


class _Turns:
    """The waits of this process at one queue's actor."""

    def __init__(self) -> None:
        self.gets, self.puts = Turns(), Turns()


_turns: weakref.WeakValueDictionary[str, _Turns] = weakref.WeakValueDictionary()


class Queue:
    """A queue that any process with the object may use; `maxsize` 0 or less: without a limit.

    `actor_options` are those of its actor. Errors are Empty and Full, which are also those of the
    module `queue`.
    """

    def __init__(self, maxsize: int = 0, actor_options: Mapping[str, Any] | None = None) -> None:
        self.maxsize = maxsize
        options = dict(actor_options or {})
        options["max_concurrency"] = _WAITING_MAX  # a call that waits keeps no other one waiting
        self.actor: Any = troupe.remote(_Keeper).options(**options).remote(maxsize)

    def __getstate__(self) -> dict[str, Any]:
        return {"maxsize": self.maxsize, "actor": self.actor}

    @property
    def _keeper(self) -> Any:
        """The queue's actor. ActorDiedError after shutdown()."""
        if self.actor is None:
            raise exceptions.ActorDiedError(
                "this queue was shut down by shutdown(): make a new one"
            )
        return self.actor

    @property
    def _turns(self) -> _Turns:
        """The turns shared by all objects for this queue in this process."""
        mine: _Turns | None = self.__dict__.get("_own_turns")
        if mine is None:
            mine = self.__dict__["_own_turns"] = _turns.setdefault(
                self._keeper._link.actor, _Turns()
            )
        return mine

    def __len__(self) -> int:
        return self.size()

    def size(self) -> int:
        """How many items there are."""
        found: int = troupe.get(self._keeper.qsize.remote())
        return found

    qsize = size

    def empty(self) -> bool:
        """Return True if the queue has no item. Blocks for a request."""
        return self.size() == 0

    def full(self) -> bool:
        """Return True if the queue has no free slot. Blocks for a request."""
        return 0 < self.maxsize <= self.size()

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Adds an item, waiting for room unless not `block`.

        Raises Full, after `timeout` seconds.
        """
        if not block:
            return self.put_nowait(item)
        limit, late = _Limit(timeout), _late("room", timeout)
        try:
            self._turns.puts.take(limit.left)
        except TimeoutError:
            raise Full(late) from None
        try:
            _answer(self._keeper.put.remote(item, limit.left), late)
            return None
        finally:
            self._turns.puts.give()

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Takes an item, waiting for one unless not `block`.

        Raises Empty, after `timeout` seconds.
        """
        if not block:
            return self.get_nowait()
        limit, late = _Limit(timeout), _late("item", timeout)
        if ready := _answer(self._keeper.get_ready.remote()):
            return ready[0]
        try:
            self._turns.gets.take(limit.left)
        except TimeoutError:
            raise Empty(late) from None
        try:
            with _Taking() as taking:
                item = _answer(self._keeper.get.remote(limit.left, taking.word), late)
                _answer(self._keeper.took.remote(taking.ticket))
                return item
        finally:
            self._turns.gets.give()

    async def put_async(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """put(), to be awaited."""
        if not block:
            await _awaited(self._keeper.put_nowait.remote([item]))
            return None
        limit, late = _Limit(timeout), _late("room", timeout)
        try:
            await self._turns.puts.take_async(limit.left)
        except TimeoutError:
            raise Full(late) from None
        try:
            await _awaited(self._keeper.put.remote(item, limit.left), late)
            return None
        finally:
            self._turns.puts.give()

    async def get_async(self, block: bool = True, timeout: float | None = None) -> Any:
        """get(), to be awaited."""
        if not block:
            return (await _awaited(self._keeper.get_nowait.remote(1)))[0]
        limit, late = _Limit(timeout), _late("item", timeout)
        if ready := await _awaited(self._keeper.get_ready.remote()):
            return ready[0]
        try:
            await self._turns.gets.take_async(limit.left)
        except TimeoutError:
            raise Empty(late) from None
        try:
            with _Taking() as taking:
                item = await _awaited(self._keeper.get.remote(limit.left, taking.word), late)
                await _awaited(self._keeper.took.remote(taking.ticket))
                return item
        finally:
            self._turns.gets.give()

    def put_nowait(self, item: Any) -> None:
        """Adds an item, or raises Full."""
        self.put_nowait_batch([item])

    def put_nowait_batch(self, items: Iterable[Any]) -> None:
        """Adds all of them, or raises Full."""
        if isinstance(items, (str, bytes)) or not isinstance(items, Iterable):
            raise TypeError(f"put_nowait_batch() takes several items, not a {type(items).__name__}")
        _answer(self._keeper.put_nowait.remote(list(items)))

    def get_nowait(self) -> Any:
        """Takes an item, or raises Empty."""
        return self.get_nowait_batch(1)[0]

    def get_nowait_batch(self, num_items: int) -> list[Any]:
        """Takes that many, or raises Empty."""
        if not isinstance(num_items, int) or num_items < 0:
            raise TypeError("get_nowait_batch() takes a number of items, 0 or more")
        found: list[Any] = _answer(self._keeper.get_nowait.remote(num_items))
        return found

    def shutdown(self, force: bool = False, grace_period_s: float = 5) -> None:
        """Ends the queue: after the calls made before, `grace_period_s` seconds at most; at once
        with `force`. From then on `actor` is None, and every call of this object raises
        ActorDiedError. Idempotent."""
        actor, self.actor = self.actor, None
        if actor is None:
            return
        if not force:
            try:
                troupe.get(actor.__ray_terminate__.remote(), timeout=grace_period_s)
            except exceptions.ActorDiedError:
                return
            except exceptions.GetTimeoutError:
                pass
        troupe.kill(actor)


def _late(what: str, timeout: float | None) -> str:
    return "" if timeout is None else f"no {what} within {timeout:g} s"


def _answer(ref: Any, late: str = "") -> Any:
    """Return the keeper's answer; Empty and Full are raised without the keeper's traceback, with
    the text `late`."""
    try:
        return troupe.get(ref)
    except (Empty, Full) as error:
        raise _plain(error, late) from None
    except BaseException:
        _withdraw(ref)
        raise


async def _awaited(ref: Any, late: str = "") -> Any:
    try:
        return await ref
    except (Empty, Full) as error:
        raise _plain(error, late) from None
    except BaseException:
        _withdraw(ref)
        raise


def _plain(error: Any, late: str) -> Exception:
    cause: Exception = error.cause
    return type(cause)(late) if late else cause


def _withdraw(ref: Any) -> None:
    """Nobody waits for the answer any more."""
    with contextlib.suppress(exceptions.TroupeError):
        troupe.cancel(ref)


class _Limit:
    """A timeout of the user's, from now on."""

    def __init__(self, timeout: float | None) -> None:
        if timeout is not None and timeout < 0:
            raise ValueError("timeout must be a number of seconds, 0 or more")
        self._end = None if timeout is None else time.monotonic() + timeout

    @property
    def left(self) -> float | None:
        return None if self._end is None else max(0.0, self._end - time.monotonic())
