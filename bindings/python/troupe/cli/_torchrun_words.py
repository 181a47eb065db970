"""Values of torchrun's options, parsed. Pure."""

from __future__ import annotations

import signal
import string
from collections.abc import Mapping
from dataclasses import dataclass, field

OUT, ERR = 1, 2
NPROC_WORDS = ("auto", "cpu", "gpu")
DEFAULT_SIGNALS = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"  # torchrun's own


def nodes(text: str) -> tuple[int, int]:
    """(least, most) of `--nnodes`: "4", "2:4". Raises ValueError."""
    parts = text.split(":")
    if len(parts) > 2 or not all(each.strip().isdigit() for each in parts):
        raise ValueError(
            f"{text!r} is no number of nodes: 4, or 2:4 for two at least and four at most"
        )
    least, most = int(parts[0]), int(parts[-1])
    if least < 1 or most < least:
        raise ValueError(
            f"{text!r}: "
            + (
                "at least one node"
                if least < 1
                else f"the least, {least}, is more than the most, {most}; "
                f"{most}:{least} is meant perhaps"
            )
        )
    return least, most


def processes(text: str) -> int | str:
    """`--nproc-per-node`: a number, or one of NPROC_WORDS. Raises ValueError."""
    if text in NPROC_WORDS:
        return text
    if not text.isdigit() or int(text) < 1:
        raise ValueError(
            f"{text!r} is no number of processes: 1 or more, or one of {', '.join(NPROC_WORDS)}"
        )
    return int(text)


def streams(text: str) -> Mapping[int, int]:
    """`--tee`, `--redirects`: "3" of all local ranks, as {-1: 3}; "0:1,1:3" of these.

    Raises ValueError.
    """
    found: dict[int, int] = {}
    for part in text.split(","):
        rank, colon, which = part.strip().rpartition(":")
        if (
            which not in ("0", "1", "2", "3")
            or (bool(colon) and not rank.isdigit())
            or (not colon and "," in text)
        ):
            raise ValueError(
                f"{text!r} names no streams: 0 none, 1 stdout, 2 stderr, 3 both, of all ranks, or "
                "0:1,1:3 of local ranks 0 and 1"
            )
        found[int(rank) if colon else -1] = int(which)
    return found


def local_ranks(text: str) -> frozenset[int]:
    """`--local-ranks-filter`: "0,1"; none for an empty text, which stands for all.

    Raises ValueError.
    """
    parts = [each.strip() for each in text.split(",") if each.strip()]
    if not all(each.isdigit() for each in parts):
        raise ValueError(f"{text!r} is no list of local ranks: 0,1")
    return frozenset(map(int, parts))


def filters(text: str) -> tuple[str, ...]:
    """Parts of `--duplicate-stdout-filters`: "apple,orange"; two commas stand for one of a part's
    own."""
    return tuple(part.replace("\0", ",") for part in text.replace(",,", "\0").split(",") if part)


def signals(text: str) -> tuple[signal.Signals, ...]:
    """Signals of `--signals-to-handle`: "SIGTERM,SIGUSR1".

    Raises ValueError for a name that is no signal, or one that no program can handle.
    """
    found = []
    for name in filter(None, (each.strip() for each in text.split(","))):
        number = signal.Signals.__members__.get(name)
        if number is None:
            raise ValueError(f"{name!r} is no signal: {DEFAULT_SIGNALS}")
        if number in (signal.SIGKILL, signal.SIGSTOP):
            raise ValueError(f"no program can handle {name}: {DEFAULT_SIGNALS}")
        found.append(number)
    return tuple(found)


@dataclass(frozen=True)
class Console:
    """Streams of the ranks that the console shows, and their form, as torchrun has them.

    Lines are shown as they are. Lines of teed streams have a prefix. Redirected streams are in
    files alone, and where local ranks are named only theirs are shown. `template` is the text of
    TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE.
    """

    tee: Mapping[int, int] = field(default_factory=dict)
    redirects: Mapping[int, int] = field(default_factory=dict)
    only: frozenset[int] = frozenset()
    role: str = "default"
    template: str = ""

    def label(self, rank: int, local_rank: int, *, is_error: bool) -> str | None:
        """Return the prefix of this stream's lines, as it is; None if the stream is not shown."""
        stream = ERR if is_error else OUT
        if self.only and local_rank not in self.only:
            return None
        if _of(self.tee, local_rank) & stream:
            return self._prefix(rank, local_rank)
        return None if _of(self.redirects, local_rank) & stream else ""

    def is_teed(self, local_rank: int, *, is_error: bool) -> bool:
        """Return True if the stream is shown with a prefix."""
        return bool(_of(self.tee, local_rank) & (ERR if is_error else OUT)) and not (
            self.only and local_rank not in self.only
        )

    def _prefix(self, rank: int, local_rank: int) -> str:
        if self.template:
            return string.Template(self.template).safe_substitute(
                role_name=self.role, rank=rank, local_rank=local_rank
            )
        return f"[{self.role}{local_rank}]:"


def _of(which: Mapping[int, int], local_rank: int) -> int:
    return which.get(local_rank, which.get(-1, 0))
