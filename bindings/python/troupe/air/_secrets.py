"""Secrets that workloads name by `scope/key`: files that their owner alone can read."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from troupe._cluster import home

FOLDER = "TROUPE_SECRETS"
_BYTES_MAX = 64 << 10


def values(references: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets' values by the names of their variables.

    `scope/key` is the file of that path below $TROUPE_SECRETS, else below `secrets` of TROUPE_HOME.
    One newline at its end is not part of it.

    Raises:
        FileNotFoundError: if there is no such file.
        PermissionError: if others than the owner may read or write the file.
        ValueError: if the file is larger than 64 KiB, or is no text.
    """
    return {name: _value(name, reference) for name, reference in references.items()}


def _value(name: str, reference: str) -> str:
    folder = Path(os.environ.get(FOLDER) or home.home() / "secrets")
    path = folder / reference
    what = f"secret_env_variables.{name}: {path}"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"secret_env_variables.{name}: there is no secret {reference}\n"
            f"  put its value into the file {path}, which only you can read (chmod 600)"
        ) from None
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(file.fileno())
        if stat.S_IMODE(about.st_mode) & 0o077 or about.st_uid != os.geteuid():
            raise PermissionError(f"{what} can be read or changed by others\n  chmod 600 {path}")
        data = file.read(_BYTES_MAX + 1)
    if len(data) > _BYTES_MAX:
        raise ValueError(f"{what} has more than {_BYTES_MAX >> 10} KiB")
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise ValueError(f"{what} is no UTF-8 text") from None
