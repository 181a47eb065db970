"""The folder of a run: its checkpoints, each whole or not there, and a line for each report.

    checkpoint_000003/             the files that were reported; one rename makes it
    .reports/checkpoint_000003     its report, written before it: the folder's rename commits both
    progress.jsonl                 all reports; each line ends with a checksum of what is before
                                   it (`_records`)
    .staging-ID/3/rank-0/          what ranks are writing, of one attempt
    .dropped-checkpoint_000001/    on its way out
    .trainer/                      how its trainer is made again (`_restore`)
    .run                           who is at it; locked as long as that process lives

View: the process that trains has it, and no other, on any host that has the file system. Ranks
write into the staging folder alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from troupe._base.identity import new_id
from troupe._cluster import folders, status_lines
from troupe._code import disk
from troupe.train import _metrics, _records
from troupe.train._checkpoint import Checkpoint
from troupe.train._retention import Kept

PROGRESS, OWNER, REPORTS = "progress.jsonl", ".run", ".reports"
_ROOM = (
    "free room there, keep fewer (CheckpointConfig(num_to_keep=...)), or give "
    "RunConfig(storage_path=...) another folder"
)
_HISTORY = (
    "move the file away: the run goes on from its checkpoints, and the history of the "
    "reports between them is lost"
)
_STAGING, _DROPPED, _CHECKPOINT = ".staging-", ".dropped-", "checkpoint_"


def synced(path: Path) -> None:
    """Flush a file or folder to the disk."""
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def write_whole(path: Path, text: str) -> None:
    """The file has this text or what it had, whatever happens meanwhile."""
    with folders.replacement(path) as fresh:
        fresh.write_text(text)
        synced(fresh)
    synced(path.parent)


def stage(staging: Path, nonce: str, number: int, rank: int, source: Path) -> str:
    """Copies a rank's part of a checkpoint into the run's folder, to the disk; where in `staging`
    it is. Raises OSError, with nothing left of it."""
    run = staging.parent
    with contextlib.suppress(FileNotFoundError):
        if _records.said_in((run / OWNER).read_bytes()).get("nonce") == nonce:
            name = f"{number}/rank-{rank}"
            part = staging / name
            copy_to_disk(source, part, f"the checkpoint of rank {rank}")
            return name
    raise FileNotFoundError(
        f"rank {rank} on {socket.gethostname()} does not see the run's folder {run}, where its "
        "checkpoint belongs: with workers on "
        "several hosts RunConfig(storage_path=...) has to be a folder that all of them share"
    )


def copy_to_disk(source: Path, target: Path, what: str) -> None:
    """Copies a folder, `what` in errors; when this returns, all of it is on the disk.

    Raises OSError, with nothing left of it.
    """
    try:
        disk.copy_tree(source, target, what, copy=_copy_file_to_disk, remedy=_ROOM)
        for folder, _, _ in os.walk(target):
            synced(Path(folder))
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise


def _copy_file_to_disk(source: str, target: str) -> str:
    shutil.copy2(source, target)
    synced(Path(target))
    return target


class RunFolder:
    """The folder of one run, opened for a training.

    Raises OSError where it cannot be, BlockingIOError where another process trains in it.
    """

    def __init__(self, storage: str | os.PathLike[str], name: str) -> None:
        self.name = name
        self.path = Path(os.path.abspath(os.path.expanduser(os.fspath(storage)))) / name
        self.nonce = new_id()
        try:
            (self.path / REPORTS).mkdir(parents=True, exist_ok=True)
            self._lock = self._locked()
        except BlockingIOError:
            raise
        except OSError as error:
            raise type(error)(
                error.errno,
                f"the run's folder cannot be written ({error.strerror}); give "
                "RunConfig(storage_path=...) another one",
                str(self.path),
            ) from error
        try:
            self.kept = self._found()
            self.reports = self._cut_off()
            self._progress = (self.path / PROGRESS).open("a")
            self._write_missing()
        except BaseException:
            os.close(self._lock)
            raise

    def close(self) -> None:
        """Lets another process train in it."""
        with contextlib.suppress(OSError):  # a full disk has been said
            os.fsync(self._progress.fileno())
        self._progress.close()
        self._remove_all(_STAGING)
        os.close(self._lock)

    def _locked(self) -> int:
        number = os.open(self.path / OWNER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = _records.said_in(os.read(number, 4096))
            os.close(number)
            raise BlockingIOError(
                f"another process trains in {self.path}: pid {owner.get('pid')} on "
                f"{owner.get('host')}\n  wait for its end, or give "
                "RunConfig(name=...) another name"
            ) from None
        os.ftruncate(number, 0)
        os.write(
            number,
            json.dumps(
                {"pid": os.getpid(), "host": socket.gethostname(), "nonce": self.nonce}
            ).encode(),
        )
        return number

    def _found(self) -> list[Kept]:
        """Return the checkpoints of former trainings, in order; unfinished ones are removed."""
        self._remove_all(_STAGING, _DROPPED)
        found = []
        for record in sorted((self.path / REPORTS).iterdir()):
            if record.suffix == folders.UNFINISHED or not (self.path / record.name).is_dir():
                record.unlink()
                continue
            found.append(_kept_of(record))
        return sorted(found, key=lambda kept: kept.report)

    def _cut_off(self) -> int:
        """The number of the latest report that counts.

        What a process that was killed, or a machine that lost power, left half at the end is cut
        off.
        """
        path = self.path / PROGRESS
        if path.exists() and (size := path.stat().st_size) > (
            whole := _records.read(path, _HISTORY).whole
        ):
            status_lines.say(
                f"troupe.train: run {self.name}: the last {size - whole} bytes of {path} are no "
                "whole report, and are cut off"
            )
            os.truncate(path, whole)
        return max([one.report for one in self.kept], default=0)

    def _write_missing(self) -> None:
        """The line of a checkpoint whose writer ended before it came to that."""
        there = _metrics.reports(lines_of(self.path), ())
        for kept in self.kept:
            if kept.report not in there:
                self._line(
                    {
                        "report": kept.report,
                        "time": time.time(),
                        "checkpoint": kept.name,
                        "metrics": kept.metrics,
                    }
                )

    def _remove_all(self, *prefixes: str) -> None:
        for entry in self.path.iterdir():
            if entry.name.startswith(prefixes):
                shutil.rmtree(entry, ignore_errors=True)

    def restarted(self) -> Path:
        """An attempt begins, from the latest checkpoint: reports after it do not count.

        The attempt's staging folder.
        """
        if (
            self.reports > (after := max([one.report for one in self.kept], default=0))
            or (self.path / PROGRESS).stat().st_size
        ):
            self._line({"restarted_after": after})
        self.reports = after
        self._remove_all(_STAGING)
        staging = self.path / f"{_STAGING}{new_id()[:12]}"
        staging.mkdir()
        return staging

    def latest(self) -> Checkpoint | None:
        """The checkpoint that a restart goes on from."""
        return self.checkpoint(self.kept[-1]) if self.kept else None

    def checkpoint(self, kept: Kept) -> Checkpoint:
        """Return one of the stored checkpoints."""
        return Checkpoint(self.path / kept.name)

    def commit(
        self, metrics: Mapping[str, Any], parts: list[Path], dir_name: str | None
    ) -> Kept | None:
        """A report of all ranks, and the checkpoint that `parts` make together; None without any.

        Raises OSError with nothing changed.
        """
        kept = None
        if parts:
            kept = Kept(dir_name or self._next_name(), self.reports + 1, metrics)
            try:
                self._commit_folder(kept, _merged(parts))
            finally:
                for part in parts:  # leftovers: empty folders, or all of it where the disk is full
                    shutil.rmtree(part, ignore_errors=True)
                    with contextlib.suppress(OSError):
                        part.parent.rmdir()
            self.kept.append(kept)
        self.reports += 1
        self._line(
            {
                "report": self.reports,
                "time": time.time(),
                "checkpoint": kept and kept.name,
                "metrics": _metrics.plain(metrics),
            }
        )
        return kept

    def _next_name(self) -> str:
        numbers = [
            int(tail)
            for one in self.kept
            if one.name.startswith(_CHECKPOINT)
            and (tail := one.name.removeprefix(_CHECKPOINT)).isdigit()
        ]
        return f"{_CHECKPOINT}{max(numbers, default=-1) + 1:06d}"

    def _commit_folder(self, kept: Kept, whole: Path) -> None:
        target = self.path / kept.name
        if target.exists():
            raise FileExistsError(
                f"there is a {kept.name!r} in {self.path} already: report(checkpoint_dir_name=...) "
                "needs another name each time"
            )
        write_whole(
            self.path / REPORTS / kept.name,
            _records.line({"report": kept.report, "metrics": _metrics.plain(kept.metrics)}),
        )
        whole.rename(target)
        synced(self.path)

    def drop(self, kept: Kept) -> None:
        """Removes a checkpoint: its name is free at once, never with half of the files."""
        away = self.path / f"{_DROPPED}{kept.name}"
        with contextlib.suppress(FileNotFoundError):
            (self.path / kept.name).rename(away)
        self.kept.remove(kept)
        shutil.rmtree(away, ignore_errors=True)
        (self.path / REPORTS / kept.name).unlink(missing_ok=True)

    def _line(self, line: Mapping[str, Any]) -> None:
        self._progress.write(_records.line(line))
        self._progress.flush()
        if (
            line.get("checkpoint") or "restarted_after" in line
        ):  # after a loss of power, files behind a checkpoint do not count either
            os.fsync(self._progress.fileno())


def _merged(parts: list[Path]) -> Path:
    """Merge the folders into one; of files with one name the first part's is kept."""
    whole, *others = reversed(parts)
    for part in others:
        for source in _files(part):
            target = whole / source.relative_to(part)
            if target.is_dir() or not target.parent.is_dir() and target.parent.exists():
                raise IsADirectoryError(
                    f"{source.relative_to(part)} of {part.name} is a folder in the checkpoint of "
                    "another rank"
                )
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)
    for folder, _, _ in os.walk(whole):
        synced(Path(folder))
    return whole


def _files(folder: Path) -> Iterator[Path]:
    for inside, _, names in os.walk(folder):
        yield from (Path(inside) / name for name in names)


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a run's progress, without a partial one at its end. Raises
    DamagedFileError."""
    with contextlib.suppress(FileNotFoundError):
        return _records.read(path / PROGRESS, _HISTORY).records
    return []


def history(path: Path) -> list[dict[str, Any]]:
    """The metrics of all reports of a run that count, in their order."""
    return list(
        _metrics.reports(
            lines_of(path), [(one.report, one.metrics) for one in kept_in(path)]
        ).values()
    )


def kept_in(path: Path) -> list[Kept]:
    """The checkpoints of a run that may be trained by another process, in their order.

    Raises DamagedFileError.
    """
    found = []
    for record in sorted((path / REPORTS).iterdir()) if (path / REPORTS).is_dir() else ():
        with contextlib.suppress(OSError):  # may disappear while we look
            if (path / record.name).is_dir():
                found.append(_kept_of(record))
    return sorted(found, key=lambda kept: kept.report)


def _kept_of(record: Path) -> Kept:
    repair = (
        f"remove the file and the folder {record.parent.parent / record.name}: the run goes "
        "on without that checkpoint"
    )
    found = _records.only(record, repair)
    return Kept(record.name, found["report"], found["metrics"])
