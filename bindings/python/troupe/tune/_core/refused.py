"""Names of Ray's that are there to say what to use instead."""

from __future__ import annotations

from typing import Any, NoReturn


def refused(name: str, instead: str) -> type:
    """A class that cannot be made: NotImplementedError says why, and what to take."""

    def __init__(self: Any, *arguments: Any, **named: Any) -> NoReturn:
        raise NotImplementedError(f"{name} is no part of Troupe: {instead}")

    return type(
        name,
        (),
        {
            "__init__": __init__,
            "__doc__": f"Refused with NotImplementedError: {instead}.",
            "instead": instead,
        },
    )
