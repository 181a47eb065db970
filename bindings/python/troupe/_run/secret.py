"""The secret that the nodes of a run share before any head exists: a file of 32 random bytes.

From it and the run's name every node derives the key hash of the cluster's authority, which it
pins, two join tokens, and a port. Nothing of it is in argv, in the environment or in a log; tokens
are handed to programs in descriptors of memory.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

BYTES = 32


class SecretError(ValueError):
    """A secret's file that is missing, readable by others or of another length; the text has the
    remedy."""


@dataclass(frozen=True)
class Derived:
    """The values that one run's nodes derive from their secret."""

    cluster_id: str
    port: int
    worker_token: str = field(repr=False)
    client_token: str = field(repr=False)


def make(path: str) -> None:
    """Writes a new secret, readable by its owner alone. Raises SecretError when the file exists."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise SecretError(
            f"{path} exists; it is not overwritten: nodes that have it could not join any more"
        ) from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(os.urandom(BYTES))
        file.flush()
        os.fsync(file.fileno())


def derive(path: str, run: str) -> Derived:
    """Derive the values of a run from its name and the secret in `path`."""
    from troupe._base.bridge import native

    return Derived(**native.derive_run(_read(path), run))


def _read(path: str) -> bytes:
    remedy = f"make one, and give every node the same: troupe run --make-secret {path}"
    try:
        info = os.stat(path)
        if stat.S_ISREG(info.st_mode) and info.st_mode & 0o077:
            raise SecretError(
                f"{path} holds a secret, but others than its owner can read it\n  chmod 600 {path}"
            )
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise SecretError(f"the secret file {path} does not exist\n  {remedy}") from None
    except OSError as error:
        raise SecretError(
            f"the secret file {path} cannot be read: {error.strerror}\n  {remedy}"
        ) from None
    if len(data) != BYTES:
        raise SecretError(f"{path} has {len(data)} bytes; a run's secret has {BYTES}\n  {remedy}")
    return data


class TokenFile:
    """A token in memory that a program started here can read by a path; gone when closed."""

    def __init__(self, token: str) -> None:
        self._descriptor = os.memfd_create("token", os.MFD_CLOEXEC)
        os.fchmod(self._descriptor, 0o600)
        os.write(self._descriptor, token.encode())
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        self.path = f"/proc/{os.getpid()}/fd/{self._descriptor}"

    def __enter__(self) -> TokenFile:
        return self

    def __exit__(self, *raised: object) -> None:
        os.close(self._descriptor)
