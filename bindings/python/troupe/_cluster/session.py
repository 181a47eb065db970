"""A process's session with a cluster: requests to the head, pushes from it.

Two kinds: a driver's own connection (`Session.over_client`), and the control channel of a rank or
actor, whose worker relays (`Session.over_process`). At most one session is the process's current
one (`current`, `set_current`); it belongs to the process that made it, not to its forked children.

A driver's session outlives its head: the native client comes back to a head that was started again
and repeats what was not answered; what the board follows is then asked for anew. See
`Session._resume`. Of a process the worker does the repeating, and says when there is a head that
has forgotten who follows what.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from troupe import exceptions
from troupe._base import callbacks as _callbacks, job as _job
from troupe._cluster.watched_state import Board
from troupe._wire import FailureKind

if TYPE_CHECKING:
    from troupe._cluster.driver_logs import Outputs

REQUEST_TIMEOUT_S = 30.0
_REWATCH = {
    "launch": ("WatchLaunch", {}),
    "actor": ("WatchActor", {}),
    "group": ("GetGroup", {"watch": True}),
}
_SHUT_DOWN = (
    "troupe.shutdown() was called in this process: the session that this belongs to has ended"
)
hearers: dict[str, Callable[[Any, str, dict[str, Any], bytes], None]] = {}
"""By the kinds of other pushes: what takes them, of a room above.

A process that has not loaded it has asked for none, and they are left.
"""
_PUSHES = {
    "LaunchUpdate": ("launch", "launch"),
    "ActorUpdate": ("actor", "actor"),
    "GroupUpdate": ("group", "group"),
}


class Session:
    """Requests may be made from any thread. `board` has what the head pushed."""

    def __init__(self, control: Any, *, namespace: str = "", in_process: bool = False) -> None:
        self.control = control
        self.namespace = namespace
        self.in_process = in_process
        self.board = Board()
        self.pid = os.getpid()
        self.embedded: Any = None  # the embedded cluster this session keeps, if any
        self.guest = False  # in a cluster that ends with the program that made it
        self.address = ""
        self.token_file: str | None = None
        self.launch = ""  # the launch this process belongs to
        self.job = _job.job_of("")  # job id of the program that this process is a part of
        self.epoch = 0
        self.closed = False
        self.returns = 0  # how often it came back to its head
        self.return_timeout = 0.0  # how long it looks for a head that is gone
        self._lost_at = 0.0
        self.closed_here = False  # closed from this side
        self._on_close: list[Any] = []
        self._on_end: list[Any] = []
        self.outputs: Outputs | None = (
            None  # outputs of the actors and tasks that it made, once there are any
        )
        self._on_return: list[Callable[[], None]] = []
        self._before_end: Any = None  # set by a process's channel
        self.kept: dict[Any, Any] = {}  # by PerSession, of the modules that have them
        self.cluster_id = ""
        self.same_host = True  # all nodes were on this host when the session was opened
        self.log_to_driver = True
        self.runtime_env: Mapping[str, Any] | None = None  # argument of init()
        # Argument of init(), or inherited from the program that started this process
        self.infeasible: str | None = None

    @classmethod
    def over_client(
        cls, control: Any, *, namespace: str, address: str = "", return_timeout: float = 0.0
    ) -> Session:
        """A session over a connection of its own; starts the thread that reads pushes."""
        session = cls(control, namespace=namespace)
        session.address, session.return_timeout = address, return_timeout
        threading.Thread(target=session._read, name="troupe-session", daemon=True).start()
        return session

    @classmethod
    def over_process(cls, channel: Any, *, launch: str, epoch: int) -> Session:
        """A session over a process's control channel, whose own thread reads it; in the namespace
        of the program that made it.

        """
        session = cls(channel.control, namespace=_job.inherited_namespace(), in_process=True)
        session.launch, session.epoch, session.job = launch, epoch, _job.job_of(launch)
        channel.on_push(session.push)
        session._before_end = channel.before_end
        return session

    def request(
        self,
        kind: str,
        fields: dict[str, Any] | None = None,
        attachment: bytes = b"",
        timeout: float = REQUEST_TIMEOUT_S,
    ) -> tuple[str, dict[str, Any], bytes]:
        """Sends a request and returns its answer.

        Raises the exception an ErrorReply stands for; GetTimeoutError naming the request after
        `timeout` seconds; ConnectionError when the session ends first.
        """
        if self.closed_here:
            raise exceptions.ConnectionError(_SHUT_DOWN)
        try:
            found: tuple[str, dict[str, Any], bytes] = self.control.request(
                kind, fields or {}, attachment, timeout
            )
            return found
        except exceptions.ConnectionError as error:
            if self.closed_here or not self._obituary():
                raise
            raise exceptions.ConnectionError(f"{error}{self._obituary()}") from None

    def _obituary(self) -> str:
        """Return the known facts about the end of a head that ends with a program; "" for other
        heads."""
        if self.embedded is not None:
            return str(self.embedded.obituary())
        return (
            (
                f"\n  the cluster at {self.address} was made by a program with init(), and ends "
                "with it: to outlive programs, start one "
                "with `troupe start --head`"
            )
            if self.guest
            else ""
        )

    def ask(self, kind: str, fields: dict[str, Any]) -> None:
        """Sends a request and does not wait.

        Its answer is not heard: what follows from it the head tells the board, and the board is
        told of a group that was refused. Other refusals are left alone.

        When as many as may be are unanswered, or the process has no connection of its own, this one
        is waited for.
        """
        if self.closed_here:
            raise exceptions.ConnectionError(_SHUT_DOWN)
        if not self.in_process and self.control.ask(kind, fields):
            return
        try:
            answer, update, attachment = self.request(kind, fields)
        except exceptions.ConnectionError:
            raise
        except exceptions.TroupeError as error:
            self._refused(kind, fields, str(error))
        else:
            if (
                answer in _PUSHES
                # pushes are read by another thread, and one of them may have come before this
                # answer
            ):
                noun, name = _PUSHES[answer]
                self.board.post_reply(noun, update["info"][name], update["info"], attachment)

    def _refused(self, kind: str, fields: dict[str, Any], text: str) -> None:
        if kind == "CreateGroup":
            self.board.post(
                "group",
                fields["group"],
                {"group": fields["group"], "state": "infeasible", "reason": text},
            )

    def push(
        self,
        kind: str,
        fields: dict[str, Any],
        attachment: bytes,
        asked: tuple[str, dict[str, Any], bytes] | None = None,
    ) -> None:
        """Takes a push from the head, a refusal of what was `asked`, or what the native client says
        about the connection."""
        noun = _PUSHES.get(kind)
        if noun is not None:
            info = fields["info"]
            self.board.post(noun[0], info[noun[1]], info, attachment)
        elif kind == "OutputOf":
            from troupe._cluster import driver_logs

            driver_logs.of(self).hear(fields)
        elif kind in hearers:
            hearers[kind](self, kind, fields, attachment)
        elif asked is not None:
            self._refused(asked[0], asked[1], fields["text"])
        elif kind == "ErrorReply" and self.return_timeout:
            self._lost_at = time.monotonic()
            _callbacks.say(
                f"troupe: the head at {self.address} is gone ({fields['text']}); what runs goes "
                "on, waiting up to "
                f"{self.return_timeout:g} s for the head"
            )
        elif kind == "Welcome" and self.return_timeout:
            _callbacks.say(
                f"troupe: the head at {self.address} is back after "
                f"{time.monotonic() - self._lost_at:.1f} s"
            )
            self._resume()
        elif (
            kind == "Welcome" and self.in_process
        ):  # reported by the worker: another head knows this node now
            from troupe._base import background as _background

            _background.begin()
            _background.later(
                self._resume
            )  # this thread hears of the process's end, and does not wait for answers

    def follow(self, noun: str, identity: str, returns: int) -> None:
        """Keeps the board's state of an object current over returns of the session.

        `returns` is `Session.returns` before the request that made the head tell of it.
        """
        self.board.follow(noun, identity)
        # The connection returned between that request's answer and here
        if returns != self.returns:
            self._watch_again(noun, identity)

    def _resume(self) -> None:
        """After a return: the head's watchers were lost with its memory, so all that is followed is
        asked for.

        Answers may overtake pushes that wait behind them; those pushes end in the same state.
        """
        self.returns += 1
        for action in self._on_return:
            _callbacks.run("what was to run at the session's return to its head", action)
        for noun, identity in self.board.followed():
            _callbacks.run(
                f"asking again for the state of {noun} {identity}",
                self._watch_again,
                noun,
                identity,
            )

    def _watch_again(self, noun: str, identity: str) -> None:
        kind, fields = _REWATCH[noun]
        before = self.board.get(noun, identity)
        try:
            _, update, attachment = self.request(kind, {**fields, noun: identity})
        except exceptions.NotFoundError as error:
            known = self.board.get(noun, identity)
            if (
                noun == "actor" and known is not None
            ):  # the creator was answered, and nobody knows the object now
                info = {
                    **known[0],
                    "state": "dead",
                    "failure": {
                        **known[0]["failure"],
                        "kind": FailureKind.UNKNOWN,
                        "cause": str(error),
                    },
                }
                self.board.post(noun, identity, info)
        except (exceptions.ConnectionError, exceptions.GetTimeoutError):
            return  # lost once more: the next return asks again, or the session ends
        else:
            self.board.post_reply(noun, identity, update["info"], attachment, before=before)

    def _read(self) -> None:
        try:
            text = self._read_all()
        except (
            BaseException
        ) as died:  # raised by this thread itself, on which all waits depend: tell everybody
            _callbacks.report("the thread that reads the session with the cluster", died)
            text = (
                "the thread of this process that reads its session with the cluster at "
                f"{self.address} died of {type(died).__name__}"
            )
            self.control.close()
        self.closed = True
        self.board.close(exceptions.ConnectionError(text))
        _callbacks.run_all("what was to run at the end of the session", self._on_end)

    def _read_all(self) -> str:
        """Until the connection's end: in which words."""
        while True:
            try:
                messages = self.control.next_pushes()
            except Exception as ended:
                text = f"the connection to the cluster at {self.address} ended: {ended}"
                break
            for message in messages:
                _callbacks.run(f"what hears of a {message[0]} from the head", self.push, *message)
        if self.closed_here:
            return _SHUT_DOWN
        return text + self._obituary()

    def on_end(self, action: Any) -> None:
        """Runs `action()` on the session's reading thread when the connection ends, from whichever
        side."""
        self._on_end.append(action)
        if self.closed:
            action()

    def on_return(self, action: Callable[[], None]) -> None:
        """Runs `action()` whenever the session has come back to a head that may know nothing of
        it."""
        self._on_return.append(action)

    def before_end(self, action: Callable[[Any], object]) -> None:
        """Runs `action(...)` before the worker's word ends this process, which then has 0.4 s, on
        the thread that reads its channel. Of `over_process` alone."""
        self._before_end(action)

    def on_close(self, action: Any) -> None:
        """Runs `action()` first thing when the session is closed from this side."""
        self._on_close.append(action)

    def close(self) -> None:
        """Ends the session; the cluster ends what belonged to it. Idempotent."""
        if self.closed and not self._on_close:
            return
        self.closed = True
        try:
            self._run_on_close()
        finally:
            self.board.close(exceptions.ConnectionError(_SHUT_DOWN))
            self.closed_here = True
            if not self.in_process:
                self.control.close()

    def _run_on_close(self) -> None:
        while self._on_close:
            try:
                _callbacks.run("what was to run at the session's close", self._on_close.pop())
            finally:
                self._run_on_close()


_current: Session | None = None
_lock = threading.RLock()


refusal = ""
"""Why this process, one of the runtime's own, is in no cluster and starts none; "": it may."""
starter: Callable[[], None] | None = None
"""Where a program needs no init(): what makes a session for the call that finds none.

It says so, blocks, and raises what init() does.
"""


def current() -> Session:
    """The process's session.

    Raises ConnectionError telling how to get one, unless there is a `starter`.
    """
    ensure()
    return started()


def ensure() -> None:
    """Makes a session by `starter`, if there is none."""
    if starter is not None and current_or_none() is None:
        starter()


def started() -> Session:
    """The process's session, for calls that never make one.

    Raises ConnectionError telling how to get one.
    """
    session = current_or_none()
    if session is None:
        check_allowed()
        raise exceptions.ConnectionError(
            "not connected to a cluster: call troupe.init() (an embedded cluster on this machine) "
            "or "
            'troupe.init("host:port") first'
        )
    return session


def check_allowed() -> None:
    """Raise ConnectionError in a process of the runtime's own that belongs to a cluster without
    being in it."""
    if refusal:
        raise exceptions.ConnectionError(refusal)


def is_of_a_cluster() -> bool:
    """Return True in a rank, an actor, a task, and in their forked children: they never start a
    cluster by themselves."""
    return _current is not None and _current.in_process


def current_or_none() -> Session | None:
    """The process's session, or None before init, after shutdown and in a forked child."""
    session = _current
    return None if session is None or session.pid != os.getpid() else session


def address_before_fork() -> str:
    """Return the session address of the process that this one was forked from; "" for others."""
    return _current.address if _current is not None and _current.pid != os.getpid() else ""


def set_current(session: Session | None) -> Session | None:
    """Replaces the process's session; returns the one before."""
    global _current
    with _lock:
        before, _current = current_or_none(), session
        return before
