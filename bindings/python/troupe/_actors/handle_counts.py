"""Reference counts of actor handles: an actor lives while handles to it exist anywhere.

An actor that is not detached has a life: an object of the process that made it (`native.new_life`).
Every handle that is counted holds it, and so does whatever holds the handle: a value, a call's
arguments, what a function or class captures. On another host an object of the process that got the
handle stands for it (`actors/bulk/remote_refs.h`). When nobody holds it any more, the maker tells
the head, and asks the actor to end itself. Where its maker finds it again by its name
(get_if_exists), that handle has a life of its own, of which there may be several then. `naming` is
held over both, so that no actor is found that this process is about to give up; of other processes'
the head knows which one was found.

A process lets go of a life when its own calls to the actor have their answers, so that a handle may
be dropped behind a call. What is let go of is only queued where that happens, which may be the
garbage collector in any thread, for the thread in the background (`_base.background`), which begins
with the first life.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from troupe._base import background as _background
from troupe._base.bridge import native

if TYPE_CHECKING:
    from troupe._actors.link import ActorLink

UNWANTED = "unwanted"
"""Why an actor is told to end: nobody has a handle of it."""
naming = threading.RLock()
_of_this_process = object()


class Life:
    """A hold on a life: of a handle, its methods, and calls that may be made again."""

    __slots__ = ("_link", "_process", "_ref")

    def __init__(self, link: ActorLink, ref: Any) -> None:
        self._link, self._ref, self._process = link, ref, _of_this_process
        _background.begin()

    @classmethod
    def of_new(cls, link: ActorLink) -> Life:
        """The first one, of an actor that this process makes, or has made and found again."""
        with naming:
            link.is_maker = True
            link.lives += 1
        return cls(link, native.new_life())

    @classmethod
    def borrowed(cls, link: ActorLink, names: tuple[Any, ...]) -> Life | None:
        """Return the life of a handle that is being unpickled; None if handles are not counted
        here."""
        ref = native.borrow_life(names)
        return None if ref is None else cls(link, ref)

    def lend(self) -> tuple[Any, ...] | None:
        """Return the names of this life for a handle that is being pickled; None if the receiver
        will not count the handle."""
        return native.lend_life(self._ref) if self._process is _of_this_process else None

    def __del__(self) -> None:
        if (
            self._process is _of_this_process
        ):  # not in a forked child, nor while the interpreter ends
            _background.later(_let_go, (self._link, self._ref))


def _let_go(held: tuple[ActorLink, Any]) -> None:
    link, ref = held
    if link.dead or link.session.closed or link.busy(lambda: _background.later(_let_go, held)):
        return
    if link.is_maker and not native.when_life_over(ref, lambda: _background.later(link.life_over)):
        link.life_over()


def _after_fork() -> None:
    global naming, _of_this_process
    naming, _of_this_process = threading.RLock(), object()


os.register_at_fork(after_in_child=_after_fork)
