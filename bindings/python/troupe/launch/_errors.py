"""The one-screen error of a launch that did not succeed."""
from __future__ import annotations

import signal
from typing import Any

from troupe import exceptions
from troupe._identity import short

_TAIL_LINES = 12


def of_launch(handle: Any, info: dict) -> exceptions.TroupeError:
    """The exception for a terminal launch whose outcome is not success."""
    if info["outcome"] == "cancelled":
        return _cancelled(info)
    failure = info["failure"]
    rank = failure["rank"]
    cause = _exception_of(handle, max(rank, 0))
    return exceptions.with_type_of(
        exceptions.LaunchError, cause, text_of(info), launch=info["launch"],
        rank=rank if rank >= 0 else None, host=failure["node_name"] or failure["host"],
        exit_code=info["exit_code"] or failure["exit_code"], signal=failure["signal"] or None,
        cause=cause if cause is not None else failure["cause"] or info["cause"], epoch=info["epoch"],
        log_tail=failure["log_tail"])


def _cancelled(info: dict) -> exceptions.TroupeError:
    if info["failure"]["exception_type"] == "builtins.TimeoutError":
        return exceptions.GetTimeoutError(f"launch {short(info['launch'])} {info['cause']}")
    error = exceptions.LaunchCancelledError(
        f"launch {short(info['launch'])} was cancelled" + (f": {info['cause']}" if info["cause"] else ""))
    error.launch, error.epoch, error.exit_code = info["launch"], info["epoch"], 130
    return error


def _exception_of(handle: Any, rank: int) -> BaseException | None:
    """What the rank raised, where it travelled and loads here."""
    import cloudpickle

    try:
        data = handle.raw_result(rank)
        error = cloudpickle.loads(data) if data else None
    except Exception:  # the failure's own text says what happened; its pickle is an extra
        return None
    return error if isinstance(error, BaseException) else None


def text_of(info: dict) -> str:
    """Cause first, then what helps: traceback or last lines, what became of the others, where the logs are."""
    failure = info["failure"]
    rank, of = failure["rank"], f"(epoch {info['epoch']} of {info['attempts_max']})"
    after = f" after {info['duration_ms'] / 1000:.1f} s" if info["duration_ms"] else ""
    where = f" on {failure['node_name'] or failure['host']}" if failure["node_name"] or failure["host"] else ""
    cause = failure["cause"] or info["cause"] or "no cause is known"
    who = f"rank {rank}" if rank >= 0 else f"launch {short(info['launch'])}"
    lines = [f"{who} {_what_happened(failure, cause)}{where}{after} {of}"]
    if failure["signal"] and cause:
        lines.append(f"  {cause}")
    if failure["traceback"]:
        lines += ["  " + line for line in failure["traceback"].rstrip().splitlines()[-30:]]
    elif failure["log_tail"]:
        lines.append("  last lines of its stderr:")
        lines += ["    " + line for line in failure["log_tail"].rstrip().splitlines()[-_TAIL_LINES:]]
    if info["ranks"] > 1 and rank >= 0:
        lines.append(f"  the other {info['ranks'] - 1} ranks were stopped; nothing of the launch is left on any node"
                     if info["ranks"] > 2 else "  the other rank was stopped; nothing of the launch is left")
    if rank >= 0:
        lines.append(f"  logs: troupe logs {short(info['launch'])} --rank {rank}")
    return "\n".join(lines)


def _what_happened(failure: dict, cause: str) -> str:
    if failure["signal"]:
        try:
            name = signal.Signals(failure["signal"]).name
        except ValueError:
            name = f"signal {failure['signal']}"
        return f"was killed by {name}"
    if failure["exception_type"] == "builtins.SystemExit":
        return f"left by {cause}"
    if failure["exception_type"]:
        return f"raised {cause}"
    if failure["exit_code"] and not cause:
        return f"exited with {failure['exit_code']}"
    return f"failed: {cause}"
