"""The folder of a sweep.

sweep.db           the journal
tuner.pkl          what Tuner was given: how to go on with it
trainable.pkl      what its trials run, where that can be kept: how a command goes on with it
sweep.json         what is compared, how trials are called, and the space: for whoever looks at
                   it without unpickling anything
.engine            who is at it; locked as long as that process lives
.earlier-ID/       these files of an earlier sweep of the same name, whose trials' folders are
                   beside those of this one: under Ray's names
NAME_OF_A_TRIAL/   checkpoints, and whatever the trial writes there; made when there is something
                   to write
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from queue import Queue
from typing import Any

from troupe import exceptions
from troupe._base.identity import new_id
from troupe._code import capture, user_main
from troupe.train._run_folder import synced
from troupe.tune._journal.journal import FILE, Journal, JournalError
from troupe.tune._journal.owner import Owner

TUNER, TRAINABLE, ABOUT = "tuner.pkl", "trainable.pkl", "sweep.json"
EARLIER = ".earlier-"
_DROPPED = ".dropped-"
_SEAL = b"troupe:sha256:"  # and the digest: after the end of a pickle, where nobody reads on
_DROPS_MAX = 10_000


def is_sweep(folder: Path) -> bool:
    """Return True if there is a sweep that can be resumed."""
    return (folder / FILE).exists() and (folder / TUNER).exists()


def _put_aside(folder: Path) -> None:
    """Move the files of a sweep that nobody runs into a folder of their own.

    Each has its second name before it loses its first: nothing is lost by an end in between, after
    which this is done again.
    """
    try:
        known = json.loads((folder / ABOUT).read_bytes())["sweep_id"]
    except (OSError, ValueError, LookupError, TypeError):  # not known of a file that is damaged
        known = new_id()[:5]
    with contextlib.suppress(JournalError):  # a damaged one is put aside as it is
        Journal(folder, create=False).close()  # the rest of its log is moved into the file
    away = folder / f"{EARLIER}{known}"
    away.mkdir(exist_ok=True)
    files = [
        path
        for name in (f"{FILE}-wal", FILE, TRAINABLE, ABOUT, TUNER)
        if (path := folder / name).exists()
    ]
    for path in files:
        (away / path.name).unlink(missing_ok=True)
        try:
            os.link(path, away / path.name)
        except OSError:  # a file system without second names
            shutil.copy2(path, away / path.name)
            synced(away / path.name)
    synced(away)
    for path in (
        files
    ):  # the journal first, and its log before it: without it there is no sweep here any more
        path.unlink()
    synced(folder)


class SweepFolder:
    """Opened by an engine.

    `beside`: a new sweep may have the name of one that is over or was left, whose files are put
    aside first. Raises FileExistsError for a new sweep where there is one, FileNotFoundError for an
    old one where there is none, BlockingIOError where another process is at it, another OSError
    where the folder cannot be written.
    """

    def __init__(
        self, path: Path, *, new: bool, served: bool = False, beside: bool = False
    ) -> None:
        self.path = path
        if new and not beside and is_sweep(path):
            raise FileExistsError(
                f"there is a sweep in {path} already: Tuner.restore({str(path)!r}, "
                "trainable).fit() goes on with it, and "
                "RunConfig(name=...) with another name begins a new one"
            )
        if not new and not is_sweep(path):
            raise FileNotFoundError(
                f"there is no sweep in {path}: RunConfig's storage_path and name, joined, are the "
                "folder of one"
            )
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._owner = Owner(path, served=served)
        except BlockingIOError:
            raise
        except OSError as error:
            raise type(error)(
                error.errno,
                f"the sweep's folder cannot be written ({error.strerror}); give "
                "RunConfig(storage_path=...) another one",
                str(path),
            ) from error
        try:
            if new and beside and is_sweep(path):
                _put_aside(path)
            self.journal = Journal(path, create=new)
        except BaseException:
            self._owner.close()
            raise
        self._drops: Queue[Path | None] = Queue(_DROPS_MAX)
        self._dropper: threading.Thread | None = None

    def keep_tuner(self, tuner: Any) -> None:
        """Writes down what the sweep was asked for, whole or not at all.

        Raises LaunchError for what cannot be pickled.
        """
        self._keep_sealed(TUNER, capture.dumps(None, (tuner,), {}, what="Tuner"))
        synced(self.path)

    def keep_trainable(self, trainable: Any) -> None:
        """Writes down what the trials run; nothing where that is too large or cannot be pickled:
        then whoever goes on with the sweep has to give it."""
        with contextlib.suppress(exceptions.TroupeError, TypeError):
            self._keep_sealed(
                TRAINABLE, capture.dumps(None, (trainable,), {}, what="the trials' function")
            )

    def keep_about(self, about: Mapping[str, Any]) -> None:
        """Writes down what those need who look at the sweep."""
        self._keep(ABOUT, json.dumps(about).encode())

    def _keep_sealed(self, name: str, data: bytes) -> None:
        self._keep(name, data + _SEAL + hashlib.sha256(data).digest())

    def _keep(self, name: str, data: bytes) -> None:
        beside = self.path / f"{name}.new"
        beside.write_bytes(data)
        synced(beside)
        beside.replace(self.path / name)

    def drop(self, trial_folder: str, checkpoint: str) -> None:
        """Removes a checkpoint: its name is free at once, its files go on a thread of their own."""
        source = self.path / trial_folder / checkpoint
        away = source.with_name(f"{_DROPPED}{checkpoint}")
        try:
            source.rename(away)
        except FileNotFoundError:
            return
        if self._dropper is None:
            self._dropper = threading.Thread(
                target=self._remove_dropped, name="troupe-sweep-drops", daemon=True
            )
            self._dropper.start()
        self._drops.put(away)

    def _remove_dropped(self) -> None:
        while (path := self._drops.get()) is not None:
            shutil.rmtree(path, ignore_errors=True)

    def close(self) -> None:
        """Another process may go on with the sweep."""
        if self._dropper is not None:
            self._drops.put(None)
            self._dropper.join()
        self.journal.close()
        self._owner.close()


def _unsealed(path: Path) -> bytes:
    """Return the pickle in a file.

    Raises JournalError where it is not what was written; one of an older version has no digest to
    tell by.
    """
    data = path.read_bytes()
    seal = len(data) - len(_SEAL) - hashlib.sha256().digest_size
    if seal >= 0 and data[seal:].startswith(_SEAL):
        whole = hashlib.sha256(data[:seal]).digest() == data[seal + len(_SEAL) :]
    else:
        seal, whole = len(data), data[:1] == b"\x80" and data[-1:] == b"."
    if not whole:
        raise JournalError(
            f"{path} ({len(data)} bytes, from offset 0 on) is not what was written: the file is "
            "damaged\n  restore it from a copy, or begin "
            "the sweep anew under another RunConfig(name=...)"
        )
    return data[:seal]


def tuner_of(folder: Path) -> Any:
    """Return the Tuner that a sweep was started with.

    Raises FileNotFoundError where there is no sweep, what unpickling raises.
    """
    import cloudpickle

    if not is_sweep(folder):
        raise FileNotFoundError(
            f"there is no sweep in {folder}: RunConfig's storage_path and name, joined, are the "
            "folder of one"
        )
    return cloudpickle.loads(_unsealed(folder / TUNER))[1][0]


def trainable_of(folder: Path) -> Any:
    """Return the function or class that the trials of a sweep run.

    Raises FileNotFoundError where it could not be kept, what unpickling raises.
    """
    if not (folder / TRAINABLE).exists():
        raise FileNotFoundError(
            f"the sweep in {folder} has not kept what its trials run, which was too large or could "
            "not be pickled: "
            f"Tuner.restore({str(folder)!r}, trainable).fit() goes on with it"
        )
    return user_main.loads(_unsealed(folder / TRAINABLE))[1][0]


def absolute(path: str | os.PathLike[str]) -> Path:
    """Return a person's path as an absolute one."""
    return Path(os.path.abspath(os.path.expanduser(os.fspath(path))))
