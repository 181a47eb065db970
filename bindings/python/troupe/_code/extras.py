"""Packages that parts of Troupe need and a plain installation has not: what to install where one is
missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from troupe import exceptions


@contextmanager
def needed(package: str, what: str, install: str) -> Iterator[None]:
    """Imports in the block need `package`.

    Raises:
        MissingPackageError: if `package` is not installed; the text says that `what` needs it, and
        what pip is to install.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise exceptions.MissingPackageError(
            f"{what} needs {package}, which is not installed here: pip install {install}",
            name=package,
        ) from None
