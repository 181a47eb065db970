"""A child of multiprocessing's spawn or forkserver while it imports the script: it starts nothing,
and tells its parent where the import fails.

View: the child. What its parent makes of the exit code: `troupe._process.main_imports`.
"""

from __future__ import annotations

import os
import sys
from types import TracebackType

VARIABLE = "TROUPE_SPAWNS"
"""Set in processes that run a user's code, so that their children know."""
EXIT_CODE = 113
"""Exit code of a child whose import of the script failed: no code of Python's, a shell's or a
signal's."""


def is_running() -> bool:
    """Return whether this process is a child that is importing the script of its parent."""
    process = sys.modules.get("multiprocessing.process")
    return process is not None and getattr(process.current_process(), "_inheriting", False)


def refuse() -> None:
    """Raise Python's own RuntimeError in a child that is importing the script: what is to be
    started there would be started without end."""
    if is_running():
        from multiprocessing import spawn

        spawn._check_not_importing_main()  # type: ignore[attr-defined]


def watch() -> None:
    """In a child of a rank, actor or task that is importing the script: end it with EXIT_CODE where
    that fails. Nothing in any other process."""
    if VARIABLE not in os.environ or not is_running():
        return
    before = sys.excepthook

    def failed(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        before(kind, error, trace)
        sys.stderr.flush()
        os._exit(
            EXIT_CODE
        )  # raised by the import: afterwards the child has a handler of multiprocessing's own

    sys.excepthook = failed
