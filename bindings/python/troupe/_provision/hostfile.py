"""Reading hostfiles of DeepSpeed and Open MPI: a host a line, `node-a slots=8`."""

from __future__ import annotations

import re

from troupe._provision.hosts import HOSTS_MAX, Host, split_user

_BYTES_MAX = 1 << 20
_IGNORED = ("max_slots", "max-slots")
_SLOTS_MAX = 4096


def read(path: str) -> tuple[Host, ...]:
    """Return the hosts of a hostfile; `slots` is the number of GPUs of the node.

    Raises:
        ValueError: if anything in it is wrong; all errors at once, each with file and line.
    """
    with open(path, "rb") as file:
        data = file.read(_BYTES_MAX + 1)
    if len(data) > _BYTES_MAX:
        raise ValueError(f"{path} has more than {_BYTES_MAX} bytes: it is no hostfile")
    try:
        return parse(data.decode(), path)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text: {error.reason} at byte {error.start}") from None


def parse(text: str, path: str) -> tuple[Host, ...]:
    """Return the hosts of a hostfile's text. Raises as `read`."""
    found: dict[tuple[str, str], tuple[int, Host]] = {}
    errors = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            host = _host(words)
            first = found.setdefault((host.user, host.host.lower()), (number, host))
            if first[0] != number:
                raise ValueError(f"{host.shown} is there twice: first in line {first[0]}")
        except ValueError as error:
            errors.append(f"{path}:{number}: {error}")
    if len(found) > HOSTS_MAX:
        errors.append(f"{path}: more than {HOSTS_MAX} hosts")
    if not found and not errors:
        errors.append(f"{path} names no host; a line looks like: node-a slots=8")
    if errors:
        raise ValueError("\n  ".join(errors))
    return tuple(host for _, host in found.values())


def _host(words: list[str]) -> Host:
    user, name = split_user(words[0])
    options = {}
    for word in words[1:]:
        key, _, value = word.partition("=")
        if key in _IGNORED:
            continue
        if key != "slots" or re.fullmatch("[0-9]{1,9}", value) is None:
            raise ValueError(
                f"{word!r} is not understood; a line looks like: node-a slots=8\n"
                "  more about a host is said in a file with the suffix .yml"
            )
        if not 0 < int(value) <= _SLOTS_MAX:
            raise ValueError(f"slots must be 1 to {_SLOTS_MAX}, not {value}")
        options["num_gpus"] = int(value)
    return Host(name, user, options=options)
