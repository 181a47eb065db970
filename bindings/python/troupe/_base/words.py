"""Texts and permissions that differ in programs written for Ray: `troupe.ray_compat` fills them in.

`current` is asked where it is needed, and never kept: a program may say that `import ray` means
Troupe at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


class Words:
    """The texts used in programs not written for Ray."""

    def of_death(self, failure: Mapping[str, Any], *, raised: bool) -> str:
        """Return the beginning of the message about a dead actor; with `raised`, its constructor
        raised."""
        return ""

    def of_taken_name(self, name: str, namespace: str, text: str) -> str:
        """Return the error message for an actor name that is already in use; `text` is the full
        message."""
        return text

    def late_checks(self) -> bool:
        """Return True if an impossible amount of GPUs is refused at the start of an actor or task,
        not when its options are set."""
        return False

    def check_yields(self, function: Callable[..., Any], num_returns: Any) -> None:
        """Raises ValueError for `num_returns` that a function without `yield` cannot have."""

    def function_bytes_max(self, otherwise: int) -> int:
        """Return the largest pickle of a function or class, with its closure; `otherwise` is the
        limit of all other values."""
        return otherwise

    def of_oversized(self, kind: str, name: str, error: Exception) -> Exception:
        """Return the exception for a "remote function" or "actor" whose definition is too large;
        `error` is the full error."""
        return error


current = Words()
