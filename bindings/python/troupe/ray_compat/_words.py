"""Words of Ray's errors that programs look for: in front of Troupe's own, where `import ray` gives Troupe."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from troupe import ray_compat

FUNCTION_BYTES_MAX = 10**8
"""What a function or class of such a program may be pickled, with all that it closes over."""
_CAUSES = {  # Ray's words by how Troupe's own begin
    "killed": "it was killed by `ray.kill`",
    "all references to the actor": "all references to the actor were removed",
    "its placement group ended": "its placement group was removed",
    "": "its worker process has died",
}


def of_death(failure: Mapping[str, Any], *, raised: bool) -> str:
    """What begins the text of a dead actor; `raised`: its constructor did. Empty in other programs."""
    if not ray_compat.is_installed():
        return ""
    cause = failure["cause"]
    if raised:
        return "The actor died because of an error raised in its creation task: "
    words = next(words for begin, words in _CAUSES.items() if cause.startswith(begin))  # the last of them begins every text
    return f"The actor died unexpectedly before finishing this task. The actor is dead because {words}: "


def of_taken_name(name: str, namespace: str, text: str) -> str:
    """What is said of a name that is taken: `text` in other programs."""
    if not ray_compat.is_installed():
        return text
    return (f"The name {name} (namespace={namespace}) is already taken. Please use a different name or get the existing actor using "
            f"ray.get_actor({name!r}, namespace={namespace!r})")


def late_checks() -> bool:
    """Whether an amount of GPUs that nothing can have is refused where something is started, not where its options are said."""
    return ray_compat.is_installed()


def check_yields(function: Callable[..., Any], num_returns: Any) -> None:
    """Raises ValueError for "dynamic" or "streaming" of a function without `yield`. In other programs it may return what yields."""
    yields = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    if num_returns in ("dynamic", "streaming") and not yields and ray_compat.is_installed():
        raise ValueError(f"num_returns='{num_returns}' can only be used with generator functions (functions that use 'yield'). "
                         f"The decorated function is not a generator function: {getattr(function, '__qualname__', function)}")


def function_bytes_max(otherwise: int) -> int:
    """What a function or class may be pickled; `otherwise`: in other programs."""
    return FUNCTION_BYTES_MAX if ray_compat.is_installed() else otherwise


def of_oversized(kind: str, name: str, error: Exception) -> Exception:
    """What is raised for a "remote function" or "actor" whose definition is too large, of which `error` says all: `error` in other programs."""
    if not ray_compat.is_installed():
        return error
    return ValueError(f"The {kind} {name} is too large: {error}\n  or ray.put() what is large, and give the ref as an argument")
