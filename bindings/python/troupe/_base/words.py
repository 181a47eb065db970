"""What is said and allowed otherwise in programs that are written for Ray: `troupe.ray_compat`
fills it in.

`current` is asked where it is needed, and never kept: a program may say that `import ray` means
Troupe at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


class Words:
    """Those of other programs."""

    def of_death(self, failure: Mapping[str, Any], *, raised: bool) -> str:
        """What begins the text of a dead actor; `raised`: its constructor did."""
        return ""

    def of_taken_name(self, name: str, namespace: str, text: str) -> str:
        """What is said of a name that is taken, of which `text` says all."""
        return text

    def late_checks(self) -> bool:
        """Whether an amount of GPUs that nothing can have is refused where something is started,
        not where its options are said."""
        return False

    def check_yields(self, function: Callable[..., Any], num_returns: Any) -> None:
        """Raises ValueError for `num_returns` that a function without `yield` cannot have."""

    def function_bytes_max(self, otherwise: int) -> int:
        """What a function or class may be pickled, with all that it closes over; `otherwise`: the
        limit of all that travels."""
        return otherwise

    def of_oversized(self, kind: str, name: str, error: Exception) -> Exception:
        """What is raised for a "remote function" or "actor" whose definition is too large, of which
        `error` says all."""
        return error


current = Words()
