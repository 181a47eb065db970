"""Ids and names of this process and host, as the control messages carry them."""

from __future__ import annotations

import contextlib
import os
import platform
from typing import Any

from troupe import _pickled

PYTHON_VERSION = ".".join(platform.python_version_tuple()[:2])
"""What caller and worker must share: "3.11"."""
TASKS_CLASS = "troupe.task"
"""The class that actors have which are processes for tasks, as the head knows it."""


class HexID(str):
    """An id, hex digits, with the methods of Ray's ids, of all their kinds: "" is the nil one."""

    @classmethod
    def from_hex(cls, text: str) -> HexID:
        """The id of these digits. ValueError for other text."""
        bytes.fromhex(text)
        return cls(text)

    @classmethod
    def from_binary(cls, data: bytes) -> HexID:
        """The id of these bytes."""
        return cls(data.hex())

    @classmethod
    def from_random(cls) -> HexID:
        """An id that nothing has."""
        return cls(new_id())

    @classmethod
    def nil(cls) -> HexID:
        """The id of nothing."""
        return cls("")

    def is_nil(self) -> bool:
        """Return True if this is the nil id."""
        return not self.strip("0")

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.hex_id, (str(self),)

    def hex(self) -> str:
        """Return the hex digits."""
        return str(self)

    def binary(self) -> bytes:
        """Return the bytes."""
        return bytes.fromhex(self)


def new_id() -> str:
    """A random 128-bit id as 32 lower-case hex digits, never nil."""
    return os.urandom(16).hex().replace("0" * 32, "1" * 32)


def short(identity: str) -> str:
    """The form for people: the first four digits, as in `launch 7f3a`."""
    return identity[:4]


_placed_on: str | None = None


def placed_on(boot_id_of_node: str) -> None:
    """Called once by a process that a worker started: its host is the node's, as that names it."""
    global _placed_on
    _placed_on = boot_id_of_node


def kernel_boot_id() -> str:
    """Return the id of the machine's current boot, the same in all its namespaces."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def boot_id() -> str:
    """Identifies this host: two processes with the same one share files and Unix sockets.

    The running kernel's, with the namespaces of both (os::BootId), but that a node with --force-tcp
    is a host of its own.
    """
    if _placed_on is not None:
        return _placed_on
    parts = [kernel_boot_id()]
    for space in ("mnt", "net"):
        with contextlib.suppress(OSError):
            parts.append(os.readlink(f"/proc/self/ns/{space}"))
    return "/".join(parts)


@_pickled.maker("hex_id")
def _hex_id(text: str) -> Any:
    """The id of a node, an actor, a group."""
    return HexID(text)
