"""Pure.

What becomes of a training whose workers failed: whose failure is the cause, whether to try again,
what to tell.
"""

from __future__ import annotations

from collections.abc import Mapping

from troupe._code import failures
from troupe.exceptions import TaskError

_PAUSE_S, _PAUSE_MAX_S = 0.1, 10.0
_LINE_CHARS_MAX = 300


def is_symptom(error: BaseException) -> bool:
    """Return True if the worker lost its connection to another one, which then has the cause."""
    return failures.is_symptom(
        error.cause
        if isinstance(error, TaskError) and isinstance(error.cause, BaseException)
        else error
    )


def is_decided(failed: Mapping[int, BaseException]) -> bool:
    """Return True if one of the errors is a cause, and not only the result of one that is still to
    be reported."""
    return any(not is_symptom(error) for error in failed.values())


def cause_of(failed: Mapping[int, BaseException]) -> int:
    """The rank whose failure is the cause: the first that was heard of and is no symptom, else the
    first."""
    return next(
        (rank for rank, error in failed.items() if not is_symptom(error)), next(iter(failed))
    )


def may_restart(failures_so_far: int, max_failures: int) -> bool:
    """After that many failures."""
    return max_failures == -1 or failures_so_far <= max_failures


def pause_s(fruitless: int) -> float:
    """Before the next attempt, after so many in a row in which nothing was reported: the first time
    none, then longer each time."""
    return 0.0 if fruitless < 2 else min(_PAUSE_MAX_S, _PAUSE_S * 2.0 ** min(fruitless, 20))


def first_line(error: BaseException) -> str:
    """Return a worker's error in one line."""
    cause = (
        error.cause
        if isinstance(error, TaskError) and isinstance(error.cause, BaseException)
        else None
    )
    text = (
        failures.first_line(cause)
        if cause is not None
        else next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    )
    return text if len(text) <= _LINE_CHARS_MAX else f"{text[:_LINE_CHARS_MAX]}..."


def text_of(
    failed: Mapping[int, BaseException],
    *,
    hosts: Mapping[int, str],
    world_size: int,
    attempts: int,
    path: str,
    checkpoint: str | None,
    max_failures: int,
) -> str:
    """The text of the error: the cause first, then the others, where the run is and what to do."""
    cause = cause_of(failed)
    error = failed[cause]
    where = f" on {hosts[cause]}" if cause in hosts else ""
    lines = [f"rank {cause} of {world_size}{where} failed: {first_line(error)}"]
    lines += [f"  {line}" for line in str(error).strip().splitlines()[1:]]
    lines += [
        f"  rank {rank} then: {first_line(each)}"
        for rank, each in sorted(failed.items())
        if rank != cause
    ]
    lines.append(
        f"  attempt {attempts}, max_failures={max_failures}; the run is in {path}"
        + (f", its latest checkpoint is {checkpoint}" if checkpoint else ", without a checkpoint")
    )
    if checkpoint:
        lines.append(
            "  try: the same RunConfig(name=..., storage_path=...) again goes on from there; "
            "FailureConfig(max_failures=N) does so by itself"
        )
    return "\n".join(lines)
