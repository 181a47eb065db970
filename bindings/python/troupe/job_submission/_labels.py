"""Selectors of jobs by their metadata, as kubectl writes them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_TERM = re.compile(r"(?P<not>!)?(?P<name>[^=!,\s]+)(?:\s*(?P<sign>==|=|!=)\s*(?P<value>[^=!,]*))?")


@dataclass(frozen=True)
class Term:
    """A condition on a job's metadata."""

    name: str
    value: str | None  # None: any
    is_wanted: bool = True

    def accepts(self, metadata: Mapping[str, str]) -> bool:
        """Return True if the metadata meets the condition; a name that is missing has no value."""
        has = self.name in metadata and self.value in (None, metadata[self.name])
        return has is self.is_wanted


def read_selector(text: str) -> tuple[Term, ...]:
    """Return the terms of `team=blue,stage!=dev,owner,!draft`, all of which have to be met. Raises
    ValueError for what is no selector."""
    return tuple(_term(each.strip()) for each in text.split(","))


def _term(text: str) -> Term:
    found = _TERM.fullmatch(text)
    if found is None or (found["not"] and found["sign"]):
        raise ValueError(
            f"{text!r} is no condition: NAME=VALUE, NAME!=VALUE, NAME (there is one) or !NAME, "
            "with commas between"
        )
    value = found["value"].strip() if found["sign"] else None
    return Term(found["name"], value, not found["not"] and found["sign"] != "!=")


def read_pairs(texts: tuple[str, ...]) -> dict[str, str]:
    """Return the metadata that these NAME=VALUE say. Raises ValueError."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not re.fullmatch(r"[^=!,\s]+", name):
            raise ValueError(f"{text!r} is not NAME=VALUE, with a name without spaces, '!' and ','")
        found[name] = value
    return found
