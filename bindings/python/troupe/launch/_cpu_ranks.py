"""TROUPE_CPU_RANKS: whoever asks for GPUs gets processes without; for tests, and machines without any. Variables that say yes or no."""
from __future__ import annotations

import os
from collections.abc import Mapping

VARIABLE = "TROUPE_CPU_RANKS"
_YES, _NO = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


def asked_for(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a number of GPUs means as many processes without any. Raises ValueError for a value that is neither yes nor no."""
    value = environment.get(VARIABLE, "").strip()
    return bool(value) and bool(yes_or_no(VARIABLE, value))


def yes_or_no(name: str, value: str, others: Mapping[str, str] | None = None) -> bool | None:
    """What the variable's value says; None: one of `others`, which are words by their meaning. Raises ValueError for any other."""
    word = value.lower()
    if word in _YES or word in _NO:
        return word in _YES
    if others and word in others:
        return None
    more = "".join(f", or {each!r}: {meaning}" for each, meaning in (others or {}).items())
    raise ValueError(f"{name}={value!r} is neither yes ({', '.join(_YES)}) nor no ({', '.join(_NO)}){more}")
