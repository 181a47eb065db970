"""Status lines of the runtime: on stderr, for stdout is what the program's own code printed; none
where quiet is asked for."""

from __future__ import annotations

import os

QUIET = "TROUPE_QUIET"


def is_quiet(asked: bool = False) -> bool:
    """Return True if status lines are off: `quiet=True`, or TROUPE_QUIET=1."""
    return asked or os.environ.get(QUIET, "") not in ("", "0")


def say(text: str, *, quiet: bool = False) -> None:
    """Prints a line unless it is quiet. Never raises."""
    if not is_quiet(quiet):
        from troupe._cluster import live_output

        live_output.say(text)
