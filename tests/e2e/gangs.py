"""Launches whose ranks wait for a word: what a test needs to end one of them, or what runs it, at a
known moment.

    gang = Gang(tmp_path, 3)                  # submitted, and all three ranks are running
    gang.tell(1, "os._exit(3)")               # rank 1 evaluates this; what it gives is its result
    gang.pids[1], gang.nodes[1]               # its process, the name of its node
    error = gang.failure(LaunchError)         # what the caller gets
    gang.exit_codes()                         # of all ranks, once all are known

A rank waits in the open of a FIFO, so nothing here polls in a rank or sleeps.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TextIO, TypeVar

import pytest
from conftest import eventually, running

from troupe.launch import distributed

Error = TypeVar("Error", bound=BaseException)


def live(folder: str) -> Any:
    """A rank's life: says that it is there, then does what it is told."""
    import os
    import signal
    import subprocess
    import sys
    from pathlib import Path

    me = Path(folder, f"{os.environ['TROUPE_EPOCH']}-{os.environ['RANK']}")
    os.mkfifo(f"{me}.word")
    print(f"last words of rank {os.environ['RANK']}", file=sys.stderr, flush=True)
    Path(f"{me}.new").write_text(str(os.getpid()))
    os.rename(f"{me}.new", f"{me}.pid")
    with open(f"{me}.word") as word:
        said = word.read()
    return eval(
        said,
        {
            "os": os,
            "signal": signal,
            "subprocess": subprocess,
            "sys": sys,
            "Path": Path,
            "rank": me.name,
        },
    )


class Gang:
    """A launch of `live` on `ranks` ranks; `options` go to the decorator."""

    def __init__(
        self,
        folder: Path,
        ranks: int,
        decorator: Any = distributed,
        function: Any = live,
        **options: Any,
    ) -> None:
        self.folder = folder
        self.ranks = ranks
        folder.mkdir(exist_ok=True)
        self.handle = decorator(**{"processes": ranks, **options}, remote=True)(function).submit(
            str(folder)
        )
        self.begun(1)

    def begun(self, epoch: int) -> None:
        """Waits until every rank of this epoch is there."""
        self.epoch = epoch
        files = [self.folder / f"{epoch}-{rank}.pid" for rank in range(self.ranks)]
        eventually(
            lambda: self.handle.done() or all(file.exists() for file in files),
            what=f"epoch {epoch}",
        )
        assert not self.handle.done(), self.handle.status()
        self.pids = [int(file.read_text()) for file in files]
        self.nodes = [each["node"] for each in self.handle.status()["rank_infos"]]

    def tell(self, rank: int, word: str) -> None:
        """Lets this rank evaluate `word`."""
        with self.listening(rank) as out:
            out.write(word)

    def listening(self, rank: int) -> TextIO:
        """Waits until this rank listens, and returns where its word is to be written: it may be
        stopped before."""
        fifo = self.folder / f"{self.epoch}-{rank}.word"

        def opened() -> int | None:
            try:
                return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:  # not in its open yet
                return None

        return os.fdopen(eventually(opened, what="a rank that listens"), "w")

    def failure(self, kind: type[Error], timeout: float = 60) -> Error:
        """The error that the caller gets."""
        with pytest.raises(kind) as caught:
            self.handle.result(timeout)
        return caught.value

    def ends(self) -> dict[int, tuple[str, int]]:
        """Rank -> (outcome, exit code), of those that are known."""
        return {
            each["rank"]: (each["outcome"], each["exit_code"])
            for each in self.handle.status()["rank_infos"]
            if each["outcome"] != "none"
        }

    def exit_codes(self) -> list[int]:
        """By rank, once all are known."""
        eventually(
            lambda: len(self.ends()) == self.ranks, what=f"the end of all ranks ({self.ends()})"
        )
        return [code for _, (_, code) in sorted(self.ends().items())]

    def alive(self) -> list[int]:
        """Ranks whose processes are there."""
        return [rank for rank, pid in enumerate(self.pids) if running(pid)]
