"""Errors of `run`: RuntimeErrors, as pyspark's are, that are also of the type of the rank's
failure."""

from __future__ import annotations

import itertools
from collections import deque
from typing import Any

from troupe import exceptions
from troupe.launch import _errors

TAIL_LINES = 100


class DistributorError(exceptions.LaunchError, RuntimeError):
    """A run that could not start, or failed.

    Also an instance of the failing rank's exception type, or of what was refused.

    The fields are those of `troupe.exceptions.LaunchError`: `rank`, `host`, `exit_code`, `signal`,
    `cause`, ...
    """


class Tail:
    """The last lines that each rank has written, stdout and stderr together as they came.

    The two streams are followed apart, so that a line of stderr may come before lines of stdout
    that were written earlier. What a program says last is its error: however much stdout comes
    after it, half of the lines are stderr's.
    """

    def __init__(self) -> None:
        self._lines: dict[tuple[int, bool], deque[tuple[int, str]]] = {}
        self._numbers = itertools.count()

    def hear(self, _info: dict[str, Any], rank: int, is_error: bool, lines: list[str]) -> None:
        """Called with lines as they are shown."""
        self._lines.setdefault((rank, is_error), deque(maxlen=TAIL_LINES)).extend(
            (next(self._numbers), line) for line in lines
        )

    def of(self, rank: int) -> list[str]:
        """Return the stored output of a rank, TAIL_LINES at most."""
        out, err = (list(self._lines.get((rank, is_error), ())) for is_error in (False, True))
        together, errors = sorted(out + err)[-TAIL_LINES:], err[-TAIL_LINES // 2 :]
        if errors and errors[0] < together[0]:
            together = sorted(errors + out[-(TAIL_LINES - len(errors)) :])
        return [line for _, line in together]


def refused(error: BaseException) -> exceptions.TroupeError:
    """Return the error as a DistributorError, for a run that did not start."""
    return exceptions.with_type_of(DistributorError, error, str(error))


def of_end(
    handle: Any, error: exceptions.TroupeError, tail: Tail, command: str, *, is_program: bool
) -> exceptions.TroupeError:
    """Return the exception for a launch that ended with `error`: the failed rank first, then the
    last lines of its output."""
    if not isinstance(error, exceptions.LaunchError) or isinstance(
        error, exceptions.LaunchCancelledError
    ):
        fields = {
            name: getattr(error, name)
            for name in ("launch", "epoch", "exit_code")
            if hasattr(error, name)
        }
        return exceptions.with_type_of(type(error), RuntimeError(str(error)), str(error), **fields)
    info = handle.wait_end()
    text = _errors.text_of(
        info, traceback=not is_program, tail=False
    )  # a program has printed its traceback
    rank, lines = info["failure"]["rank"], tail.of(info["failure"]["rank"])
    lines = lines or info["failure"]["log_tail"].splitlines()[-TAIL_LINES:]
    last = (
        f"last {TAIL_LINES} lines of the task output are"
        if len(lines) == TAIL_LINES
        else "task output is"
    )
    said = "\n".join(lines) if lines else "(nothing)" if rank >= 0 else "(no rank was at fault)"
    text += (
        f"\nCommand {command} failed with return code {error.exit_code}. The {last} included "
        f"below: \n{said}"
    )
    return _errors.of_launch(handle, info, base=DistributorError, text=text)


def of_output(error: Exception, name: str) -> exceptions.TroupeError:
    """For an output of rank 0 that arrived and cannot be made again here."""
    return exceptions.with_type_of(
        DistributorError,
        error,
        f"TorchDistributor failed due to a pickling error: {name} returned on rank 0, and what it "
        "returned cannot be loaded here: "
        f"{type(error).__name__}: {error}\n  return plain values, or objects of modules that this "
        "process has too",
    )
