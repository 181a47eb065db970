"""An actor's process, from ActorBegin to its end: construct, serve, leave."""
from __future__ import annotations

import json
from typing import Any, NoReturn

from troupe import _failures, _leave, _session
from troupe._process_channel import ProcessChannel


class ActorContext:
    """What an actor process knows of itself; `current` is None elsewhere."""

    current: "ActorContext | None" = None

    def __init__(self, begin: dict) -> None:
        self.actor = begin["actor"]
        self.name = begin["name"]
        self.class_name = begin["class_name"]
        self.node = begin["node"]
        self.node_name = begin["node_name"]
        self.gpu_ids = list(begin["gpu_ids"])
        self.group = begin["group"]


def method_names(cls: type) -> list[str]:
    """Names of a class's callable attributes that a handle offers."""
    return [name for name in dir(cls) if not name.startswith("__") and callable(getattr(cls, name, None))]


def run(channel: ProcessChannel, begin: dict, attachment: bytes) -> NoReturn:
    """Lives the actor's life; leaves by os._exit."""
    session = _session.Session.over_process(channel, namespace=begin["namespace_"], launch=begin["launch"],
                                            epoch=begin["epoch"])
    _session.set_current(session)
    ActorContext.current = ActorContext(begin)
    _leave.keep_groups_alive()
    instance = _construct(channel, begin, attachment)
    from troupe import _calls

    server = _calls.listen(begin["socket_path"], channel.control)
    methods = json.dumps(method_names(type(instance))).encode()
    channel.send("ActorReady", {"failed": False, "methods": methods})
    channel.started()
    _calls.serve(server, instance, max(1, begin["max_concurrency"]))
    _leave.leave(0)


def _construct(channel: ProcessChannel, begin: dict, attachment: bytes) -> Any:
    """The instance; a class that cannot be loaded or raises is reported and ends the process."""
    import cloudpickle

    from troupe import _rank

    loaded = False
    try:
        cls, args, kwargs = cloudpickle.loads(_rank.read_payload(begin, attachment))
        loaded = True
        return cls(*args, **kwargs)
    except BaseException as error:
        cause = ""
        if not loaded and isinstance(error, ImportError):
            cause = _failures.explain_import(error, f"the actor class {begin['class_name']}")
        failure = _failures.fields_of(error, cause=cause)
        channel.send("ActorReady", {"failed": True, "failure": failure}, _failures.pickled(error))
        channel.finish()
        _leave.leave(1)
