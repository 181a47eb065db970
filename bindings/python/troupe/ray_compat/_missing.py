"""Features of Ray that Troupe lacks, and what to use instead.

The table "What is not there" of docs/coming/ray.md has the same rows.
"""

from __future__ import annotations

from troupe.ray_compat._missing_rows import ROWS

_INSTEAD = {name: instead for names, instead in ROWS for name in names}


def instead_of(name: str) -> str:
    """Return a suggestion in place of `name`, such as "ray.tune.Tuner", which Troupe lacks; "" if
    there is none."""
    parts = name.split(".")
    return next(
        (
            _INSTEAD[part]
            for end in range(len(parts), 0, -1)
            if (part := ".".join(parts[:end])) in _INSTEAD
        ),
        "",
    )


def without(name: str) -> str:
    """The end of an error's text about `name` of Ray's that Troupe has not."""
    instead = instead_of(name)
    return f"; for {name}, use {instead}" if instead else ""
