"""An actor's process, from ActorBegin to its end: construct, serve, leave."""

from __future__ import annotations

import inspect
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from troupe import exceptions
from troupe._actors.handle_counts import UNWANTED
from troupe._actors.method_options import Traits
from troupe._base import callbacks as _callbacks
from troupe._base.checks import EXIT_GRACE_S
from troupe._base.context import ActorContext
from troupe._cluster import session as _session
from troupe._code import failures, runtime_env
from troupe._process import exit as _leave, finish, process_groups, rank, stopping
from troupe._process.channel import ProcessChannel
from troupe._tracing import record

ASYNC_CONCURRENCY = 1000
REPR_CHARS_MAX = 256


def run(channel: ProcessChannel, begin: dict[str, Any], attachment: bytes) -> NoReturn:
    """Lives the actor's life; leaves by os._exit."""
    session = _session.Session.over_process(channel, launch=begin["launch"], epoch=begin["epoch"])
    _session.set_current(session)
    ActorContext.current = ActorContext(begin, Traits())
    process_groups.prepare()
    stopping.install()
    rank.track(session, {**begin, "rank": None, "local_rank": None})
    with record.span(record.Kind.PHASE, f"construct {begin['class_name']}"):
        living, traits, running, loop = _construct(channel, begin, attachment)
    ActorContext.current.traits = traits
    from troupe._base import calls as _calls

    server = _calls.listen(begin["socket_path"], channel.control)
    channel.send("ActorReady", {"failed": False, "repr_name": _repr_of(living[0])})
    channel.started()
    left = _calls.serve(
        server,
        living[0],
        find=lambda name, returns=None: find(living[0], traits, name, returns),
        groups=running["groups"],
        max_concurrency=running["max_concurrency"] or (1 if loop is None else ASYNC_CONCURRENCY),
        loop=loop,
    )
    finish.let_go_of_all(living)
    if left is not None and left.code:
        _crash(left)
    del left  # frames hold the instance
    _end(channel, living, loop)


def _repr_of(instance: Any) -> str:
    """How an instance of a class with a `__repr__` of its own is shown, in one line; "" of others,
    and where that raises."""
    cls: Any = type(instance)
    if cls.__repr__ is object.__repr__:
        return ""
    try:
        text = str(repr(instance))
    except Exception as error:
        _callbacks.report(
            "repr() of the actor "
            f"{ActorContext.current.class_name if ActorContext.current else ''}",
            error,
        )
        return ""
    line = text.partition("\n")[0]
    return line if len(line) <= REPR_CHARS_MAX else line[: REPR_CHARS_MAX - 3] + "..."


def _brought(
    channel: ProcessChannel, begin: dict[str, Any], loaded: Callable[[], tuple[Any, ...]]
) -> tuple[Any, ...] | None:
    """Return `loaded()` once the maker, on another host, has brought the refs inside the
    constructor's arguments; None if it did not come within BRINGING_S."""
    from troupe._actors import constructor
    from troupe._base import calls as _calls

    brought = constructor.Brought(loaded)
    server = _calls.listen(begin["socket_path"], channel.control)
    enough = threading.Timer(constructor.BRINGING_S, server.stop)
    enough.daemon = True
    enough.start()
    channel.send("ActorReady", {"failed": False, "awaits": True})
    _calls.serve(server, brought)
    enough.cancel()
    # The thread has the server, which must be closed before the next one listens there
    enough.join()
    return brought.given()


def find(instance: Any, traits: Traits, name: str, returns: int | None = None) -> Any:
    """Return the callable of method `name`, and its concurrency group.

    Of one that asks for `returns` values and for their tensors to stay here, what sees to that.
    Raises AttributeError.
    """
    found = _find(instance, traits, name)
    if returns is None:
        return found
    from troupe._actors.tensors import methods

    method, group = found if isinstance(found, tuple) else (found, None)
    return methods.keeping(method, name, returns), group


def _find(instance: Any, traits: Traits, name: str) -> Any:
    own = getattr(type(instance), "__troupe_find__", None)
    if own is not None:
        return own(instance, name)
    if name == "__ray_ready__":
        return lambda: True
    if name == "__ray_call__":
        return lambda function, /, *args, **kwargs: function(instance, *args, **kwargs)
    if name == "__ray_terminate__":
        return _terminate_later if traits.is_async else _terminate
    options = traits.options_of(name)
    return _method_of(instance, name), options.concurrency_group if options is not None else None


def _method_of(instance: Any, name: str) -> Any:
    """The method of that name as its class has it: an attribute of the instance does not hide
    it."""
    kind = type(instance)
    for each in kind.__mro__:
        if name in vars(each):
            found = vars(each)[name]
            bind = getattr(type(found), "__get__", None)
            return found if bind is None else bind(found, instance, kind)
    return getattr(instance, name)


def _terminate(why: str = "") -> None:
    """Ends the actor; one that nobody has a handle of, once nobody has a ref of a tensor that it
    keeps."""
    if why == UNWANTED:
        _tensors_let_go()
    raise exceptions.ActorExit(0)


async def _terminate_later(why: str = "") -> None:
    """End the process from an event loop, which goes on meanwhile."""
    if why == UNWANTED:
        import asyncio

        await asyncio.get_running_loop().run_in_executor(None, _tensors_let_go)
    _terminate()


def _tensors_let_go() -> None:
    server = sys.modules.get("troupe._actors.tensors.server")
    table = None if server is None else server.table_or_none()
    if table is not None:
        table.wait_until_taken()


def _crash(left: SystemExit) -> NoReturn:
    """A method called sys.exit() with another code than 0: that is the process's, and its stderr
    says where it was."""
    if stopping.signal_of(left):
        stopping.leave_by(stopping.signal_of(left))
    assert left.__traceback__ is not None
    traceback.print_exception(
        left.with_traceback(left.__traceback__.tb_next)
    )  # not where the runtime caught it
    _leave.leave(left.code & 0xFF or 1 if isinstance(left.code, int) else 1)


def _end(channel: ProcessChannel, living: list[Any], loop: Any) -> NoReturn:
    """A method ended the actor: its own last word, then the process, whose worker is told that it
    is meant: it is not started again."""

    def is_meant() -> None:
        channel.send("RankResult", {"outcome": "succeeded"})
        channel.finish()

    _leave.last_word = is_meant
    try:
        hook = getattr(living[0], "__ray_shutdown__", None)
        said = hook() if callable(hook) else None
        if loop is not None and hasattr(said, "__await__"):
            loop.run_until_complete(said)
        del hook, said
    except BaseException:
        traceback.print_exc()
    finally:
        _leave.leave(0)


def _made(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any], loop: Any) -> Any:
    """An instance; an `async def __init__` runs on the loop, to its end."""
    if not inspect.iscoroutinefunction(cls.__init__):
        return cls(*args, **kwargs)
    instance = (
        cls.__new__(cls) if cls.__new__ is object.__new__ else cls.__new__(cls, *args, **kwargs)
    )
    loop.run_until_complete(instance.__init__(*args, **kwargs))
    return instance


def _construct(
    channel: ProcessChannel, begin: dict[str, Any], attachment: bytes
) -> tuple[list[Any], Traits, dict[str, Any], Any]:
    """The instance, as the only one of a list that nothing else holds, and what goes with it; a
    class that cannot be loaded or raises is reported and ends the process."""
    from troupe._actors import constructor

    loaded = False
    try:
        runtime_env.enter(_session.current())
        cls, args, kwargs, traits, running = constructor.load(
            rank.read_payload(begin, attachment), lambda loaded: _brought(channel, begin, loaded)
        )
        loaded = True
        context = ActorContext.current
        assert context is not None, "set before the instance is made"
        context.group = running["group"]
        context.captures = running["captures"]
        context.resources = running["resources"]
        grace = running.get("exit_grace")
        _leave.exit_grace_s = EXIT_GRACE_S if grace is None else float(grace)
        loop = None
        if traits.is_async:
            import asyncio

            from troupe._process import event_loop

            loop = event_loop.new()
            asyncio.set_event_loop(loop)  # for a constructor that asks for it
        return [_made(cls, args, kwargs, loop)], traits, running, loop
    except BaseException as error:
        cause = ""
        if not loaded and isinstance(error, ImportError):
            cause = failures.explain_import(error, f"the actor class {begin['class_name']}")
        failure = failures.fields_of(error, cause=cause)
        channel.send("ActorReady", {"failed": True, "failure": failure}, failures.pickled(error))
        channel.finish()
        _leave.leave(1)
