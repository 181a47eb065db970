"""A rank of a launch, from RankBegin to the end of its process.

Distributed mode: load the function, report RankPrepared, wait for RankRun, run, send RankResult,
wait until it may leave, for its peers may still be connected to it. Driver mode: rank 0 is in
`_process.driver`; the others serve calls here until ProcessEnd.
"""

from __future__ import annotations

import importlib.util
import io
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from troupe._base import rendezvous as _rendezvous
from troupe._base.after_import import after_import
from troupe._cluster import home, session as _session
from troupe._code import failures, runtime_env, user_main
from troupe._process import (
    exit as _leave,
    finish,
    group_epochs,
    notes,
    process_groups,
    stopping,
    torch_backend,
)
from troupe._process.channel import ProcessChannel
from troupe._tracing import record
from troupe._wire import FailureKind
from troupe.launch import _context

if TYPE_CHECKING:
    from troupe.launch._context import LaunchContext

RESULT_INLINE_BYTES_MAX = 8 << 20
RESULT_BYTES_MAX = 256 << 20
_TRACKER = "TROUPE_TRACKER"  # troupe._tracking.rule, which is loaded where it is set
_LAST_WORDS_BYTES = 4096


def read_payload(begin: dict[str, Any], attachment: bytes) -> bytes:
    """The pickled function: the attachment, or the file a large one was put into."""
    if not begin["payload_path"]:
        return attachment
    with open(begin["payload_path"], "rb") as file:
        return file.read()


def load_function(
    channel: ProcessChannel, begin: dict[str, Any], attachment: bytes, session: _session.Session
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """(function, args, kwargs) of a launch's payload; of a program, what runs it.

    Raises what unpickling and finding it raise.
    """
    from troupe._code.program import Program, job_of_json

    runtime_env.enter(session)
    payload = read_payload(begin, attachment)
    if payload.startswith(b"{"):
        function, args, kwargs = job_of_json(payload), (), {}
    else:
        function, args, kwargs = user_main.loads(payload, alone=True)
    if isinstance(function, Program):
        from troupe._process import program

        return program.prepared(function, channel, begin, session), args, kwargs
    return function, args, kwargs


def run(channel: ProcessChannel, begin: dict[str, Any], attachment: bytes) -> NoReturn:
    """Lives the rank's life, unless it is the driver's (`_process.driver`); leaves by os._exit."""
    context = enter(begin)
    if begin["mode"] == "driver":
        _serve(channel, begin, context)
    group_epochs.begin(
        channel.send, begin["life"], begin["hang_ms"] / 1000, begin["rank"], begin["world_size"]
    )
    session = _session.Session.over_process(channel, launch=begin["launch"], epoch=begin["epoch"])
    _session.set_current(session)
    track(session, begin)
    loaded = prepare(channel, begin, attachment, session)
    finish.let_go_of(loaded[0])
    start(channel, context)
    outcome = call(begin, *loaded)
    del loaded
    send_result(channel, begin, outcome)


def enter(begin: dict[str, Any]) -> Any:
    """First steps of every rank; its context."""
    process_groups.prepare()
    _leave.exit_grace_s = begin["exit_grace_ms"] / 1000
    stopping.install()
    return _context.enter(begin)


def track(session: _session.Session, begin: dict[str, Any]) -> None:
    """Send this process's MLflow logging to the launch's run, if it has one: of a rank, or with
    `rank` None of processes that ranks have started. Where it has none, processes that make a
    database of their own in one directory do so one after the other, those that a rank starts or
    becomes among them.
    """
    if _TRACKER in os.environ:
        from troupe._tracking import rank

        rank.begin(session, begin)
    else:
        after_import({"mlflow": _take_turns})
        if begin["rank"] is not None and _is_there("mlflow"):
            os.environ["TROUPE_MLFLOW_LOCKS"] = str(home.home())  # turns.BELOW


def _is_there(name: str) -> bool:
    """Return whether a module of that name can be imported; nothing is imported for it."""
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:  # already imported, without a spec
        return True


def _take_turns(mlflow: Any) -> None:
    from troupe._tracking import turns

    turns.take_turns(mlflow, str(home.home()))


def prepare(
    channel: ProcessChannel, begin: dict[str, Any], attachment: bytes, session: _session.Session
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Loads the function and reports it; a function that cannot be loaded ends the process."""
    with record.span(record.Kind.PHASE, "load the function"):
        loaded = _or_end(channel, begin, lambda: load_function(channel, begin, attachment, session))
    channel.send("RankPrepared", {"serving": False})
    found: tuple[Any, tuple[Any, ...], dict[str, Any]] = loaded
    return found


def _or_end(channel: ProcessChannel, begin: dict[str, Any], step: Callable[[], Any]) -> Any:
    """Return `step()`; an exception is reported, and ends the process."""
    try:
        return step()
    except BaseException as error:
        cause = ""
        if isinstance(error, ImportError):
            cause = failures.explain_import(
                error, f"the function {begin['name'] or 'of the launch'}"
            )
        failure = failures.fields_of(error, rank=begin["rank"], cause=cause)
        channel.send("RankPrepared", {"failure": failure}, failures.pickled(error))
        channel.finish()
        _leave.leave(1)


def start(channel: ProcessChannel, context: LaunchContext) -> dict[str, Any]:
    """Waits until all ranks are there; sets the variables known only now."""
    with record.span(record.Kind.PHASE, "wait for all ranks"):
        roster = channel.wait_run()
    os.environ.update({item["name"]: item["value"] for item in roster["env"]})
    _rendezvous.enter_rank(
        alone=context.world_size == 1 or context.is_driver,
        meets=group_epochs.meets,
        met=group_epochs.met,
    )
    torch_backend.enter_rank(roster["group_secret"])
    context.published(roster)
    return roster


class Ended:
    """How user code ended: outcome, exit code, the value or exception pickled, and the Failure."""

    def __init__(
        self,
        value: bytes = b"",
        failure: dict[str, Any] | None = None,
        exit_code: int = 0,
        *,
        stopped: bool = False,
    ) -> None:
        self.outcome = "cancelled" if stopped else "failed" if failure else "succeeded"
        self.value = value
        self.failure = failure or {}
        self.exit_code = exit_code


def call(
    begin: dict[str, Any], function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Ended:
    """Runs user code and says how it ended; nothing it raises escapes."""
    rank = begin["rank"]
    try:
        try:
            with record.span(record.Kind.PHASE, f"run {begin['name']}"):
                value = function(*args, **kwargs)
        finally:
            stopping.finished()
            _show_last_words()
    except BaseException as raised:
        error = stopping.verdict_on(raised)
        if error is None:
            return _stopped(rank)
        if isinstance(error, SystemExit):
            return _exited(rank, error)
        notes.add(begin, error)
        failure = failures.fields_of(error, rank=rank)
        return Ended(failures.pickled(error), failure, 1)
    if stopping.told() is not None:
        return _stopped(rank)
    return _pack(rank, value)


def _stopped(rank: int) -> Ended:
    told = stopping.told() or {}
    code = told.get("exit_code") or 1
    failure = {
        "rank": rank,
        "kind": FailureKind.STOPPED,
        "cause": told.get("reason", ""),
        "exit_code": code,
    }
    return Ended(b"", failure, code, stopped=True)


def _show_last_words() -> None:
    """Show the last output of the actors that the code made, before the rank ends."""
    session = _session.current_or_none()
    if session is not None and session.outputs is not None:
        session.outputs.close()


def _exited(rank: int, error: SystemExit) -> Ended:
    """sys.exit(0) is success with None; any other code is failure with that code; a signal from
    elsewhere is one too."""
    number = stopping.signal_of(error)
    if number:
        failure = failures.fields_of(error, rank=rank, exit_code=128 + number)
        failure.update(
            kind=FailureKind.KILLED,
            signal=number,
            exception_type="",
            traceback="",
            cause=f"{signal.Signals(number).name} from elsewhere",
        )
        return Ended(b"", failure, 128 + number)
    if error.code is None or error.code == 0:
        return _pack(rank, None)
    code = error.code
    program = stopping.program_of(error)
    if program is not None and isinstance(code, int):
        return Ended(b"", _of_program(error, rank, code, *program), code)
    if not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    code = code & 0xFF or 1
    failure = failures.fields_of(
        error, rank=rank, exit_code=code, cause=f"sys.exit({error.code!r})"
    )
    return Ended(failures.pickled(error), failure, code)


def _of_program(error: SystemExit, rank: int, code: int, name: str, number: int) -> dict[str, Any]:
    """The failure of a rank whose program ran beside it: what that printed says more than where
    this process was."""
    how = f"signal {number}" if number else f"exit {code}"
    failure = failures.fields_of(error, rank=rank, exit_code=code)
    failure.update(
        kind=FailureKind.KILLED if number else FailureKind.EXITED,
        signal=number,
        exception_type="",
        traceback="",
        cause=f"{name} ended: {how}",
        log_tail=_last_words(),
    )
    return failure


def _last_words() -> str:
    """The end of what this process, and what it has started, wrote to stderr, where that is a
    file."""
    try:
        with open("/proc/self/fd/2", "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _LAST_WORDS_BYTES))
            return file.read(_LAST_WORDS_BYTES).decode(errors="replace")
    except OSError:
        return ""


def _pack(rank: int, value: Any) -> Ended:
    from troupe._code import capture

    try:
        if isinstance(value, io.IOBase) and not isinstance(value, (io.BytesIO, io.StringIO)):
            raise TypeError(
                "it is an open file"
            )  # cloudpickle would take all contents of a file open for reading text
        data = capture.cloudpickled(value)
        size = len(data)
        if size > RESULT_BYTES_MAX:
            raise ValueError(
                f"the result of rank {rank} ({type(value).__name__}) is {size / 2**20:.0f} MiB "
                f"pickled; the limit is {RESULT_BYTES_MAX >> 20} MiB: write it to a file instead"
            )
        return Ended(data)
    except Exception as error:
        if not isinstance(error, ValueError) or "the limit is" not in str(error):
            part = capture.unpicklable_part("result", value)
            error = TypeError(
                f"the result of rank {rank} ({type(value).__name__}) cannot be pickled: {error}\n  "
                f"of it, {part} stays in the "
                "process that made it: return plain values, of a file what was read from it or its "
                "path"
            )
        return Ended(failures.pickled(error), failures.fields_of(error, rank=rank), 1)


def send_result(channel: ProcessChannel, begin: dict[str, Any], ended: Ended) -> NoReturn:
    """Sends RankResult, a large value by file; leaves when it may."""
    fields: dict[str, Any] = {"outcome": ended.outcome, "failure": ended.failure}
    data = ended.value
    if len(data) > RESULT_INLINE_BYTES_MAX:
        with open(begin["result_path"], "wb") as file:
            file.write(data)
        fields["in_file"], data = True, b""
    _leave.flush()
    channel.send("RankResult", fields, data)
    channel.released()
    _leave.leave(ended.exit_code)


def _serve(channel: ProcessChannel, begin: dict[str, Any], context: LaunchContext) -> NoReturn:
    """A rank that is not the driver: runs what the driver sends until the marker ends it."""
    from troupe._base import calls as _calls
    from troupe.launch._group import RankService

    server = _calls.listen(begin["socket_path"], channel.control)
    if runtime_env.VARIABLE in os.environ:
        session = _session.Session.over_process(
            channel, launch=begin["launch"], epoch=begin["epoch"]
        )
        _session.set_current(session)
        _or_end(channel, begin, lambda: runtime_env.enter(session))
        track(session, begin)
    channel.when_released(server.stop)
    channel.send("RankPrepared", {"serving": True})
    start(channel, context)
    _calls.serve(server, RankService(context))
    stopping.finished()
    _leave.leave(0)
