"""torchrun's files of a rank, below `--log-dir`:
RUN/attempt_N/LOCAL_RANK/{stdout.log,stderr.log,error.json}."""

from __future__ import annotations

import os

OUT, ERR, ERROR = "stdout.log", "stderr.log", "error.json"
FILTERED_OUT, FILTERED_ERR = "filtered_stdout.log", "filtered_stderr.log"  # in attempt_N


def folder(
    base: str, run_id: str, launch: str, *, epoch: int, node: int, nodes: int, local_rank: int
) -> str:
    """Return the folder of one rank and attempt.

    RUN is `run_id` and the beginning of the launch's id. With several nodes the node's number
    follows, since the nodes may share the folder, and LOCAL_RANK begins at 0 on each of them.
    """
    parts = [
        *([run_id.replace(os.sep, "_")] if run_id else []),
        launch[:8],
        *([str(node)] if nodes > 1 else []),
    ]
    return os.path.join(base, "_".join(parts), f"attempt_{max(epoch, 1) - 1}", str(local_rank))


def error_folder(base: str, launch: str) -> str:
    """Return the folder in `base` for error files that are kept only until the launch ends.

    Its name follows from the launch's id: a payload that named a new folder would tell a submission
    from its repetition.
    """
    return os.path.join(base, f"troupe-errors-{launch}")
