"""Variables by which a person steers launches, read at each call: pools of GPUs, and ranks without
any.

A variable of Troupe's name is over the Databricks one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from troupe.launch import _cpu_ranks

CPU_RANKS = _cpu_ranks.VARIABLE
USE_POOL = ("TROUPE_USE_RESERVED_GPU_POOL", "DATABRICKS_USE_RESERVED_GPU_POOL")
POOL_ID = ("TROUPE_REMOTE_GPU_POOL_ID", "DATABRICKS_REMOTE_GPU_POOL_ID")
PREFER, AVOID, ONLY = "prefer", "avoid", "only"


def said(names: tuple[str, ...], environment: Mapping[str, str] = os.environ) -> tuple[str, str]:
    """(name, value) of the first of these that says something; ("", "") where none does."""
    return next(
        ((name, value) for name in names if (value := environment.get(name, "").strip())), ("", "")
    )


def pool_use(environment: Mapping[str, str] = os.environ) -> str:
    """PREFER, where nothing is said, AVOID or ONLY.

    Raises ValueError for a value that is none of these.
    """
    name, value = said(USE_POOL, environment)
    return _as_word(name, value, {ONLY: "only in a pool"}) if name else PREFER


def pool_id(environment: Mapping[str, str] = os.environ) -> str:
    """Return the pool that is meant; "" for any."""
    return said(POOL_ID, environment)[1]


def _as_word(name: str, value: str, more: Mapping[str, str]) -> str:
    answer = _cpu_ranks.yes_or_no(name, value, more)
    return value.lower() if answer is None else PREFER if answer else AVOID
