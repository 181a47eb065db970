"""The part of this process in a run of all ranks of a process group: of `current().run`, or of an
attempt of `troupe.train`.

A rank whose part has returned begins nothing more before the others' parts have ended, so whoever
waits for it in a collective waits in vain. Such a rank is a process that goes on, so the head knows
nothing of that: the ranks find it out by the group's store (`_process.returned.returned_parts`).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from troupe import exceptions


class Part:
    """Part of this process in one run.

    `run`: name of the run, alike in all its ranks and unlike any other run of their group.
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self.thread = threading.get_ident()
        self.has_returned = False
        self.verdict = ""
        """Why this part cannot go on, set by the thread that watches groups before it ends what the
        part waits in"""


_latest: Part | None = None


def _find_none(run: str) -> str:
    """Return "": this process watches no groups."""
    return ""


find_verdict: Callable[[str], str] = _find_none
"""Returns the verdict of another rank of that run; "": there is none. Of who watches groups"""


def latest() -> Part | None:
    """Return the part that this process runs, or has run last; None: it has run none."""
    return _latest


def thread() -> int:
    """Return the thread that waits for other ranks: the one that runs this process's part, else the
    main one."""
    if _latest is not None and not _latest.has_returned:
        return _latest.thread
    return threading.main_thread().ident or 0


@contextlib.contextmanager
def part(run: str) -> Iterator[None]:
    """Run the rank's part inside.

    Raises:
        TroupeError: in place of what a collective raised that was ended because a rank that it
        needs has returned.
    """
    global _latest
    mine = _latest = Part(run)
    try:
        yield
    except BaseException as error:
        if (
            isinstance(error, RuntimeError) and not mine.verdict
        ):  # raised by a group that another rank has ended
            mine.verdict = find_verdict(run)
        if mine.verdict:
            raise exceptions.TroupeError(mine.verdict) from error
        raise
    mine.has_returned = True
