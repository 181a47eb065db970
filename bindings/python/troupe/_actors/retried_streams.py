"""Streaming methods with `max_task_retries`: a call that was lost, or raised what is a reason to
call it again, is made again from its beginning, and what it gave before is left out.

What was given stays: the taker notices nothing but the time it takes. Items go straight from the
attempt under way to the taker, so that a method is as far ahead of its taker as it is without
retries. One that gives other items when it is called again is no stream to be retried: the n-th
item is the n-th of whichever attempt gave it.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from troupe import exceptions
from troupe._actors import retries as _retries
from troupe._actors.link import ActorLink
from troupe._actors.method_options import MethodOptions
from troupe._actors.streams import NOT_YET, ObjectRefGenerator
from troupe._base import calls as _calls


class RetriedStream(ObjectRefGenerator):
    """The stream of refs that a retried streaming call gives its caller. Dropping it ends the
    method."""

    def __init__(
        self,
        link: ActorLink,
        target: str,
        options: MethodOptions,
        retries: int,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        life: Any,
    ) -> None:
        self._line = _retries.RetriedCalls.of(link)
        self._link, self._target, self._options, self._left, self._life = (
            link,
            target,
            options,
            retries,
            life,
        )
        self._frozen = _retries.Frozen(args, kwargs)
        self._lock = threading.RLock()
        self._promise = _calls.Promise()
        self._call = _retries.OpenCall(self._promise.ref)
        self._taken = 0  # by whoever has this
        self._skipped = 0  # items already taken from the current attempt
        self._ended: Any = (
            None  # the attempt before this one, while it has items that were not taken
        )
        self._attempt = self._made()
        self._watch()

    def _made(self) -> Any:
        args, kwargs = self._frozen.thawed()
        return self._line.bound(self._target)(*args, **kwargs)

    def _watch(self) -> None:
        answer, attempt, mine = (
            self._attempt.answer(),
            weakref.ref(self._attempt),
            weakref.ref(self),
        )
        self._call.attempt = [answer]

        def tell_stream() -> None:
            stream = mine()
            if stream is not None:
                stream._over(attempt())

        _calls.when_done(answer, tell_stream)

    def _over(self, attempt: Any) -> None:
        """An attempt has its answer: another one is made, or that is the call's. Once for each."""
        with self._lock:
            if attempt is not self._attempt or self._promise.ref.done():
                return
            error = exceptions.as_raised(attempt.answer().future().exception())
            if error is not None and self._goes_again(error):
                try:
                    self._attempt = self._made()
                except (exceptions.TroupeError, TypeError, ValueError):
                    pass  # the actor is dead: what ended the attempt is the last item
                else:
                    self._ended = self._ended or attempt
                    return self._watch()
            self._call.close()
            self._promise.set_value(None) if error is None else self._promise.set_error(error)

    def _goes_again(self, error: BaseException) -> bool:
        if self._left == 0 or self._call.cancelled or self._frozen.failed():
            return False
        lost = isinstance(error, _retries.LOST) and not isinstance(error, exceptions.TaskError)
        if not lost and not _retries.retries(self._options, error):
            return False
        self._left -= self._left > 0
        if lost:
            self._link.suspect(error)
        return True

    def answer(self) -> Any:
        """See RefStream."""
        return self._promise.ref

    def front(self) -> Any:
        """See RefStream. Of an attempt that is made again it may be done for what is left out."""
        with self._lock:
            while True:
                source = self._ended or self._attempt
                front = source.front()
                if not front.done():
                    return front
                over = source.answer().done()
                if over:
                    self._over(source)
                elif (
                    front._is_error() or front._is_end()
                ):  # true if the caller sees the item; the answer, which comes next, decides
                    return source.answer()
                ends = over and (front._is_end() or _retries.holds_error(front))
                if ends and self._ended is source:
                    self._ended, self._skipped = None, 0
                elif not ends and self._ended is None and self._skipped < self._taken:
                    source.take()
                    self._skipped += 1
                else:
                    return front

    def take(self) -> Any:
        """See RefStream."""
        taken = self.taken_if_there()
        if taken is NOT_YET:
            raise ValueError("the next item is not there yet")
        return taken

    def taken_if_there(self) -> Any:
        """See ObjectRefGenerator."""
        with self._lock:
            if not self.front().done():
                return NOT_YET
            taken = (self._ended or self._attempt).take()
            if taken is not None:
                self._taken += 1
                self._skipped += 1
            return taken

    def __iter__(self) -> RetriedStream:
        return self

    def __next__(self) -> Any:
        while (taken := self.taken_if_there()) is NOT_YET:
            _calls.wait([self.front()], 1, None)
        if taken is None:
            raise StopIteration
        return taken

    def __repr__(self) -> str:
        return f"<stream of {self._promise.ref!r}>"

    def __del__(self) -> None:
        call = self.__dict__.get("_call")
        if call is not None:
            call.close()
