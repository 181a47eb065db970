"""How a training fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troupe import _pickled
from troupe._wire import FailureKind
from troupe.exceptions import TroupeError


class TrainingFailedError(TroupeError):
    """A training failed: WorkerGroupError where a worker did, else ControllerError."""


class WorkerGroupError(TrainingFailedError):
    """A worker failed more often than `max_failures`.

    Also an instance of what the first of them raised.

    Fields: `worker_failures` (rank -> exception, of all that failed), `rank` (whose failure is the
    cause), `path` (the run's folder).
    """

    worker_failures: Mapping[int, Exception] = {}
    rank: int = -1
    path: str = ""


class ControllerError(TrainingFailedError):
    """The workers could not be started.

    Also an instance of the reason, which is `controller_failure`.
    """

    controller_failure: Exception | None = None


class GroupAborted(TroupeError, RuntimeError):
    """The ranks' group of a launch ended since a rank died: what was under way in it has no result.

    Fields: `group` (the launch's name), `epoch` (of the group that ended), `dead` (rank of the
    launch -> dict with `cause`, `kind`, `host`, `exit_code`, `signal`), `op` (the operation of
    torch's that was under way here, "" where none was), `seq` (its number: how many operations of
    its process group this process had begun; 0 where none was), `first_late_rank` (the rank of the
    launch that had kept others waiting so long that it was looked for, or was ended by
    `hang_timeout`; None where nobody had).
    """

    group: str = ""
    epoch: int = 0
    dead: Mapping[int, Mapping[str, Any]] = {}
    op: str = ""
    seq: int = 0
    first_late_rank: int | None = None

    @classmethod
    def of(
        cls,
        group: str,
        epoch: int,
        dead: Mapping[int, Mapping[str, Any]],
        op: str,
        seq: int = 0,
        late: int | None = None,
    ) -> GroupAborted:
        """With its text, of Failures by rank.

        `late`: the rank that was known to be, where no death says so.
        """
        told = {
            rank: {
                "cause": each["cause"],
                "kind": each["kind"],
                "host": each["node_name"] or each["host"],
                "exit_code": each["exit_code"],
                "signal": each["signal"],
            }
            for rank, each in sorted(dead.items())
        }
        deaths = "; ".join(_death(rank, dead[rank]) for rank in told) or "a rank died"
        number = f" (operation {seq})" if seq else ""
        made = cls(
            f"the group of {group}, epoch {epoch}, was aborted{f' in {op}{number}' if op else ''}: "
            f"{deaths}"
        )
        made.group, made.epoch, made.dead, made.op, made.seq = group, epoch, told, op, seq
        made.first_late_rank = next(
            (rank for rank, each in told.items() if each["kind"] == FailureKind.HUNG), late
        )
        return made


_NAMES_ITS_NODE = (
    FailureKind.NODE_LOST,
    FailureKind.NODE_UNREACHABLE,
    FailureKind.RESERVATION_LOST,
)
"""Kinds of failures whose cause names the node, as that of a `located` one does."""


def _death(rank: int, failure: Mapping[str, Any]) -> str:
    host = failure["node_name"] or failure["host"]
    has_place = failure["located"] or failure["kind"] in _NAMES_ITS_NODE
    where = f" on {host}" if host and not has_place else ""
    code = f" (exit code {failure['exit_code']})" if failure["exit_code"] else ""
    named = failure["cause"] if failure["located"] else f"rank {rank}: {failure['cause']}"
    return f"{named}{where}{code}"


_pickled.named_in(
    "troupe.train", TrainingFailedError, WorkerGroupError, ControllerError, GroupAborted
)
