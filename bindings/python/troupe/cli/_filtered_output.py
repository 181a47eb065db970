"""`--duplicate-stdout-filters` and `--duplicate-stderr-filters`: chosen lines of teed streams in a
file of their own, while they come."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Sequence
from typing import IO, Any

from troupe._cluster import status_lines
from troupe._code import torchrun_files as files
from troupe.cli._rank_files import RankFiles
from troupe.cli._torchrun_words import Console


class FilteredOutput:
    """The filtered files of one launch: attempt_N/filtered_{stdout,stderr}.log, one of each for
    each node and attempt."""

    def __init__(
        self,
        rank_files: RankFiles,
        console: Console,
        *,
        out: Sequence[str],
        err: Sequence[str],
        quiet: bool,
    ) -> None:
        self._rank_files, self._console, self._quiet = rank_files, console, quiet
        self._filters = {False: tuple(out), True: tuple(err)}
        self._open: dict[str, IO[str]] = {}
        self._failed = False
        self._lock = threading.Lock()  # each attempt is followed on a thread of its own

    def hear(self, info: dict[str, Any], rank: int, is_error: bool, lines: list[str]) -> None:
        """Write those of a stream's lines that one of its filters is in, with the prefix that the
        console shows."""
        each = next((each for each in info["rank_infos"] if each["rank"] == rank), None)
        filters = self._filters[is_error]
        if (
            each is None
            or not filters
            or not self._console.is_teed(each["local_rank"], is_error=is_error)
        ):
            return
        prefix = self._console.label(rank, each["local_rank"], is_error=is_error) or ""
        chosen = [f"{prefix}{line}\n" for line in lines if any(part in line for part in filters)]
        path = os.path.join(
            self._rank_files.attempt_folder(info, each),
            files.FILTERED_ERR if is_error else files.FILTERED_OUT,
        )
        with self._lock:
            self._write(path, chosen)

    def close(self) -> None:
        """Close the files. Nothing is heard after it."""
        with self._lock:
            for file in self._open.values():
                with contextlib.suppress(
                    OSError
                ):  # already reported when a line could not be written
                    file.close()
            self._open.clear()

    def _write(self, path: str, lines: list[str]) -> None:
        if self._failed:
            return
        try:
            if path not in self._open:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                self._open[path] = open(path, "w", encoding="utf-8", errors="replace")
            self._open[path].writelines(lines)
            self._open[path].flush()
        except OSError as error:
            self._failed = True
            status_lines.say(
                f"troupe: {path} could not be written: {error.strerror}; its lines are in the "
                "ranks' own files",
                quiet=self._quiet,
            )
