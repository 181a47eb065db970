"""Checkpoints: folders of files that a training can go on from."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from troupe import _pickled
from troupe._cluster import folders
from troupe._code import disk

METADATA = ".metadata.json"
"""Ray's name of the file in the folder that has the metadata."""


class Checkpoint:
    """A folder of files, by its path; what is in them is the program's own affair.

    Making one copies and reads nothing.

    `path`: absolute. What `report()` has taken lies in the run's folder, whole, and stays there
    until it is pruned. As Ray's `ray.train.Checkpoint`, of folders alone: a `filesystem` of pyarrow
    is refused.

        checkpoint = Checkpoint.from_directory("/tmp/state")
        with checkpoint.as_directory() as folder:
            state = torch.load(os.path.join(folder, "model.pt"))
    """

    def __init__(self, path: str | os.PathLike[str], filesystem: None = None) -> None:
        if filesystem is not None:
            raise ValueError(
                f"Checkpoint(filesystem={filesystem!r}): a checkpoint is a folder of this machine "
                "or of a mounted file system, "
                "without filesystem="
            )
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"a checkpoint is of the path of a folder, not of {path!r}")
        self.path = os.path.abspath(os.path.expanduser(os.fspath(path)))
        self._host = socket.gethostname()

    @classmethod
    def from_directory(cls, path: str | os.PathLike[str]) -> Checkpoint:
        """A checkpoint of the folder as it lies there."""
        return cls(path)

    @property
    def filesystem(self) -> None:
        """None: the path is one of the machine's."""
        return None

    def to_directory(self, path: str | os.PathLike[str] | None = None) -> str:
        """Copies the files into `path`, made if it is not there, or into a new temporary folder,
        which is the caller's to remove. Its path.

        All of them come, or none. Blocks. Raises FileNotFoundError where this host does not see the
        checkpoint, OutOfDiskError, an OSError, with the bytes that are needed and free.
        """
        source = self._folder()
        target = (
            tempfile.mkdtemp(prefix="checkpoint-")
            if path is None
            else os.path.abspath(os.path.expanduser(os.fspath(path)))
        )
        try:
            with disk.arriving(
                Path(target),
                repr(self),
                needed=disk.size_of(source),
                remedy="free room there, or give to_directory() another path",
            ) as made:
                shutil.copytree(source, made, dirs_exist_ok=True)
        except BaseException:
            if path is None:
                shutil.rmtree(target, ignore_errors=True)
            raise
        return target

    @contextlib.contextmanager
    def as_directory(self) -> Iterator[str]:
        """The path of a folder with the files, to be read inside the `with`; nothing is copied.

        Raises as `to_directory`.
        """
        yield str(self._folder())

    def get_metadata(self) -> dict[str, Any]:
        """Return the values given to `set_metadata` and `update_metadata`; {} if there are none."""
        try:
            return dict(json.loads((self._folder() / METADATA).read_text()))
        except FileNotFoundError:
            self._folder()  # the folder's own absence is another error
            return {}
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"{self._folder() / METADATA} is damaged at offset {getattr(error, 'pos', 0)} "
                f"({error}): set_metadata() writes it anew"
            ) from error

    def set_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Keeps this dict, of what JSON has, in the folder in place of what was there.

        Raises TypeError for what JSON has not.
        """
        text = json.dumps(dict(metadata))
        folder = self._folder()
        with folders.replacement(folder / METADATA) as fresh:
            fresh.write_text(text)

    def update_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Adds these keys to the metadata, over those that are there."""
        self.set_metadata({**self.get_metadata(), **metadata})

    def __repr__(self) -> str:
        return f"Checkpoint({self.path})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Checkpoint) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.checkpoint, (self.path, {"_host": self._host})

    def _folder(self) -> Path:
        folder = Path(self.path)
        if folder.is_dir():
            return folder
        here = socket.gethostname()
        if folder.exists():
            raise NotADirectoryError(f"{self!r}: that is no folder")
        other = (
            f"; the checkpoint is of {self._host}: storage_path= has to be a folder that all hosts "
            "see"
            if here != self._host
            else ""
        )
        raise FileNotFoundError(f"{self!r}: there is no such folder on {here}{other}")


@_pickled.maker("checkpoint")
def _checkpoint(path: str, fields: Mapping[str, Any]) -> Any:
    """A folder that a training can go on from."""
    made = Checkpoint(path)
    made.__dict__.update(fields)
    return made


_pickled.named_in("troupe.train", Checkpoint)
