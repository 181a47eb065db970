"""A process's way to one actor: the channel its calls take, its restarts, its death.

Calls made before the actor is alive wait in the channel, encoded, and leave when it is; nothing is
kept twice. When the actor is started again, calls under way end as the channel says (NotSentError,
MaybeExecutedError), and later ones wait in the next channel; in programs written for Ray those that
may not be made again are refused until it is alive.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

from troupe import exceptions
from troupe._actors import handle_counts, link_state
from troupe._actors.deaths import death_of
from troupe._actors.parameters import Check
from troupe._base import background as _background, calls as _calls, job as _job, words as _words
from troupe._cluster import session as _session
from troupe._typed.per_session import PerSession
from troupe._wire import FailureKind

Bound = Callable[..., Any]


class Caller:
    """Something that keeps a bound call of a link, to be dropped when the link's channel
    changes."""

    __slots__ = ("__weakref__",)

    def unbind(self) -> None:
        """The next call asks the link anew."""
        raise NotImplementedError


class ActorLink:
    """See the module's text. Made by `of_or_new`, one per session and actor."""

    def __init__(
        self,
        session: _session.Session,
        actor: str,
        class_name: str,
        pending_max: int,
        ordered: bool = True,
    ) -> None:
        self.session = session
        self.actor = actor
        self.label = f"actor {class_name}({actor[:8]})"
        self.class_name = class_name
        self.pending_max = pending_max
        self.ordered = ordered
        self._state = link_state.LinkState()
        self._channel: Any = None  # None until the next call, which makes one
        self._alive: dict[str, Any] | None = None  # the head's last word, while that is "alive"
        self._error: exceptions.TroupeError | None = None
        self._silence: exceptions.TroupeError | None = (
            None  # the session has ended: of what is not alive there is no word
        )
        # while its process is being started again: where calls end that do not wait for that
        self._refusing: Any = None
        self._ended: list[
            Any
        ] = []  # channels that lost their connection, with calls that wait for a verdict
        self._callers: weakref.WeakSet[Caller] = weakref.WeakSet()
        self._lock = threading.RLock()
        self._told = threading.Condition(self._lock)  # the head has said something of it
        self._latest = (
            0,
            "",
        )  # the latest of its lives that the head spoke of, and why one before it ended
        self.retried: Any = None  # call retries
        self.late: Any = None  # while it is not asked for: constructor.LateStart
        self._given: Any = None  # the constructor's arguments, kept alive while this link exists
        self._restarts = False
        self._bringing: Any = (
            None  # the channel over which its process, on another host, was given that
        )
        self.is_maker = False  # handles are counted, and this process made the actor
        self.lives = (
            0  # unfinished calls of an actor that this process made; under handle_counts.naming
        )
        self._uncounted = False  # some handle is where it is not counted
        self._unwanted = False  # nobody has a handle: it is to end
        session.board.subscribe("actor", actor, self._on_state, self._on_silence)

    @classmethod
    def of_or_new(
        cls, session: _session.Session, actor: str, class_name: str, pending_max: int, ordered: bool
    ) -> tuple[ActorLink, bool]:
        """The session's link to an actor, and whether it was made just now.

        `ordered`: the actor runs calls in the order they were made, so that none overtakes one
        whose arguments are to come.
        """
        with _session._lock:
            links = LINKS.known(session)
            if links is None:
                links = LINKS.of(session, dict)
                session.on_close(lambda: _end_links(session))
            link = links.get(actor)
            if link is not None:
                return link, False
            link = links[actor] = cls(session, actor, class_name, pending_max, ordered)
            return link, True

    def bind(
        self,
        caller: Caller,
        target: str,
        check: Check | None = None,
        keeps: Any = None,
        *,
        waits: bool = True,
    ) -> Bound:
        """A callable that starts calls of `target`, until `caller.unbind()`; `check` refuses wrong
        ones, `keeps` lives on. Unless it `waits`, a call during a restart of the actor ends as
        unavailable."""
        with self._lock:
            self._callers.add(caller)
            if "returns=*" in target:
                from troupe._actors import streams  # noqa: F401  (what such a call gives)
            channel = self._refusing if not waits and self._refusing is not None else self._open()
            found: Bound = channel.method(target, check, keeps)
            return found

    def keep(self, given: Any, *, restarts: bool) -> None:
        """Holds what the constructor's arguments name until it has run; where it may run again,
        until it never will."""
        self._given, self._restarts = given, restarts

    def suspect(self, error: BaseException) -> None:
        """A call ended with `error` although the actor is not known to be dead: the next one takes
        another channel, which on this host waits for the head's word on the actor, for its process
        is gone."""
        with self._lock:
            if self._alive is None or self._channel is None or self._channel.usable:
                return
            here = _calls.is_here(self._alive["address"])
            self._drop()
            if here:
                self._alive = None
                self._state.suspect()

    def fail(self, error: exceptions.TroupeError) -> None:
        """The actor is dead: what waits and what comes ends with `error`."""
        with self._lock:
            self._state.fail()
            self._error = error
            self._alive = None
            self._admit()
            self._told.notify_all()
            channels, self._ended = [*self._ended, self._bringing, self._channel], []
            self._bringing = None
        for channel in filter(None, channels):
            _calls.fail(channel, error)

    def _open(self) -> Any:
        if self._channel is None:
            self._channel = _calls.channel_later(self.label, self.pending_max, self.ordered)
            if self._error is None and self._alive is None and self._silence is not None:
                self._state.fail()
                self._error = self._silence
            if self._error is not None:
                _calls.fail(self._channel, self._error)
            elif self._alive is not None:
                self._aim(self._alive)
        return self._channel

    def _aim(self, info: dict[str, Any]) -> None:
        channel = self._channel
        _calls.on_lost(channel, info["address"], lambda: self._lost(channel))
        _calls.aim(channel, info["address"], self.session.control)

    def _on_state(self, info: dict[str, Any], attachment: bytes) -> None:
        address = info["address"]
        with self._lock:
            orders = self._state.told(
                info["state"],
                incarnation=address["incarnation"],
                restarts=info["restarts"],
                process=address["process"] if address["pid"] else "",
                gives=self._given is not None,
                restartable=self._restarts,
            )
            for order in orders:
                self._obey(order, info)
            if address["incarnation"] > self._latest[0]:
                self._latest = address["incarnation"], info["failure"]["cause"]
            self._told.notify_all()
        # Run without the lock: callbacks and destructors may run any code.
        if link_state.FREE in orders:
            self._given = self.late = None
        if link_state.END in orders:
            self.end(death_of(info, attachment, self.label))

    def _obey(self, order: str, info: dict[str, Any]) -> None:
        if order == link_state.LOSE_SIGHT:
            error = exceptions.ActorUnavailableError(
                f"{self.label} is out of reach: {info['failure']['cause']}; it may be back, and "
                "what was called may have run"
            )
            error.failure_kind = info["failure"]["kind"]
            self.fail(error)
        elif order == link_state.RENEW:
            self._error = None
            self._drop()
            if self._unwanted:
                _background.later(self._terminate)
        elif order == link_state.BRING:
            self._bring(info["address"])
        elif order == link_state.REFUSE:
            self._refuse(info["restarts"])
        elif order == link_state.RETIRE:
            now = "was" if info["state"] == "alive" else "is being"
            self._retire(f"its process is gone; it {now} started again")
        elif order == link_state.AIM:
            self._alive = info
            self._admit()
            if self._channel is not None:
                self._aim(info)

    def _on_silence(self, error: BaseException) -> None:
        """The session has ended: calls that wait for word of the actor would wait for ever.

        Those to where it is go on.
        """
        with self._lock:
            self._silence = exceptions.ActorUnavailableError(
                f"{self.label}: {error}; there is no word of it any more"
            )
            if self._alive is None and self._error is None:
                self.fail(self._silence)

    def _refuse(self, restarts: int) -> None:
        """Refuse calls while the actor's process restarts: as with Ray, calls that may not be
        retried end at once until the actor is alive."""
        if self._refusing is not None or not _job.follows_ray():
            return
        self._refusing = _calls.channel_later(self.label, self.pending_max, self.ordered)
        _calls.fail(
            self._refusing,
            exceptions.ActorUnavailableError(
                f"The actor is temporarily unavailable: {self.label} is being started again "
                f"(restart {restarts}), and the call, which has no "
                "max_task_retries, was not sent. Make it again later, or give the actor "
                "max_task_retries, with which its calls wait"
            ),
        )
        self._unbind()

    def _admit(self) -> None:
        """Stop refusing calls: the actor is alive, or dead for good."""
        refusing, self._refusing = self._refusing, None
        if refusing is not None:
            self._unbind()

    def _bring(self, address: dict[str, Any]) -> None:
        """Send the refs inside the constructor's arguments to the actor's process, which waits for
        them on another host."""
        from troupe._actors import constructor

        given = self._given
        if given is None:  # the actor ended just now
            return
        if self._bringing is not None:
            self._bringing.lose("its process is gone; it is being started again")
            self._bringing = None
        try:
            self._bringing = constructor.bring(given, address, self.label, self.session.control)
        except exceptions.ActorUnavailableError:
            return  # the process has ended meanwhile; the head will say so

    def end(self, error: exceptions.TroupeError) -> None:
        """End the link for good: calls end with `error`, the session forgets it, and handles hold
        no connection."""
        self.fail(error)
        self._given = None
        with self._lock:
            self._drop()
        self.forget()

    def kill(self, *, no_restart: bool = True) -> None:
        """Ends the actor at once; unless it may be started again, calls from now on fail too."""
        if self.late is not None:
            if self.late.stop():
                return self.end(
                    exceptions.ActorDiedError(
                        f"{self.label} was killed by troupe.kill before it was started"
                    )
                )
            self.late.wait()
        self.session.request("KillActor", {"actor": self.actor, "no_restart": no_restart})
        if no_restart:  # a call made after this must not slip in before the process is gone
            words = _words.current.of_death({"kind": FailureKind.KILL_REQUESTED}, raised=False)
            self.fail(exceptions.ActorDiedError(f"{words}{self.label} was killed by troupe.kill"))
        return None

    def forget(self) -> None:
        """The session keeps nothing of it."""
        links = LINKS.of(self.session, dict)
        with _session._lock:
            if links.get(self.actor) is self:
                del links[self.actor]
        self.session.board.forget("actor", self.actor)

    def uncount(self) -> None:
        """Somebody has, or is given, a handle that is not counted: the actor is wanted from now
        on."""
        if self._uncounted or self.dead or self.session.closed or self.session.pid != os.getpid():
            return
        if not self.is_maker:  # only the maker reports that nobody has a handle
            try:
                self.session.request("WatchActor", {"actor": self.actor, "uncounted": True})
            except exceptions.TroupeError:
                return
        self._uncounted = True

    def busy(self, then: Callable[[], None]) -> bool:
        """Return True if a call of this process waits for its answer; `then` runs when it may be
        time to look again."""
        late = self.late
        if late is not None and late.then(then):
            return True
        with self._lock:
            channel = self._channel
        return channel is not None and channel.when_idle(then)

    def life_over(self) -> None:
        """Nobody has a handle any more of those that one life counts."""
        with handle_counts.naming:
            self.lives -= 1
        self.unwanted()

    def unwanted(self) -> None:
        """With the last life: unless somebody has a handle that is not counted the actor ends."""
        with handle_counts.naming:
            if self.lives or self._uncounted or self.dead or self.session.closed:
                return
            try:
                _, update, _ = self.session.request(
                    "KillActor", {"actor": self.actor, "unwanted": True}
                )
            except exceptions.GetTimeoutError:
                return _background.later(self.unwanted)
            except exceptions.TroupeError:
                return  # the actor or this session is gone
            self._unwanted = update["info"]["unwanted"]
        if self._unwanted:
            self._terminate()

    def _terminate(self) -> None:
        """Ask the actor, if alive, to end itself after the calls it already has."""
        if self.dead or self._state.out_of_reach or self.session.closed:
            return
        try:
            with self._lock:
                ended = self._open().call("__ray_terminate__", handle_counts.UNWANTED)
        except exceptions.PendingCallsLimitExceeded:  # only for handles that are not counted
            if not self.busy(lambda: _background.later(self._terminate)):
                _background.later(self._terminate)
            return
        ended.future().add_done_callback(lambda future: self._terminated(future.exception()))

    def _terminated(self, error: BaseException | None) -> None:
        if (
            isinstance(error, exceptions.ActorUnavailableError) and not self.dead
        ):  # the process was restarted or disconnected
            self.suspect(error)
            _background.later(self._terminate)

    def address(self) -> dict[str, Any] | None:
        """Return the actor's address as last reported by the head; None if it is not alive."""
        with self._lock:
            return None if self._alive is None else self._alive["address"]

    def end_of(self, incarnation: int, within_s: float) -> str | None:
        """Why that life of it is over, or out of reach.

        Blocks until the head has said so; None: it did not within so many seconds.
        """
        with self._lock:
            self._told.wait_for(
                lambda: self._error is not None or self._latest[0] > incarnation, within_s
            )
            if self._error is not None:
                return str(self._error)
            latest, cause = self._latest
        return (
            f"its process ended{f' ({cause})' if cause else ''}, and the actor was started again "
            "without them"
            if latest > incarnation
            else None
        )

    @property
    def dead(self) -> bool:
        """True if the actor is known to have ended."""
        return self._error is not None and not self._state.out_of_reach

    def _retire(self, why: str) -> None:
        """The process is gone: calls under way end, later ones take another channel."""
        self._alive = None
        channels, self._ended = [*self._ended, self._drop()], []
        for channel in channels:
            if channel is not None:
                channel.lose(why)

    def _drop(self) -> Any:
        channel, self._channel = self._channel, None
        self._unbind()
        return channel

    def _unbind(self) -> None:
        for caller in list(self._callers):
            caller.unbind()

    def _lost(self, channel: Any) -> None:
        """The connection to another host ended.

        Calls under way wait for a verdict; later ones dial anew.
        """
        with self._lock:
            self._ended = [each for each in self._ended if each.outstanding]
            self._ended.append(channel)
            if self._channel is channel:
                self._drop()


LINKS: PerSession[dict[str, ActorLink]] = PerSession("actor links")


def _end_links(session: _session.Session) -> None:
    """The session was shut down here: calls that wait and calls to come end at once, not after a
    grace."""
    for link in list(LINKS.of(session, dict).values()):
        link.fail(
            exceptions.ActorUnavailableError(
                "troupe.shutdown() was called in this process, and the handle belongs to the "
                "session that it ended"
            )
        )
