"""Packages that Ray's client uploads before a submission: archives of working directories and
modules, kept under their names until a job asks for them."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import threading
import time
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

PACKAGE_BYTES_MAX = 256 << 20  # limit of one archive
STORE_BYTES_MAX = 4 << 30  # limit of all archives
UNUSED_S = 7 * 86400.0
PROTOCOL = "gcs"
_URI = f"{PROTOCOL}://"
_NAME = re.compile(r"_ray_pkg_[A-Za-z0-9_]{1,64}\.(zip|whl)|[A-Za-z0-9][A-Za-z0-9._+-]{0,150}\.whl")


class PackageError(ValueError):
    """A package that is refused."""


class PackageTooLargeError(PackageError):
    """A package that is over a limit."""


class PackageStore:
    """Uploaded packages in a private folder of this user's, for all servers.

    The same package lies at the same path each time, so that a repeated submission is the same job.
    One that no submission has asked for in UNUSED_S goes at the start of a server. Methods may be
    called from any thread.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._bytes = 0  # bytes of all archives, including running uploads
        for each in folder.iterdir():
            about = each.stat()
            if time.time() - about.st_mtime > UNUSED_S:
                each.unlink(missing_ok=True)
            else:
                self._bytes += about.st_size

    def has(self, protocol: str, name: str) -> bool:
        """Return True if this package is here. Raises PackageError for what is no name."""
        return _used(self._archive(protocol, name))

    async def put(self, protocol: str, name: str, chunks: AsyncIterator[bytes]) -> None:
        """Keep a package. A name is made of the content's hash, so a repetition changes nothing.

        Raises PackageTooLargeError for one that is too large, and when there is no more room;
        PackageError for what is no package.
        """
        target = self._archive(protocol, name)
        descriptor, part = tempfile.mkstemp(dir=self._folder)
        taken = 0
        try:
            with open(descriptor, "wb") as file:
                async for chunk in chunks:
                    self._take(len(chunk))
                    taken += len(chunk)
                    if taken > PACKAGE_BYTES_MAX:
                        raise PackageTooLargeError(
                            f"the package {name} has over {PACKAGE_BYTES_MAX >> 20} MiB, which is "
                            'the limit: leave files out by "excludes" of runtime_env or by '
                            ".gitignore"
                        )
                    file.write(chunk)
            if not zipfile.is_zipfile(part):
                raise PackageError(f"the package {name} is no zip archive")
            with self._lock:
                if not target.exists():
                    os.rename(part, target)
                    taken = 0  # the archive stays
        finally:
            self._take(-taken)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(part)

    def resolve(self, runtime_env: dict[str, Any]) -> dict[str, Any]:
        """Return a runtime_env with archives of this host in place of uploaded packages.

        Raises PackageError for a package that is not here.
        """
        found = dict(runtime_env)
        if "working_dir" in found:
            found["working_dir"] = self._local(found["working_dir"])
        if isinstance(modules := found.get("py_modules"), list):
            found["py_modules"] = [self._local(each) for each in modules]
        return found

    def _local(self, given: Any) -> Any:
        if not isinstance(given, str) or not given.startswith(_URI):
            return given
        archive = self._archive(PROTOCOL, given.removeprefix(_URI))
        if not _used(archive):
            raise PackageError(f"the package {given} was not uploaded to this server")
        return str(archive)

    def _archive(self, protocol: str, name: str) -> Path:
        if protocol != PROTOCOL or not _NAME.fullmatch(name):
            raise PackageError(
                f"{protocol}://{name} is no package that Ray's client uploads: "
                "gcs://_ray_pkg_HASH.zip"
            )
        return self._folder / name

    def _take(self, count: int) -> None:
        with self._lock:
            if count > 0 and self._bytes + count > STORE_BYTES_MAX:
                raise PackageTooLargeError(
                    f"packages of {STORE_BYTES_MAX >> 20} MiB at most are kept: remove some of "
                    f"{self._folder}"
                )
            self._bytes += count


def _used(archive: Path) -> bool:
    """Return True if there is such a file, which counts as used now."""
    try:
        os.utime(archive)
    except FileNotFoundError:
        return False
    return True
