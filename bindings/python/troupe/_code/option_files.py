"""Files that a program is given by options, on whichever host it runs: their text travels with
it."""

from __future__ import annotations

import os
from collections.abc import Iterable

TEXT_BYTES_MAX = 1 << 20


def placed(files: Iterable[tuple[str, str]]) -> list[str]:
    """Words of a command line, `--option PATH` for each (option, text): the file has that text, and
    is there for as long as this process.

    It lies in memory, so that nothing is left of it however the process ends; what this process
    becomes by exec, and other processes of this user, can read it too.
    """
    words: list[str] = []
    for option, text in files:
        descriptor = os.memfd_create(option.lstrip("-"), 0)
        with os.fdopen(os.dup(descriptor), "w", encoding="utf-8") as file:
            file.write(text)
        words += [option, f"/proc/{os.getpid()}/fd/{descriptor}"]
    return words
