"""Ids and names of this process and host, as the control messages carry them."""
from __future__ import annotations

import os
import platform

PYTHON_VERSION = ".".join(platform.python_version_tuple()[:2])
"""What caller and worker must share: "3.11"."""


def new_id() -> str:
    """A random 128-bit id as 32 lower-case hex digits, never nil."""
    return (os.urandom(15) + bytes([os.urandom(1)[0] | 1])).hex()


def short(identity: str) -> str:
    """The form for people: the first four digits, as in `launch 7f3a`."""
    return identity[:4]


def boot_id() -> str:
    """Identifies this host's running kernel: two processes with the same one share Unix sockets."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()
