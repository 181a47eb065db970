"""A comparison of a program's losses under Troupe with those under torchrun.

Pure: texts and numbers in, values out.

Rule: bitwise the same as of a run by torchrun. Where they are not, a second run by torchrun says
what the program itself leaves open: if its two runs are the same, Troupe's had to be; else Troupe's
may be as far from the first as twice the largest difference of those two.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

_LINE = re.compile(r'\{"rank": \d+, "losses": \[[^\]]*\]\}')
Losses = Mapping[int, Sequence[str]]  # by rank; each is float.hex


@dataclass(frozen=True)
class Verdict:
    """`why`: what is wrong, "" where nothing is.

    `difference` is Troupe's largest, `allowed` the largest that it may be.
    """

    why: str = ""
    difference: float = 0.0
    allowed: float = 0.0


def said(printed: str, ranks: int) -> Losses:
    """Parse the ranks' output, a line of JSON each, among other lines.

    Raises ValueError unless it was each of so many once, with losses that are finite numbers.

    torchrun's ranks write to one pipe without a buffer: a line is one write, and its end another,
    so that two lines may follow each other at once.
    """
    each = [json.loads(found[0]) for found in _LINE.finditer(printed)]
    found = sorted(one["rank"] for one in each)
    if found != list(range(ranks)):
        raise ValueError(f"there are {ranks} ranks, and those that said their losses are {found}")
    losses = {one["rank"]: list(one["losses"]) for one in each}
    for rank, numbers in losses.items():
        if not numbers or not all(math.isfinite(float.fromhex(number)) for number in numbers):
            raise ValueError(f"rank {rank}: these are no losses: {numbers}")
    return losses


def largest_difference(one: Losses, other: Losses) -> tuple[float, str]:
    """Return the largest difference of two losses with the same rank and place; and where it is.

    Infinite where the runs have not as many ranks or losses.
    """
    sizes = [{rank: len(numbers) for rank, numbers in sorted(run.items())} for run in (one, other)]
    if sizes[0] != sizes[1]:
        return math.inf, f"there are other numbers of losses by rank: {sizes[0]} and {sizes[1]}"
    pairs = [
        (abs(float.fromhex(a) - float.fromhex(b)), f"rank {rank}, loss {place}: {a} and {b}")
        for rank in one
        for place, (a, b) in enumerate(zip(one[rank], other[rank], strict=True))
    ]
    return max(pairs, key=lambda pair: pair[0])


def verdict(torchrun: Losses, troupe: Losses, torchrun_again: Callable[[], Losses]) -> Verdict:
    """By the rule above; the second run is asked for only where it decides."""
    if torchrun == troupe:
        return Verdict()
    difference, where = largest_difference(torchrun, troupe)
    between, _ = largest_difference(torchrun, torchrun_again())
    allowed = 2 * between
    if difference <= allowed and math.isfinite(allowed):
        return Verdict(difference=difference, allowed=allowed)
    own = (
        f"two runs by torchrun differ by {between:.3g} at most"
        if between
        else "two runs by torchrun are bitwise the same"
    )
    return Verdict(
        f"torchrun and Troupe differ by {difference:.3g}, {own}; {where}", difference, allowed
    )
