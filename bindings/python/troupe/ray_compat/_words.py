"""Words of Ray's errors that programs look for: in front of Troupe's own, where `import ray` gives
Troupe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from troupe._base import words as _words
from troupe._wire import FailureKind

FUNCTION_BYTES_MAX = 10**8
_CAUSES = {  # Ray's words, by kind
    FailureKind.KILL_REQUESTED: "it was killed by `ray.kill`",
    FailureKind.UNREFERENCED: "all references to the actor were removed",
    FailureKind.GROUP_REMOVED: "its placement group was removed",
}


class RaysWords(_words.Words):
    """The texts of programs that are written for Ray."""

    def of_death(self, failure: Mapping[str, Any], *, raised: bool) -> str:
        """See Words."""
        if raised:
            return "The actor died because of an error raised in its creation task: "
        words = _CAUSES.get(failure["kind"], "its worker process has died")
        return (
            "The actor died unexpectedly before finishing this task. The actor is dead because "
            f"{words}: "
        )

    def of_taken_name(self, name: str, namespace: str, text: str) -> str:
        """See Words."""
        return (
            f"The name {name} (namespace={namespace}) is already taken. Please use a different "
            "name or get the existing actor using "
            f"ray.get_actor({name!r}, namespace={namespace!r})"
        )

    def late_checks(self) -> bool:
        """See Words."""
        return True

    def check_yields(self, function: Callable[..., Any], num_returns: Any) -> None:
        """See Words: that is "dynamic" or "streaming"; in other programs it may return what
        yields."""
        import inspect

        yields = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
        if num_returns in ("dynamic", "streaming") and not yields:
            raise ValueError(
                f"num_returns='{num_returns}' can only be used with generator functions (functions "
                "that use 'yield'). "
                "The decorated function is not a generator function: "
                f"{getattr(function, '__qualname__', function)}"
            )

    def function_bytes_max(self, otherwise: int) -> int:
        """See Words."""
        return FUNCTION_BYTES_MAX

    def of_oversized(self, kind: str, name: str, error: Exception) -> Exception:
        """See Words."""
        return ValueError(
            f"The {kind} {name} is too large: {error}\n  or ray.put() what is large, and give the "
            "ref as an argument"
        )
