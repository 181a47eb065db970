"""CPU ranks: processes without GPUs in the place of those that a program asks GPUs for.

TROUPE_CPU_RANKS, and variables that say yes or no.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from troupe.launch import _hints

VARIABLE = "TROUPE_CPU_RANKS"
"""Of the caller: 1 makes all such ranks CPU ranks, 0 none; without it they are where no node has a
GPU. Of a rank: 1 where it is one."""
_YES, _NO = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


def asked_for(environment: Mapping[str, str] = os.environ) -> bool | None:
    """Return the value of the variable; None if it is not set.

    Raises ValueError for a value that is neither yes nor no.
    """
    value = environment.get(VARIABLE, "").strip()
    return yes_or_no(VARIABLE, value) if value else None


def reason(nodes: Iterable[dict[str, Any]], environment: Mapping[str, str] = os.environ) -> str:
    """Return why ranks that ask for GPUs on these nodes are CPU ranks; "": they are not.

    Raises ValueError as `asked_for`.
    """
    asked = asked_for(environment)
    if asked is not None:
        return f"{VARIABLE} is set" if asked else ""
    nodes = list(nodes)
    if not nodes or _hints.gpus_of(
        nodes
    ):  # nothing is known of a cluster whose nodes are still to come
        return ""
    return "no node has a GPU" if len(nodes) > 1 else f"{nodes[0]['name']} has no GPU"


def yes_or_no(name: str, value: str, others: Mapping[str, str] | None = None) -> bool | None:
    """Parse a yes-or-no variable; None for a value in `others`, which maps further words to their
    meaning.

    Raises ValueError for any other.
    """
    word = value.lower()
    if word in _YES or word in _NO:
        return word in _YES
    if others and word in others:
        return None
    more = "".join(f", or {each!r}: {meaning}" for each, meaning in (others or {}).items())
    raise ValueError(
        f"{name}={value!r} is neither yes ({', '.join(_YES)}) nor no ({', '.join(_NO)}){more}"
    )
