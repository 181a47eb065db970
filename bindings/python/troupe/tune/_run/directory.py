"""The working directory of a trial: its own folder, so that relative files of two trials are two
files."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from troupe._base import callbacks as _callbacks

SWITCHES = ("TROUPE_CHDIR_TO_TRIAL_DIR", "RAY_CHDIR_TO_TRIAL_DIR")
ORIGINAL = ("TROUPE_ORIG_WORKING_DIR", "TUNE_ORIG_WORKING_DIR")
"""Variables with the directory that the process had before; the second one is Ray's."""


def is_wanted(asked: bool | None) -> bool:
    """Return whether trials are to have directories of their own: as
    `TuneConfig(chdir_to_trial_dir=)` says, else as the variables of this process do."""
    return (
        bool(asked) if asked is not None else all(os.environ.get(name) != "0" for name in SWITCHES)
    )


@contextlib.contextmanager
def working_directory(folder: Path, *, wanted: bool, is_shared: bool = False) -> Iterator[None]:
    """Run what is inside in the trial's folder, which is removed after it if it is empty and no
    other process works there. Where it cannot be made, that is said, and the directory stays."""
    if not wanted:
        yield
        return
    before = os.getcwd()
    was = {name: os.environ.get(name) for name in ORIGINAL}
    for name in ORIGINAL:
        os.environ.setdefault(name, before)
    sys.path[:] = [
        os.path.abspath(each) for each in sys.path
    ]  # modules imported from the directory before still are
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.chdir(folder)
    except OSError as error:
        _callbacks.say(
            f"troupe.tune: the trial's folder {folder} cannot be its working directory "
            f"({error.strerror}): it stays in {before}"
        )
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # the directory may have been removed meanwhile
            os.chdir(before)
        for name, value in was.items():
            if value is None:
                os.environ.pop(name, None)
        if not is_shared:
            with contextlib.suppress(OSError):  # there is something in it
                folder.rmdir()
