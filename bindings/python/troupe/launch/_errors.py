"""The one-screen error of a launch that did not succeed."""

from __future__ import annotations

import builtins
import signal
from collections.abc import Callable
from typing import Any

from troupe import exceptions
from troupe._base.identity import short
from troupe._base.tracebacks import with_source
from troupe._cluster.logs import last_lines
from troupe._code import failures
from troupe._typed.per_session import PerSession
from troupe._wire import FailureKind
from troupe.launch import _hints

LOGS_AFTERWARDS: PerSession[Callable[[dict[str, Any]], str]] = PerSession("logs afterwards")
"""Set where the session's cluster ends with this program: a function that returns, of a
LaunchInfo, the command that shows the launch's output afterwards; "" where nothing does."""


def of_launch(
    handle: Any,
    info: dict[str, Any],
    *,
    base: type[exceptions.LaunchError] = exceptions.LaunchError,
    text: str = "",
) -> exceptions.TroupeError:
    """The exception for a terminal launch whose outcome is not success; of a failure by default a
    LaunchError that says `text_of` it."""
    if info["outcome"] == "cancelled":
        return _cancelled(info)
    failure = info["failure"]
    rank = failure["rank"]
    cause = (
        _exception_of(handle, max(rank, 0))
        or failures.out_of_memory(failure)
        or _own_exception(failure)
    )
    return exceptions.with_type_of(
        base,
        cause,
        text or text_of(info, logs=_logs_of(handle, info)),
        launch=info["launch"],
        rank=rank if rank >= 0 else None,
        host=failure["node_name"] or failure["host"],
        exit_code=info["exit_code"] or failure["exit_code"],
        signal=failure["signal"] or None,
        cause=cause if cause is not None else failure["cause"] or info["cause"],
        epoch=info["epoch"],
        log_tail=failure["log_tail"],
    )


def _logs_of(handle: Any, info: dict[str, Any]) -> str | None:
    """Return the command that shows a launch's output once its cluster has ended with this program,
    "" where none does; None: the cluster stays."""
    if handle is None or handle.session.embedded is None:
        return None
    command = LOGS_AFTERWARDS.known(handle.session)
    return "" if command is None else command(info)


def _cancelled(info: dict[str, Any]) -> exceptions.TroupeError:
    if info["failure"]["kind"] == FailureKind.TIMED_OUT:
        places = info["failure"]["traceback"]
        where = f"\nwhere its ranks were:\n{places.rstrip()}" if places else ""
        return exceptions.GetTimeoutError(f"launch {short(info['launch'])} {info['cause']}{where}")
    error = exceptions.LaunchCancelledError(
        f"launch {short(info['launch'])} was cancelled"
        + (f": {info['cause']}" if info["cause"] else "")
    )
    error.launch, error.epoch, error.exit_code = info["launch"], info["epoch"], 130
    return error


def _exception_of(handle: Any, rank: int) -> BaseException | None:
    """Return the exception of a rank, if it travelled and loads here."""
    import cloudpickle

    try:
        data = handle.raw_result(rank)
        error = cloudpickle.loads(data) if data else None
    except Exception:  # the failure's own text says what happened; its pickle is an extra
        return None
    return error if isinstance(error, BaseException) else None


def _own_exception(failure: dict[str, Any]) -> BaseException | None:
    """Return an exception for a rank's failure that has a type of the runtime's own, or one of
    Python's that did not travel."""
    of_kind = failures.BY_KIND.get(failure["kind"])
    if of_kind is not None:
        return of_kind(failure["cause"])
    module, _, name = failure["exception_type"].rpartition(".")
    kind = getattr({exceptions.__name__: exceptions, "builtins": builtins}.get(module), name, None)
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        return None
    words = failure["cause"]
    if module == "builtins":
        before = f"{name}: "  # in what `failures.first_line` makes of one with words
        words = words[len(before) :] if words.startswith(before) else ""
    try:
        return kind(words) if words else kind()
    except TypeError:  # an exception that takes more than a text
        return None


def exit_code_of(error: exceptions.TroupeError) -> int:
    """With which a command ends whose launch ended so: the failing rank's, 128 and its signal, 130
    cancelled, 124 out of time."""
    if isinstance(error, exceptions.LaunchCancelledError):
        return 130
    if isinstance(error, exceptions.LaunchError):
        return 128 + error.signal if error.signal else error.exit_code or 1
    return 124 if isinstance(error, exceptions.GetTimeoutError) else 1


def attempt(info: dict[str, Any]) -> int:
    """Return the number of the attempt: epochs that were preempted are not counted."""
    found: int = info["epoch"] - info["preemptions"]
    return found


def text_of(
    info: dict[str, Any],
    *,
    traceback: bool = True,
    tail: bool = True,
    logs: str | None = None,
) -> str:
    """Cause first, then what helps: traceback or last lines, unless they are said elsewhere, what
    became of the others, where the logs are.

    `logs`: the command that shows them, "" where none does; None: `troupe logs`.
    """
    failure = info["failure"]
    rank, of = failure["rank"], f"(epoch {info['epoch']} of {info['attempts_max']})"
    after = f" after {info['duration_ms'] / 1000:.1f} s" if info["duration_ms"] else ""
    where = (
        f" on {failure['node_name'] or failure['host']}"
        if failure["node_name"] or failure["host"]
        else ""
    )
    cause = failure["cause"] or info["cause"] or "no cause is known"
    who = f"rank {rank}" if rank >= 0 else f"launch {short(info['launch'])}"
    what, said = _what_happened(info, cause)
    is_a_text = what.endswith(".") or "\n" in what  # no sentence goes on behind it
    lines = (
        [f"{who} {what}", f"  {f'{where}{after} {of}'.lstrip()}"]
        if is_a_text
        else [f"{who} {what}{where}{after} {of}"]
    )
    if not said:
        lines.append(f"  {cause}")
    if failure["traceback"] and traceback:
        lines += [
            "  " + line for line in with_source(failure["traceback"]).rstrip().splitlines()[-30:]
        ]
    elif failure["log_tail"] and tail:
        lines.append("  last lines of its stderr:")
        lines += ["    " + line for line in last_lines(failure["log_tail"])]
    lines += _others(info, rank)
    if rank >= 0:
        lines += _what_is_left(info, failure)
        shown = f"troupe logs {short(info['launch'])} --rank {rank}" if logs is None else logs
        lines += [f"  logs: {shown}"] if shown else []
    hint = _hint(info, failure)
    return "\n".join(lines + ([f"  try: {hint}"] if hint else []))


def _others(info: dict[str, Any], rank: int) -> list[str]:
    """Return lines about other ranks: those that failed by themselves, and those that had
    returned."""
    lines, said = [], {_first(info["failure"]["cause"])}
    for each in info["rank_infos"]:
        if each["rank"] == rank:
            continue
        if each["outcome"] == "failed" and each["cause"]:
            if each["kind"] == FailureKind.SETUP_FAILED and _first(each["cause"]) in said:
                continue  # a request that the ranks of a node made together is reported once
            said.add(_first(each["cause"]))
            lines.append(f"  rank {each['rank']} too: {_first(each['cause'])}")
        elif each["outcome"] == "succeeded" and info["mode"] != "driver":
            lines.append(f"  rank {each['rank']} had returned")
    if len(lines) > _OTHERS_MAX:
        lines[_OTHERS_MAX:] = [f"  and {len(lines) - _OTHERS_MAX} more"]
    return lines


def _first(cause: str) -> str:
    return cause.split("\n")[0]


def _what_is_left(info: dict[str, Any], failure: dict[str, Any]) -> list[str]:
    others = info["ranks"] - 1
    left = "nothing of the launch stays on any node"
    if failure["kind"] == FailureKind.NODE_UNREACHABLE:
        left = f"what still runs on {failure['node_name']} ends when that node is heard of again"
    elif not others:
        return []
    stopped = {0: "", 1: "the other rank is stopped; "}.get(
        others, f"the other {others} ranks are stopped; "
    )
    return [f"  {stopped}{left}"]


def _hint(info: dict[str, Any], failure: dict[str, Any]) -> str:
    if failure["kind"] == FailureKind.OUT_OF_MEMORY:
        return (
            "less data held by each rank, fewer DataLoader workers, fewer ranks on one node "
            '(strategy="SPREAD"), or '
            'memory="80GiB" (for what a rank needs), to be placed where there is room'
        )
    if failure["kind"] in _WITH_NODE and info["attempts_max"] == 1:
        return "max_attempts=2, which starts the launch again on the nodes that are left"
    return _hints.of_failure(info, failure)


_OTHERS_MAX = 8
_WITH_NODE = (FailureKind.NODE_LOST, FailureKind.NODE_UNREACHABLE)


def _what_happened(info: dict[str, Any], cause: str) -> tuple[str, bool]:
    """Return what became of the rank, and whether that is all there is to say of the cause."""
    failure = info["failure"]
    kind = failure["kind"]
    if kind == FailureKind.HUNG:
        return "hung", False
    if failure["signal"]:
        try:
            name = signal.Signals(failure["signal"]).name
        except ValueError:
            name = f"signal {failure['signal']}"
        return f"was killed by {name}", False
    if kind in _WITH_NODE:
        return "was lost with its node", False
    if kind == FailureKind.CALLED_EXIT:
        return f"left by {cause}", True
    if failure["exception_type"]:
        return f"raised {cause}", True
    if kind == FailureKind.EXITED and failure["pid"]:  # the process was seen to end
        return f"exited with code {failure['exit_code']}", False
    if kind == FailureKind.RETURNED_EARLY:  # the rank returned on its own while others needed it
        return cause, True
    if kind == FailureKind.NO_VALUE:
        own = [each["cause"] for each in info["rank_infos"] if each["rank"] == failure["rank"]]
        return "exited with code 0 without returning a value", own == [cause]
    return f"failed: {cause}", True


def again(info: dict[str, Any]) -> str:
    """Return the number of the attempt for a status line; "" for the first."""
    return f" · attempt {attempt(info)} of {info['attempts_max']}" if info["epoch"] > 1 else ""
