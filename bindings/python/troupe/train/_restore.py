"""The stored description of a run's trainer, from which `TorchTrainer.restore` rebuilds it.

    .trainer/trainer.json       configs and the names of datasets: one record with a checksum
                                (`_records`)
    .trainer/loop-DIGEST.pkl    the pickle of train_loop_per_worker
    .trainer/config-DIGEST.pkl  the pickle of train_loop_config

The pickles are written first, and the record, which names them with their SHA-256, makes them
count. Whether a run can be restored is read from the record alone. A pickle is loaded only for what
`restore` was not given, only if its digest is right, and only if it is this user's own file.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from troupe._cluster import status_lines
from troupe._cluster.folders import open_private
from troupe._code import capture, user_main
from troupe.exceptions import DamagedFileError
from troupe.train import _records, _run_folder

FOLDER, RECORD = ".trainer", "trainer.json"
LIMIT_BYTES = 16 << 20
"""Of the pickle of a loop or a config; a larger one is not kept."""
_REPAIR = (
    "make the trainer anew, with the run's name and storage_path: fit() goes on from the "
    "latest checkpoint"
)


@dataclass(frozen=True)
class Kept:
    """The record of a run's trainer; `parts` are the pickles, by name."""

    path: Path
    scaling: Mapping[str, Any]
    failure: Mapping[str, Any]
    checkpoint: Mapping[str, Any]
    torch: Mapping[str, Any]
    worker_runtime_env: Mapping[str, Any] | None
    resume_from: str | None
    datasets: Sequence[str]
    split: Sequence[str]
    parts: Mapping[str, Mapping[str, str]]

    def load(self, name: str) -> Any:
        """Return the loop or the config, as it was pickled; None for a config that the trainer was
        not given.

        Raises:
            ValueError: if it was not kept, or cannot be made again here.
            PermissionError: if the file may be another user's.
            DamagedFileError: if the file is not what was written.
        """
        instead = (
            f"give restore(train_{'loop_per_worker' if name == 'loop' else 'loop_config'}=...)"
        )
        part = self.parts.get(name)
        if part is None:
            return None
        if "file" not in part:
            raise ValueError(
                f"{self.path} does not have the trainer's {name}, {part['why']}: {instead}"
            )
        file = self.path / FOLDER / part["file"]
        data = _read_own(file, instead)
        if hashlib.sha256(data).hexdigest() != part["sha256"]:
            raise DamagedFileError(
                file,
                0,
                f"its {len(data)} bytes are not what was written",
                f"{instead}, or {_REPAIR}",
            )
        try:
            return user_main.loads(data)[0]
        except Exception as error:  # unpickling may raise anything, such as for a missing module
            raise ValueError(
                f"the trainer's {name} in {file} cannot be made again here "
                f"({type(error).__name__}: {error}): {instead}"
            ) from error


def keep(folder: Path, *, loop: Any, config: Any, **said: Any) -> None:
    """Keep a trainer in its run's folder; `said` are the other fields of `Kept`.

    Where that fails a line says so, and the training goes on.
    """
    try:
        inside = folder / FOLDER
        inside.mkdir(mode=0o700, exist_ok=True)
        parts = {
            "loop": _written(inside, "loop", loop),
            **({} if config is None else {"config": _written(inside, "config", config)}),
        }
        record = {**{name: _plain(value) for name, value in said.items()}, "parts": parts}
        _run_folder.write_whole(inside / RECORD, _records.line(record))
        for each in inside.iterdir():
            if each.name.endswith(".pkl") and each.name not in {
                part.get("file") for part in parts.values()
            }:
                each.unlink(missing_ok=True)
    except (OSError, TypeError, ValueError) as error:
        with contextlib.suppress(OSError):
            (folder / FOLDER / RECORD).unlink(
                missing_ok=True
            )  # the record of an earlier trainer, of which not all may be left
        status_lines.say(
            f"troupe.train: run {folder.name}: TorchTrainer.restore will not find its trainer in "
            f"{folder}: {error}"
        )


def can_restore(path: Path) -> bool:
    """Return True if there is a record of a trainer, whole or damaged, in the folder of a run."""
    return (path / FOLDER / RECORD).is_file()


def read(path: Path) -> Kept:
    """Return what a run's folder says of its trainer.

    Raises:
        ValueError: if there is no such record.
        DamagedFileError: if the record is not what was written.
    """
    file = path / FOLDER / RECORD
    try:
        record = _records.only(file, _REPAIR)
    except (FileNotFoundError, NotADirectoryError):
        raise ValueError(
            f"TorchTrainer.restore({str(path)!r}): there is no trainer of a run in that folder, "
            "which is storage_path/name of a RunConfig "
            "whose fit() has begun"
        ) from None
    missing = [each.name for each in fields(Kept) if each.name not in ("path", *record)]
    if missing:
        raise DamagedFileError(file, 0, f"it says nothing of {', '.join(missing)}", _REPAIR)
    return Kept(
        path=path, **{each.name: record[each.name] for each in fields(Kept) if each.name != "path"}
    )


def fields_of(config: Any) -> dict[str, Any]:
    """Return the fields of a config that are not as by default."""
    return {
        each.name: value
        for each in fields(config)
        if (value := getattr(config, each.name)) != each.default
    }


def made(cls: type, said: Mapping[str, Any]) -> Any:
    """Return the config that has these fields.

    Fields of a later version, which this one does not know, are left out.
    """
    known = {each.name for each in fields(cls)}
    return cls(**{name: value for name, value in said.items() if name in known})


def _written(inside: Path, name: str, value: Any) -> dict[str, str]:
    """Write a pickle, and return what the record says of it."""
    try:
        data = capture.dumps(value, (), {}, what=f"the trainer's {name}", limit=LIMIT_BYTES)
    except Exception as error:  # pickling may raise anything; or the pickle is too large
        return {"why": f"which cannot be kept ({str(error).splitlines()[0]})"}
    digest = hashlib.sha256(data).hexdigest()
    file = inside / f"{name}-{digest[:16]}.pkl"
    with open(file, "wb", opener=open_private) as out:
        out.write(data)
    _run_folder.synced(file)
    return {"file": file.name, "sha256": digest}


def _read_own(file: Path, instead: str) -> bytes:
    """Return the bytes of a file that nobody but this user can have written."""
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with open(descriptor, "rb") as opened:
        info = os.fstat(descriptor)
        if info.st_uid != os.geteuid() or info.st_mode & 0o022:
            raise PermissionError(
                f"{file} may have been written by another user (owner {info.st_uid}, mode "
                f"{info.st_mode & 0o777:04o}), and a pickle of "
                f"somebody else's is not loaded: {instead}"
            )
        return opened.read()


def _plain(value: Any) -> Any:
    """Return what JSON has for a value: mappings as dicts, other collections as lists.

    Raises TypeError for what JSON cannot say.
    """
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise TypeError(f"{name!r} is no text, and a key of what is to be kept")
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise TypeError(f"{value!r} cannot be kept")
