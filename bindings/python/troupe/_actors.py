"""Actor classes, handles and method calls.

`Counter.remote()` returns a handle at once; the class travels, the head places the actor, its address
comes by push. Calls made before that are kept in order and sent when the actor is there; from then on
they go straight to its process. A handle can be passed to other processes and looked up by name.
"""
from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

from troupe import _actor_options, _calls, _capture, _environment, _session, exceptions
from troupe._identity import new_id

INLINE_BYTES_MAX = 64 << 10
_ATOMS = (type(None), bool, int, float, complex, str, bytes)


class ActorClass:
    """What `@troupe.remote` makes of a class. `remote(...)` creates an actor, `options(...)` changes how."""

    def __init__(self, cls: type, options: Mapping[str, Any]) -> None:
        self._cls = cls
        self._options = _actor_options.check(options)
        self.__name__, self.__qualname__ = cls.__name__, cls.__qualname__
        self.__module__, self.__doc__ = cls.__module__, cls.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"actors of {self.__name__} are created by {self.__name__}.remote(...), not by calling the "
                        "class")

    def __repr__(self) -> str:
        return f"<actor class {self.__name__}>"

    def __reduce__(self) -> tuple:
        return ActorClass, (self._cls, self._options)

    def options(self, **options: Any) -> "ActorClass":
        """The same class with other options for the actors it creates."""
        return ActorClass(self._cls, {**self._options, **options})

    def remote(self, *args: Any, **kwargs: Any) -> "ActorHandle":
        """Creates an actor and returns its handle at once.

        Raises, before anything starts: LaunchError (arguments too large or unpicklable), PlacementError
        (no node can ever hold it), ActorAlreadyExistsError. What the constructor raises comes out of the
        first call, as ActorDiedError that is also of the exception's own type.
        """
        return create(self._cls, args, kwargs, self._options)


def create(cls: type, args: tuple, kwargs: dict, options: Mapping[str, Any]) -> "ActorHandle":
    """See ActorClass.remote."""
    session = _session.current()
    payload = _capture.dumps(cls, resolve_args(args), resolve_kwargs(kwargs), what=f"the actor class {cls.__name__}")
    environment = _environment.build(options.get("runtime_env"),
                                     same_host=bool(session.store.get("same_host", True)))
    spec = _actor_options.spec_of(options, session, cls.__name__, new_id(), environment)
    link = ActorLink.of(session, spec["actor"], cls.__name__)
    if len(payload) > INLINE_BYTES_MAX:
        from troupe import _blobs

        spec["payload"], payload = _blobs.put(session, payload), b""
    try:
        _, update, data = session.request("CreateActor", {"spec": spec}, payload)
    except exceptions.AlreadyExistsError as error:
        raise exceptions.ActorAlreadyExistsError(str(error)) from None
    info = update["info"]
    if info["actor"] != spec["actor"]:  # get_if_exists found another one
        link = ActorLink.of(session, info["actor"], info["class_name"])
    session.board.post_reply("actor", info["actor"], info, data)
    from troupe._actor_host import method_names

    return ActorHandle(link, frozenset(method_names(cls)))


def get_actor(name: str, namespace: str | None = None) -> "ActorHandle":
    """The handle of a named actor. Raises ValueError when there is none of that name alive."""
    session = _session.current()
    where = session.namespace if namespace is None else namespace
    try:
        _, update, _ = session.request("GetNamedActor", {"name": name, "namespace_": where})
    except exceptions.NotFoundError:
        raise ValueError(f"no actor named {name!r} in namespace {where!r}") from None
    info = update["info"]
    if info["state"] == "dead":
        raise ValueError(f"the actor named {name!r} is dead")
    return ActorHandle(watched(session, info["actor"], info["class_name"]), _methods_of(info))


def _methods_of(info: Mapping[str, Any]) -> frozenset[str] | None:
    try:
        return frozenset(json.loads(info["methods"])) if info["methods"] else None
    except ValueError:
        return None


def watched(session: _session.Session, actor: str, class_name: str) -> "ActorLink":
    """The link to an actor somebody else created: asks the head to be told of it, once."""
    link, is_new = ActorLink.of_or_new(session, actor, class_name)
    if is_new:
        try:
            _, update, data = session.request("WatchActor", {"actor": actor})
        except exceptions.NotFoundError as error:
            link.fail(exceptions.ActorDiedError(f"{link.label}: {error}"))
        else:
            session.board.post_reply("actor", actor, update["info"], data)
    return link


class ActorLink:
    """One process's way to one actor: pending calls until it is alive, then a channel, then its death."""

    def __init__(self, session: _session.Session, actor: str, class_name: str) -> None:
        self.session = session
        self.actor = actor
        self.label = f"actor {class_name}({actor[:8]})"
        self.class_name = class_name
        self.channel: Any = None
        self.incarnation = 0
        self._error: exceptions.TroupeError | None = None
        self._alive: dict | None = None     # the head's last word, while that is "alive"
        self._ended: list[Any] = []         # channels that lost their connection, with calls that wait for a verdict
        self._pending: deque[tuple[_calls.Promise, str, Any]] = deque()
        self._lock = threading.RLock()
        session.board.subscribe("actor", actor, self._on_state)

    @classmethod
    def of(cls, session: _session.Session, actor: str, class_name: str) -> "ActorLink":
        """The session's link to an actor, made if there is none."""
        return cls.of_or_new(session, actor, class_name)[0]

    @classmethod
    def of_or_new(cls, session: _session.Session, actor: str, class_name: str) -> tuple["ActorLink", bool]:
        """The same, and whether it was made just now."""
        with _session._lock:
            links = session.store.get("actor_links")
            if links is None:
                links = session.store["actor_links"] = {}
                session.on_close(lambda: _end_links(session))
            link = links.get(actor)
            if link is not None:
                return link, False
            link = links[actor] = cls(session, actor, class_name)
            return link, True

    def call(self, method: str, args: tuple, kwargs: dict) -> Any:
        """Starts a call; a ref of its answer. Never blocks on the actor."""
        channel = self.channel
        if channel is not None:
            return channel.call(method, *args, **kwargs)
        args, kwargs = resolve_args(args), resolve_kwargs(kwargs)
        promise = _calls.Promise()
        with self._lock:
            if self.channel is None and self._error is None and self._alive is not None:
                self._connect(self._alive)  # the connection to its host was lost: try anew
            if self.channel is not None:
                return self.channel.call(method, *args, **kwargs)
            if self._error is not None:
                promise.set_error(self._error)
            else:
                self._pending.append((promise, method, _frozen(args, kwargs)))
        return promise.ref

    def fail(self, error: exceptions.TroupeError) -> None:
        """The actor is dead: what waits and what comes ends with `error`."""
        with self._lock:
            self._error = error
            channels, self._ended = self._ended, []
            if self.channel is not None:
                channels.append(self.channel)
            self.channel = None
            pending, self._pending = self._pending, deque()
        for channel in channels:
            _calls.fail(channel, error)
        for promise, _, _ in pending:
            promise.set_error(error)

    def _on_state(self, info: dict, attachment: bytes) -> None:
        if info["state"] == "alive":
            self._alive = info
            self._connect(info)
        elif info["state"] == "dead":
            self.fail(death_of(info, attachment, self.label))
        else:
            with self._lock:
                self.channel = self._alive = None  # being started again

    def _connect(self, info: dict) -> None:
        with self._lock:
            incarnation = info["address"]["incarnation"]
            if self._error is not None or (self.channel is not None and incarnation <= self.incarnation):
                return
            try:
                channel = _calls.connect(info["address"], self.label, self.session.control)
            except exceptions.TroupeError as error:
                pending, self._pending = self._pending, deque()
                for promise, _, _ in pending:
                    promise.set_error(error)
                return
            self.incarnation = incarnation
            _calls.on_lost(channel, info["address"], lambda: self._lost(channel))
            while self._pending:
                promise, method, frozen = self._pending.popleft()
                args, kwargs = _thawed(frozen)
                try:
                    promise.follow(channel.call(method, *args, **kwargs))
                except (exceptions.TroupeError, TypeError, ValueError) as error:
                    promise.set_error(error)
            self.channel = channel

    def _lost(self, channel: Any) -> None:
        """The connection to another host ended. Calls under way wait for a verdict; later ones dial anew."""
        with self._lock:
            self._ended = [each for each in self._ended if each.outstanding]
            self._ended.append(channel)
            if self.channel is channel:
                self.channel = None


def _end_links(session: _session.Session) -> None:
    """The session was shut down here: calls that wait and calls to come end at once, not after a grace."""
    for link in list(session.store["actor_links"].values()):
        link.fail(exceptions.ActorUnavailableError(
            "troupe.shutdown() was called in this process, and the handle belongs to the session that it ended"))


def _frozen(args: tuple, kwargs: dict) -> Any:
    """Arguments as they are now: what is changed later must not be seen by a call made before."""
    if all(type(value) in _ATOMS for value in (*args, *kwargs.values())):
        return args, kwargs
    import cloudpickle

    return cloudpickle.dumps((args, kwargs), protocol=5)


def _thawed(frozen: Any) -> tuple[tuple, dict]:
    if isinstance(frozen, tuple):
        return frozen
    import cloudpickle

    return cloudpickle.loads(frozen)


def resolve_args(args: tuple) -> tuple:
    """Refs among the arguments become their values, as the receiver expects."""
    if any(type(value) is _calls.Ref for value in args):
        return tuple(_calls.get(value) if type(value) is _calls.Ref else value for value in args)
    return args


def resolve_kwargs(kwargs: dict) -> dict:
    """The same for keyword arguments."""
    if any(type(value) is _calls.Ref for value in kwargs.values()):
        return {name: _calls.get(value) if type(value) is _calls.Ref else value for name, value in kwargs.items()}
    return kwargs


def death_of(info: dict, attachment: bytes, label: str) -> exceptions.TroupeError:
    """The error of a dead actor: its cause, and where its constructor raised, that exception's type."""
    failure = info["failure"]
    cause = _loaded(attachment)
    text = f"{label} is dead: {failure['cause'] or 'its process is gone'}"
    if failure["node_name"]:
        text += f" (on {failure['node_name']}, pid {failure['pid']})"
    if failure["traceback"]:
        text += "\n  " + "\n  ".join(failure["traceback"].rstrip().splitlines()[-30:])
    elif failure["log_tail"]:
        text += "\n  last lines of its stderr:\n    " + "\n    ".join(
            failure["log_tail"].rstrip().splitlines()[-10:])
    return exceptions.with_type_of(exceptions.ActorDiedError, cause, text, actor_id=info["actor"])


def _loaded(attachment: bytes) -> BaseException | None:
    if not attachment:
        return None
    import cloudpickle

    try:
        error = cloudpickle.loads(attachment)
    except Exception:  # its class is not importable here; the text says what happened
        return None
    return error if isinstance(error, BaseException) else None


class ActorMethod:
    """A method of a handle. `remote(...)` calls it and returns a ref of the answer."""

    __slots__ = ("_link", "_name")

    def __init__(self, link: ActorLink, name: str) -> None:
        self._link = link
        self._name = name

    def remote(self, *args: Any, **kwargs: Any) -> Any:
        """Starts the call; `troupe.get` waits for its answer."""
        return self._link.call(self._name, args, kwargs)

    def options(self, **options: Any) -> "ActorMethod":
        """Ray's per-call options; those that change nothing here are accepted."""
        unknown = set(options) - {"num_returns", "name", "concurrency_group", "max_task_retries"}
        if unknown or options.get("num_returns", 1) != 1:
            raise ValueError(f"method options {sorted(unknown) or ['num_returns']} are not supported")
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"actor methods are called by .{self._name}.remote(...)")


class ActorHandle:
    """A reference to an actor. Can be passed to other processes of the cluster."""

    def __init__(self, link: ActorLink, methods: frozenset[str] | None) -> None:
        self._link = link
        self._methods = methods

    def __getattr__(self, name: str) -> ActorMethod:
        if name.startswith("__") or (self._methods is not None and name not in self._methods):
            raise AttributeError(f"{self._link.label} has no method {name!r}")
        method = ActorMethod(self._link, name)
        self.__dict__[name] = method
        return method

    def __repr__(self) -> str:
        return f"<{self._link.label}>"

    def __hash__(self) -> int:
        return hash(self._link.actor)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ActorHandle) and other._link.actor == self._link.actor

    def __reduce__(self) -> tuple:
        return _handle, (self._link.actor, self._link.class_name, self._methods)

    @property
    def _actor_id(self) -> str:
        return self._link.actor


def _handle(actor: str, class_name: str, methods: frozenset[str] | None) -> ActorHandle:
    """What a handle that travelled becomes in the process it arrives in."""
    return ActorHandle(watched(_session.current(), actor, class_name), methods)


def kill(actor: ActorHandle, *, no_restart: bool = True) -> None:
    """Ends an actor at once; its calls fail with ActorDiedError, those made here from now on too."""
    if not isinstance(actor, ActorHandle):
        raise ValueError(f"kill() takes an actor handle, not {type(actor).__name__}")
    link = actor._link
    link.session.request("KillActor", {"actor": link.actor, "no_restart": no_restart})
    if no_restart:  # a call made after kill() must not slip in before the process is gone
        link.fail(exceptions.ActorDiedError(f"{link.label} was killed by troupe.kill"))
