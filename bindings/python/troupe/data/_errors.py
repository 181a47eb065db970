"""Errors of datasets, which name the file, the rows and the user's own lines."""

from __future__ import annotations

import traceback
from typing import Any

from troupe import _pickled, exceptions
from troupe._base.tracebacks import is_of_runtime, words_of


class DataError(exceptions.TroupeError):
    """A dataset that cannot be read, mapped or written.

    `path`: the file, `first_row` and `last_row` in it, where they are known; also an instance of
    what a function of the user's, or pyarrow, has raised.
    """

    path: str = ""
    first_row: int | None = None
    last_row: int | None = None


def of_reading(path: str, error: BaseException, hint: str = "") -> exceptions.TroupeError:
    """For a file that cannot be read."""
    text = f"{path} cannot be read: {type(error).__name__}: {_one_line(words_of(error))}"
    return exceptions.with_type_of(
        DataError, _plain(error), text + (f"\n  {hint}" if hint else ""), path=path
    )


def of_function(
    name: str, error: BaseException, where: str, **fields: Any
) -> exceptions.TroupeError:
    """For a function of the user's that raised, on the rows that `where` names: with the lines of
    its code, and of what it called."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not is_of_runtime(frame.filename)
    ]
    lines = "".join(traceback.format_list(frames)).rstrip()
    text = f"{name} failed on {where}: {type(error).__name__}: {words_of(error)}"
    return exceptions.with_type_of(
        DataError, _plain(error), text + (f"\n{lines}" if lines else ""), **fields
    )


def _plain(error: BaseException) -> BaseException:
    """Without its traceback, which cannot travel and would keep the frames' memory."""
    error.__traceback__ = None
    error.__cause__ = None
    return error


def _one_line(text: str) -> str:
    return " ".join(text.split())


_pickled.named_in("troupe.data", DataError)
