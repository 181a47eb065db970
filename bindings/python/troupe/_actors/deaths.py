"""The error that callers of an actor get where it has died."""

from __future__ import annotations

import threading
from typing import Any

from troupe import exceptions
from troupe._base import words as _words
from troupe._code import failures


def death_of(info: dict[str, Any], attachment: bytes, label: str) -> exceptions.TroupeError:
    """The error of a dead actor: its cause, and where its constructor raised, that exception's
    type; OutOfMemoryError's too."""
    failure = info["failure"]
    cause = _loaded(attachment) or failures.out_of_memory(failure)
    text = (
        _words.current.of_death(failure, raised=bool(attachment))
        + f"{label} is dead: {failure['cause'] or 'its process is gone'}"
    )
    if failure["node_name"] and not failure["located"]:
        process = f", pid {failure['pid']}" if failure["pid"] > 0 else ""
        text += f" (on {failure['node_name']}{process})"
    if failure["traceback"]:
        text += "\n  " + "\n  ".join(failure["traceback"].rstrip().splitlines()[-30:])
    elif failure["log_tail"]:
        from troupe._cluster.logs import last_lines

        text += "\n  last lines of its stderr:\n    " + "\n    ".join(
            last_lines(failure["log_tail"])
        )
    if isinstance(cause, exceptions.OutOfMemoryError):
        text += (
            "\n  try: less data held by it, fewer of its kind at a time on one node (a larger "
            "num_cpus=), or memory= (the bytes that it "
            "needs), to be placed where there is room"
        )
    fields = {"actor_id": info["actor"], "failure_kind": failure["kind"]}
    try:
        return exceptions.with_type_of(exceptions.ActorDiedError, cause, text, **fields)
    except (
        Exception
    ) as error:  # raised by the user's class; the actor must be reported dead all the same
        text += f"\n  (its exception cannot be shown as what it is: {type(error).__name__})"
        return exceptions.with_type_of(exceptions.ActorDiedError, None, text, **fields)


def _loaded(attachment: bytes) -> BaseException | None:
    if not attachment:
        return None
    import cloudpickle

    try:
        error = cloudpickle.loads(attachment)
    # The class cannot be imported here, or its constructor raises; the text says what happened
    except BaseException as failed:
        if (
            isinstance(failed, KeyboardInterrupt)
            and threading.current_thread() is threading.main_thread()
        ):
            raise
        return None
    return error if isinstance(error, BaseException) else None
