"""UCVolumeDataset: the files of a volume, each copied to local disk before it is read."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch.utils.data

from troupe._code import disk
from troupe.air.data import _shares

CACHE = "TROUPE_VOLUME_CACHE"


class UCVolumeDataset(torch.utils.data.IterableDataset):  # type: ignore[misc]
    """The files below a directory, as paths of local copies, shared among the ranks and their
    loader's workers.

    Every file goes to exactly one worker of one rank, in the order of the files' names: with W
    shares, share i has the files i, i+W, and so on. The number of files of two shares differs by at
    most 1; set `equal=True` where every rank must have as many. A copy is made when the file is
    reached, and kept for later epochs and for other processes of the host while the file's size and
    time stay the same.

    Args:
        path: Directory that every node sees, such as /Volumes/catalog/schema/volume/images.
        cache_dir: Directory for the copies. Default: $TROUPE_VOLUME_CACHE, else a directory of this
            user below the temporary directory.
        equal: Leave out the last files, fewer than the number of shares, so that all shares have
            the same number.

    Raises:
        FileNotFoundError: if there is no such directory; also while iterating, for a file that has
        gone.
        OutOfDiskError: while iterating, if a copy has no room.

    Example:
        for path in UCVolumeDataset("/Volumes/main/data/photos/train"):
            image = PIL.Image.open(path)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        cache_dir: str | os.PathLike[str] | None = None,
        *,
        equal: bool = False,
    ) -> None:
        self.path = os.fspath(path).rstrip("/") or "/"
        if not os.path.isdir(self.path):
            raise FileNotFoundError(
                f"UCVolumeDataset: there is no directory {self.path} on {os.uname().nodename}: a "
                "volume is a path that every node sees"
            )
        self._cache = Path(os.fspath(cache_dir)) if cache_dir is not None else None
        self._equal = bool(equal)
        self._start = 0

    def __iter__(self) -> Iterator[str]:
        """Yield local paths, of this share. Blocks while a file is copied."""
        files = files_below(self.path)
        share, shares = _shares.of_this_process()
        if self._equal:
            files = files[: len(files) - len(files) % shares]
        mine = files[share::shares]
        start, self._start = self._start, 0
        for place in range(min(start, len(mine)), len(mine)):
            yield local_copy(os.path.join(self.path, mine[place]), self._cache_dir())

    def skip(self, count: int) -> None:
        """Leave out the first `count` files of this process's share at the next iteration: they
        were read before a checkpoint."""
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise ValueError(f"count must be a whole number of at least 0, not {count!r}")
        self._start = count

    def _cache_dir(self) -> Path:
        if self._cache is None:
            chosen = os.environ.get(CACHE)
            self._cache = (
                Path(chosen)
                if chosen
                else Path(tempfile.gettempdir(), f"troupe-volumes-{os.geteuid()}")
            )
        return self._cache


def files_below(directory: str) -> list[str]:
    """Return the paths of all regular files below a directory, from it, sorted.

    Names that begin with a dot or an underscore are left out.

    Raises:
        PermissionError: for a directory that cannot be read.
    """

    def fail(error: OSError) -> Any:
        raise error

    found = []
    for inside, folders, names in os.walk(directory, onerror=fail):
        folders[:] = sorted(each for each in folders if not each.startswith((".", "_")))
        found += [
            os.path.relpath(os.path.join(inside, each), directory)
            for each in names
            if not each.startswith((".", "_"))
        ]
    return sorted(found)


def local_copy(path: str, cache: Path) -> str:
    """Return the path of a whole copy of the file on local disk, made here unless one of the same
    size and time is there.

    The copy has the file's name, in a folder of its own. Processes that copy the same file at once
    each make one, and one of them stays.

    Raises:
        FileNotFoundError: if the file is not there.
        OutOfDiskError: if the copy has no room.
        OSError: if the file changed while it was copied, for the third time.
    """
    for _ in range(3):
        about = os.stat(path)
        key = hashlib.sha256(
            f"{os.path.realpath(path)}\0{about.st_size}\0{about.st_mtime_ns}".encode(
                errors="surrogateescape"
            )
        ).hexdigest()[:32]
        folder = _own(cache) / key[:2] / key
        copy = folder / os.path.basename(path)
        if copy.exists():
            return str(copy)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=folder, prefix=".copying-")
        os.close(descriptor)
        try:
            with disk.writing(
                f"a copy of {path}",
                copy,
                needed=about.st_size,
                remedy=f"set {CACHE} to a directory with room",
            ):
                shutil.copyfile(path, name)
            now = os.stat(path)
            if (now.st_size, now.st_mtime_ns) == (
                about.st_size,
                about.st_mtime_ns,
            ) and os.path.getsize(name) == about.st_size:
                os.replace(name, copy)
                return str(copy)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
    raise OSError(
        f"{path} changes while it is read: it was copied three times, and was another file each "
        "time"
    )


def _own(cache: Path) -> Path:
    """Return the cache's directory, which is made where it is not there.

    Raise PermissionError for one that another user may write to.
    """
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = cache.stat()
    if about.st_uid != os.geteuid() or about.st_mode & 0o022:
        raise PermissionError(
            f"{cache} belongs to another user, or others may write to it: what is read from there "
            "could be theirs\n"
            f"  {CACHE} names another directory"
        )
    return cache
