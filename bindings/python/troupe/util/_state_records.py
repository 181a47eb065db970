"""Records of `ray.util.state`, and which of them were asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

LIMIT = 100


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda have, want: str(have).lower() == str(want).lower(),
    "!=": lambda have, want: str(have).lower() != str(want).lower(),
}


class StateRecord(dict[str, Any]):
    """A record of an entity: `record["state"]` and `record.state` are the same."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"this record has no {name!r}; it has {', '.join(self)}") from None


def chosen(
    records: list[StateRecord], filters: Sequence[tuple[str, str, Any]] | None, limit: int
) -> list[StateRecord]:
    """Return the records that satisfy every (key, "=" or "!=", value), the first `limit` of
    them."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ValueError(f"limit must be a whole number of at least 1, not {limit!r}")
    for each in filters or ():
        if len(each) != 3 or each[1] not in _OPERATORS:
            raise ValueError(f"a filter is (key, '=' or '!=', value), not {each!r}")
        key, operator, wanted = each
        if records and key not in records[0]:
            raise ValueError(
                f"nothing can be filtered by {key!r}; there are {', '.join(records[0])}"
            )
        records = [record for record in records if _OPERATORS[operator](record[key], wanted)]
    return records[:limit]
