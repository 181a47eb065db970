"""A `param_space` as `sweep.json` has it: JSON, so that a sweep can be looked at without unpickling
anything.

Domains are written with their fields. A value that JSON does not have is written as the key by
which the journal keeps it: it can be told from others, and is not loaded.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from troupe.exceptions import TroupeError
from troupe.tune._journal import values
from troupe.tune._journal.journal import digest_of, object_data
from troupe.tune._search.domains import (
    Categorical,
    Domain,
    Float,
    Function,
    Integer,
    Normal,
    grid_values,
)

JSON_BYTES_MAX = 1 << 20
_KIND, _ANY = "domain", "any"
_NUMBERS: dict[str, type[Domain]] = {each.__name__: each for each in (Float, Integer, Normal)}


@dataclasses.dataclass(frozen=True)
class NotLoaded:
    """An object of a configuration or a space that was not unpickled.

    Two with the same key are the same object.
    """

    key: str


def encoded(space: Any) -> Any:
    """Return the space as JSON, None if it takes more than `JSON_BYTES_MAX`."""
    made = values.encoded(_plain(space), _keep)
    return made if len(json.dumps(made)) <= JSON_BYTES_MAX else None


def decoded(space: Any) -> Any:
    """Return the space that was encoded.

    Raises LookupError, TypeError or ValueError for JSON that is none.
    """
    return values.decoded(space, _load)


def _plain(node: Any) -> Any:
    """Return a copy with the containers that configurations have: dict for each mapping, lists,
    tuples, and lists as the values of grids."""
    grid = grid_values(node)
    if grid is not None:
        return {"grid_search": [_plain(each) for each in grid]}
    if isinstance(node, Mapping):
        return {key: _plain(value) for key, value in node.items()}
    if type(node) in (list, tuple):
        return type(node)(_plain(value) for value in node)
    return values.plain_scalars(node)


def _keep(part: Any) -> Any:
    if not isinstance(part, Domain):
        try:
            return digest_of(object_data(part))
        except TroupeError:  # no configuration in the journal has it either
            return ""
    if isinstance(part, Categorical):
        return {
            _KIND: Categorical.__name__,
            "categories": [values.encoded(_plain(each), _keep) for each in part.categories],
        }
    kind = type(part).__name__
    if _NUMBERS.get(kind) is not type(part) or part.fault() is not None:
        return {_KIND: _ANY}
    return {
        _KIND: kind,
        **{
            each.name: values.plain_scalars(getattr(part, each.name))
            for each in dataclasses.fields(part)  # type: ignore[arg-type]
        },
    }


def _load(inside: Any) -> Any:
    if isinstance(inside, str):
        return NotLoaded(inside)
    kind, fields = inside[_KIND], {name: value for name, value in inside.items() if name != _KIND}
    if kind == Categorical.__name__:
        return Categorical([decoded(each) for each in fields["categories"]])
    return Function(_unknown) if kind == _ANY else _NUMBERS[kind](**fields)


def _unknown() -> Any:
    raise RuntimeError(
        "what a function of a space returns is known to the sweep's own program alone"
    )
