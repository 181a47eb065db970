"""Amounts of resources: a dict of floats for people, ten-thousandths on the wire; the priority of
who asks for them.

In a launch whose ranks got CPUs in the place of GPUs, a request for GPUs is one for CPUs
(`in_this_launch`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from troupe._base.context import ActorContext
from troupe._cluster import status_lines

_SCALE = 10_000
MEMORY_MAX = 10**14
_AMOUNT_MAX = 10**14
CPU_SHARE = "TROUPE_CPU_SHARE"
"""Set for the processes of a launch of CPU ranks (`launch._vendor_place`): the part of a CPU, at
most 1, that they get for each CPU or GPU they ask for."""
_told_of_cpus = False
_UNITS = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
_BYTES = re.compile(rf"([0-9]{{1,15}}(?:\.[0-9]{{1,6}})?) ?({'|'.join(_UNITS)})?")


def to_wire(amounts: Mapping[str, float]) -> list[dict[str, Any]]:
    """`{"CPU": 1, "GPU": 0.5}` as the message's list; zero amounts are left out.

    Raises what `check_amount` raises.
    """
    wire = []
    for name, amount in amounts.items():
        check_amount(f"resource {name!r}", amount)
        if amount:
            wire.append({"name": str(name), "ten_thousandths": round(amount * _SCALE)})
    return wire


def from_wire(wire: list[dict[str, Any]]) -> dict[str, float]:
    """The inverse of `to_wire`; whole amounts come back as whole floats."""
    return {item["name"]: item["ten_thousandths"] / _SCALE for item in wire}


def check_priority(priority: object) -> int:
    """The priority; ValueError for what is no whole number of 32 bits."""
    if (
        isinstance(priority, bool)
        or not isinstance(priority, int)
        or not -(2**31) <= priority < 2**31
    ):
        raise ValueError(
            f"priority must be a whole number between -2147483648 and 2147483647, not {priority!r}"
        )
    return priority


def bytes_of(memory: object) -> int:
    """An amount of memory: bytes as a number, or a text as "80GiB". ValueError for others."""
    text = _BYTES.fullmatch(memory) if isinstance(memory, str) else None
    amount = float(text[1]) * _UNITS[text[2] or "B"] if text is not None else memory
    if (
        isinstance(amount, bool)
        or not isinstance(amount, (int, float))
        or not 0 <= amount <= MEMORY_MAX
    ):
        raise ValueError(
            f'memory must be a number of bytes from 0 to {MEMORY_MAX:g}, or a text like "80GiB", '
            f"not {memory!r}"
        )
    return int(amount)


def check_name(name: str) -> None:
    """Raises ValueError for what `resources=` may not name, having an option of its own."""
    if name in ("CPU", "GPU", "memory"):
        raise ValueError(f"give {name} as num_cpus=, num_gpus= or memory=, not inside resources=")


def check_amount(name: str, amount: object) -> None:
    """Raise TypeError for what is no number, and ValueError for one that is no amount; `name`
    begins the message."""
    if isinstance(amount, bool) or not isinstance(amount, int | float):
        raise TypeError(f"{name} must be a number of at least 0, not {amount!r}")
    if not 0 <= amount <= _AMOUNT_MAX:
        raise ValueError(
            f"{name} must be a number of at least 0, and at most {_AMOUNT_MAX:g}, not {amount!r}"
        )


def check_gpus(gpus: float, name: str = "num_gpus") -> None:
    """Raise ValueError for more than one GPU that is no whole number of them."""
    if gpus > 1 and gpus != int(gpus):
        raise ValueError(f"{name} must be a fraction of one GPU or whole GPUs, not {gpus!r}")


def check_custom(custom: object) -> None:
    """Check what an actor or task asks for by `resources=`.

    Raises:
        TypeError: For what is no number, no dict or no name.
        ValueError: For what is no amount, or has an option of its own.
    """
    if not isinstance(custom, Mapping):
        raise TypeError(f"resources must be a dict of names and amounts, not {custom!r}")
    for name, amount in custom.items():
        if not isinstance(name, str) or not name:
            raise TypeError(f"resources: {name!r} is no name of a resource")
        check_name(name)
        check_amount(f"resources[{name!r}]", amount)


def describe(amounts: Mapping[str, float]) -> str:
    """`{CPU: 1, GPU: 0.5}`, as the head writes it."""
    return (
        "{" + ", ".join(f"{name}: {amount:.15g}" for name, amount in sorted(amounts.items())) + "}"
    )


def in_this_launch(
    amounts: Mapping[str, float], environment: Mapping[str, str] = os.environ
) -> Mapping[str, float]:
    """Return what a request for these amounts is in this process: in a launch of CPU ranks one
    without GPUs, else the same.

    A GPU counts as a CPU there, where not as many CPUs are asked for, so that as many requests run
    at once as the launch has ranks. Raises what `check_amount` raises.

        >>> in_this_launch({"CPU": 1, "GPU": 2, "disk": 1}, {CPU_SHARE: "0.5"})
        {'CPU': 1.0, 'disk': 1}
        >>> in_this_launch({"CPU": 0, "GPU": 1}, {CPU_SHARE: "0.5"})
        {'CPU': 0.5}
    """
    share = cpu_share(environment)
    if share is None:
        return amounts
    to_wire(amounts)  # raises an error for what is no amount
    if amounts.get("GPU"):
        _tell_of_cpus(share)
    found = {name: amount for name, amount in amounts.items() if name != "GPU"}
    cpus = max(float(amounts.get("CPU", 0.0)), float(amounts.get("GPU", 0.0)))
    if cpus:
        found["CPU"] = max(round(cpus * share * _SCALE), 1) / _SCALE
    return found


def _tell_of_cpus(share: float) -> None:
    """Say once, in the launch's driver, that requests for GPUs are requests for CPUs."""
    global _told_of_cpus
    if not _told_of_cpus and ActorContext.current is None:
        less = f", of each CPU or GPU that they ask for {share:.3g} CPU" if share < 1 else ""
        status_lines.say(
            "troupe: the ranks of this launch have no GPUs, so its actors, tasks and placement "
            f"groups that ask for GPUs get CPUs{less}"
        )
    _told_of_cpus = True


def cpu_share(environment: Mapping[str, str] = os.environ) -> float | None:
    """Return the part of a CPU that a request gets for each CPU in a launch of CPU ranks; None in
    all other processes."""
    return float(environment[CPU_SHARE]) if environment.get(CPU_SHARE) else None


def for_actor(
    num_cpus: float | None,
    num_gpus: float | None,
    memory: float | None,
    resources: Mapping[str, float] | None,
) -> tuple[dict[str, float], dict[str, float]]:
    """(needed to be placed, held while it runs) of an actor, by Ray's rule, in this process
    (`in_this_launch`).

    An actor that says nothing needs one CPU to be placed and holds none while it runs.
    """
    held: dict[str, float] = {}
    for name in resources or {}:
        check_name(name)
    if num_cpus is not None:
        held["CPU"] = num_cpus
    if num_gpus is not None:
        check_gpus(num_gpus)
        held["GPU"] = num_gpus
    if memory is not None:
        held["memory"] = memory
    held.update(resources or {})
    placed = dict(held)
    if num_cpus is None:
        placed["CPU"] = 1
    return dict(in_this_launch(placed)), dict(in_this_launch(held))
