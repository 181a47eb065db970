"""Pure.

Whether a rank waits for ranks that have returned without coming, and what to say of it: in the
words of head/core/launched/gang/returned.cc.

A word says what a rank waits in (`returned_peers.words`); a record has what a rank that returned
has begun, by key (`group_counts.snapshot`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from troupe._process.returned import group_counts

RANKS_SHOWN_MAX = 8


def begun(record: Mapping[str, int], word: Mapping[str, Any]) -> int | None:
    """Return how many of the word's operations a rank has begun; None: that is not known."""
    key, name = word["key"], word["key"].split(" ")[0]
    if word["kind"] == "collective":
        return record.get(key)
    if word["kind"] == "making":
        return record.get(key, 0)
    if group_counts.making_key(name) not in record:
        return None
    count = record.get(key, 0)
    if word["kind"] == "send":  # a receive from any rank may have taken the message
        count += record.get(f"{key.rsplit(' ', 1)[0]} any", 0)
    return count


def missing(word: Mapping[str, Any], records: Mapping[int, Mapping[str, int]]) -> dict[int, int]:
    """Return what those ranks have begun that the word waits for and that can never come; {}: there
    is none. `records`: of ranks that have returned."""
    counts = {rank: begun(records[rank], word) for rank in word["awaited"] if rank in records}
    known = {rank: count for rank, count in counts.items() if count is not None}
    if word["kind"] == "receive_any":
        all_said = len(known) == len(word["awaited"])
        return known if all_said and sum(known.values()) < word["operation"] else {}
    return {rank: count for rank, count in known.items() if count < word["operation"]}


def text_of(word: Mapping[str, Any], counts: Mapping[int, int], waiting: Sequence[int]) -> str:
    """Return the verdict.

    `counts`: as `missing` gives it; `waiting`: the ranks that wait in the word's operation.
    """
    first, *others = sorted(counts)
    who, one, number = _named(waiting), len(waiting) == 1, word["operation"]
    op = f" ({word['op']})" if word["op"] else ""
    group = f" of process group {word['torch_group']}"
    if word["kind"] == "collective":
        said = (
            f"after {_many(counts[first], 'operation')}; {who} {'waits' if one else 'wait'} for "
            f"it in operation {number}{op}{group}"
        )
    elif word["kind"] == "making":
        said = (
            f"without coming to process group {word['torch_group']}, which {who} "
            f"{'makes' if one else 'make'}{op}"
        )
    elif word["kind"] == "send":
        said = (
            f"after {_many(counts[first], 'receive')} from {who}, which waits for it in send "
            f"{number}{group}"
        )
    else:
        said = (
            f"after {_many(counts[first], 'send')} to {who}, which waits for it in receive "
            f"{number}{group}"
        )
    return f"rank {first} returned {said}" + (
        f"; {_named(others)} returned before it, too" if others else ""
    )


def _named(ranks: Sequence[int]) -> str:
    each = sorted(ranks)
    more = f" and {len(each) - RANKS_SHOWN_MAX} more" if len(each) > RANKS_SHOWN_MAX else ""
    return f"rank{'s' if len(each) > 1 else ''} {', '.join(map(str, each[:RANKS_SHOWN_MAX]))}{more}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
