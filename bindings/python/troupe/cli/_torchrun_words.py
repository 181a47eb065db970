"""What the values of torchrun's options say. Pure."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

OUT, ERR = 1, 2
NPROC_WORDS = ("auto", "cpu", "gpu")


def nodes(text: str) -> tuple[int, int]:
    """(least, most) of `--nnodes`: "4", "2:4". Raises ValueError."""
    parts = text.split(":")
    if len(parts) > 2 or not all(each.strip().isdigit() for each in parts):
        raise ValueError(f"{text!r} is no number of nodes: 4, or 2:4 for two at least and four at most")
    least, most = int(parts[0]), int(parts[-1])
    if least < 1 or most < least:
        raise ValueError(f"{text!r}: " + ("at least one node" if least < 1 else f"the least, {least}, is more than the most, {most}; "
                                          f"{most}:{least} is meant perhaps"))
    return least, most


def processes(text: str) -> int | str:
    """`--nproc-per-node`: a number, or one of NPROC_WORDS. Raises ValueError."""
    if text in NPROC_WORDS:
        return text
    if not text.isdigit() or int(text) < 1:
        raise ValueError(f"{text!r} is no number of processes: 1 or more, or one of {', '.join(NPROC_WORDS)}")
    return int(text)


def streams(text: str) -> Mapping[int, int]:
    """`--tee`, `--redirects`: "3" of all local ranks, as {-1: 3}; "0:1,1:3" of these. Raises ValueError."""
    found: dict[int, int] = {}
    for part in text.split(","):
        rank, colon, which = part.strip().rpartition(":")
        if which not in ("0", "1", "2", "3") or (bool(colon) and not rank.isdigit()) or (not colon and "," in text):
            raise ValueError(f"{text!r} names no streams: 0 none, 1 stdout, 2 stderr, 3 both, of all ranks, or 0:1,1:3 of local ranks 0 and 1")
        found[int(rank) if colon else -1] = int(which)
    return found


def local_ranks(text: str) -> frozenset[int]:
    """`--local-ranks-filter`: "0,1"; none for an empty text, which stands for all. Raises ValueError."""
    parts = [each.strip() for each in text.split(",") if each.strip()]
    if not all(each.isdigit() for each in parts):
        raise ValueError(f"{text!r} is no list of local ranks: 0,1")
    return frozenset(map(int, parts))


@dataclass(frozen=True)
class Console:
    """What of the ranks' output the console shows, as torchrun does: lines as they are; of streams that are teed the rank is in front; not
    those that are redirected, for they are in files alone, and where local ranks are named only theirs."""

    tee: Mapping[int, int] = field(default_factory=dict)
    redirects: Mapping[int, int] = field(default_factory=dict)
    only: frozenset[int] = frozenset()
    role: str = "default"

    def label(self, rank: int, local_rank: int, *, is_error: bool) -> str | None:
        """What stands in front of the lines of this stream; None: it is not shown."""
        stream = ERR if is_error else OUT
        if self.only and local_rank not in self.only:
            return None
        if _of(self.tee, local_rank) & stream:
            return f"[{self.role}{rank}]:"
        return None if _of(self.redirects, local_rank) & stream else ""


def _of(which: Mapping[int, int], local_rank: int) -> int:
    return which.get(local_rank, which.get(-1, 0))
