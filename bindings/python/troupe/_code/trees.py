"""A directory on its way to other hosts: a list of its files by the digest of what each holds, and
packs of what was not sent before.

View: the caller's process (`sent`) and a process on another host (`made`). What the caller has sent
before is in its cache, with inode, size and times of each file: one that has all of these as they
were is not read again, for every write changes the time of its last change, which no program can
set. One that was changed so short a time before it was read that the clock could not tell is read
again. Each file is read once: its size and digest are those of the bytes that were read, whatever
writes to it meanwhile, and one that has gone is left out. A host takes what another directory there
holds already, and fetches the packs that have the rest.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import stat
import time
import warnings
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from troupe import exceptions
from troupe._cluster import blobs, workers
from troupe._code import disk, ignore_files, listing, manifests, packages, packed
from troupe._code.listing import Look

PACKS_MAX = 8  # over which all is packed anew
_CLOCK_NS, _COARSE_CLOCK_NS = (
    100_000_000,
    2_000_000_000,
)  # resolutions of file systems with fractions of a second, and without
_SIMILAR_MAX = 4
_SAMPLE_BYTES = 16 << 10

Known = dict[str, Any]
"""What was sent: `packs` as [digest, size], `manifest` as one of these, `tree`, and `files`: path
-> [*Look, digest, pack]."""


def sent(
    directory: str,
    excludes: Sequence[str],
    *,
    inside: str,
    what: str,
    session: Any,
    ignored: ignore_files.Ignored | None = None,
    remedy: str | None = None,
) -> dict[str, Any]:
    """Return the location from which another host fetches the directory as it is now: its files,
    below `inside`.

    A worker of this host keeps what is sent, which is what it does not have yet. `ignored`,
    `remedy`: as of `listing.files_of`. Blocks for as long as reading and sending what has changed
    takes. Raises as `listing.files_of`, ConnectionError.
    """
    looks = listing.files_of(directory, excludes, what=what, ignored=ignored, remedy=remedy)
    for pattern, folder in (ignored.without_effect if ignored is not None else {}).items():
        warnings.warn(
            f"{what}: {pattern} has no effect: an ignore file of {directory} leaves out the folder "
            f"{folder}, and nothing in it is looked at, as "
            "with git\n  let the ignore file leave out what is in the folder instead: the lines "
            f"!/{folder} and /{folder}*",
            stacklevel=2,
        )
    holder = workers.nearest(session)["node"]
    file = _remembered_in(directory, excludes, inside, holder)
    link = workers.link(session, holder)
    known = _read(file)
    known = only_kept(
        known,
        {digest for digest, size in known["packs"] if blobs.has(link, bytes.fromhex(digest), size)},
    )
    again = changed(looks, known)
    if (
        again
        or len(known["files"]) != len(looks)
        or not blobs.has(link, bytes.fromhex(known["manifest"][0]), known["manifest"][1])
    ):
        way = _Way(inside, what, link, remedy or listing.LEAVE_OUT)
        known = _send(directory, looks, known, again, way)
        with contextlib.suppress(OSError):  # a full disk: it is read anew the next time
            packed.write(file, known)
    else:
        with contextlib.suppress(OSError):
            os.utime(file)
    return {
        "sha256": known["manifest"][0],
        "size_bytes": known["manifest"][1],
        "holder": holder,
        "tree": known["tree"],
        "files": len(known["files"]),
        "bytes": sum(entry[1] for entry in known["files"].values()),
        "left": ignore_files.shown(ignored.left) if ignored is not None else "",
    }


def changed(looks: Mapping[str, Look], known: Known) -> list[str]:
    """Paths of the files that have to be read: they are not known, or not as they were.

    >>> changed({"a": Look(1, 2, 3, 4, 0o644)}, {"files": {"a": [1, 2, 3, 5, 0o644, "digest", 0]}})
    ['a']
    """
    files = known["files"]
    return sorted(
        path for path, look in looks.items() if path not in files or tuple(files[path][:5]) != look
    )


def settled(look: Look, read_ns: int) -> bool:
    """Return True if any write after `read_ns` would have changed the file's times: the clock that
    stamps it had gone on."""
    coarse = look.ctime_ns % 1_000_000_000 == 0
    return look.ctime_ns + (_COARSE_CLOCK_NS if coarse else _CLOCK_NS) < read_ns


def only_kept(known: Known, there: set[str]) -> Known:
    """Return the known files in packs that are still kept, with only these packs."""
    kept = [number for number, (digest, _) in enumerate(known["packs"]) if digest in there]
    if len(kept) == len(known["packs"]):
        return known
    place = {number: at for at, number in enumerate(kept)}
    return {
        **known,
        "packs": [known["packs"][number] for number in kept],
        "files": {
            path: [*entry[:6], place[entry[6]]]
            for path, entry in known["files"].items()
            if entry[6] in place
        },
    }


class _Way(NamedTuple):
    """The route of files: the folder they go below, their form, the worker; and the remedy if it
    fails."""

    inside: str
    what: str
    link: Any
    remedy: str


def _send(
    directory: str,
    looks: Mapping[str, Look],
    known: Known,
    again: Sequence[str],
    way: _Way,
) -> Known:
    files = {path: known["files"][path] for path in set(looks) - set(again)}
    with contextlib.closing(_Pack(known)) as pack:
        _read_into(pack, files, directory, again, way)
        used = {entry[6] for entry in files.values()}
        if len(used) > PACKS_MAX:
            return _send(directory, looks, _nothing(), sorted(looks), way)
        packs = [*known["packs"], *([pack.put(way.link)] if pack.holds else [])]
    sent_now = only_kept(
        {**_nothing(), "packs": packs, "files": files}, {packs[number][0] for number in used}
    )
    rows = [
        [os.path.join(way.inside, path), entry[4], entry[1], *entry[5:]]
        for path, entry in sorted(sent_now["files"].items())
    ]
    manifest = json.dumps({"packs": sent_now["packs"], "files": rows}).encode()
    put = blobs.put_on(way.link, manifest)
    return {
        **sent_now,
        "manifest": [put["sha256"].hex(), len(manifest)],
        "tree": manifests.name_of(rows),
    }


def _read_into(
    pack: _Pack, files: dict[str, Any], directory: str, again: Sequence[str], way: _Way
) -> None:
    """Reads the files that have to be read anew, into the pack and among `files`."""
    read_ns = time.time_ns()
    room = listing.BYTES_MAX - sum(entry[1] for entry in files.values())
    for path in again:
        found = contents(os.path.join(directory, path), room, way.what, way.remedy)
        if found is None:
            continue
        look, data = found
        room -= len(data)
        if room < 0:
            raise exceptions.TooLargeError(
                f"{way.what}: {directory} has grown over {listing.BYTES_MAX >> 20} MiB, the limit "
                f"of what travels, while it was read: {path} has {look.size:,} bytes or more\n"
                f"  {way.remedy}"
            )
        trusted = look if settled(look, read_ns) else look._replace(ctime_ns=0)
        files[path] = [*trusted, *pack.add(data)]


def contents(path: str, most: int, what: str, remedy: str) -> tuple[Look, bytes] | None:
    """Read a file once: return its content, and its traits with the size of that content.

    None for one that has gone, or is no file any more.

    The traits' `ctime_ns` is 0 where the file was written to meanwhile: such a file is read again
    the next time. At most `most` + 1 bytes are read.

    Raises:
        OSError: for a file that cannot be read, naming `what` and the `remedy`.
    """
    try:
        descriptor = os.open(
            path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
        )  # a FIFO of that name must not be waited for
        with os.fdopen(descriptor, "rb") as file:
            before = os.fstat(descriptor)
            if not stat.S_ISREG(before.st_mode):
                return None
            data = file.read(max(most, 0) + 1)
            after = os.fstat(descriptor)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        if error.errno in (errno.ESTALE, errno.ENXIO):
            return None
        raise type(error)(f"{what}: {path} cannot be read: {error.strerror}\n  {remedy}") from None
    look = Look(
        after.st_ino, len(data), after.st_mtime_ns, after.st_ctime_ns, after.st_mode & 0o777
    )
    same = (before.st_size, before.st_mtime_ns, before.st_ctime_ns) == (
        after.st_size,
        after.st_mtime_ns,
        after.st_ctime_ns,
    )
    return (look if same and len(data) == after.st_size else look._replace(ctime_ns=0)), data


class _Pack:
    """A pack to send now: a zip of contents by their digests."""

    def __init__(self, known: Known) -> None:
        self._where = {entry[5]: entry[6] for entry in known["files"].values()}
        self._number = len(known["packs"])
        self._sink = io.BytesIO()
        self._zip = zipfile.ZipFile(self._sink, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        self.holds = False

    def add(self, data: bytes) -> tuple[str, int]:
        """Return (digest, pack) of a content, which is taken in where no pack has it."""
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self._where:
            packages.add(self._zip, data, digest, 0o600, compressed=_compresses(data))
            self._where[digest] = self._number
            self.holds = True
        return digest, self._where[digest]

    def close(self) -> None:
        """Takes nothing more in. Idempotent."""
        self._zip.close()

    def put(self, link: Any) -> list[Any]:
        """[digest, size] of the pack, once it is on the worker."""
        self.close()
        data = self._sink.getvalue()
        return [blobs.put_on(link, data)["sha256"].hex(), len(data)]


def _remembered_in(directory: str, excludes: Sequence[str], inside: str, holder: str) -> Path:
    about = json.dumps([directory, list(excludes), inside, holder])
    return (
        packages.cache() / f"{packages.SENT}{hashlib.sha256(about.encode()).hexdigest()[:32]}.json"
    )


def _nothing() -> Known:
    return {"packs": [], "files": {}, "manifest": ["", 0], "tree": ""}


def _read(file: Path) -> Known:
    known = packed.read(file)
    return known if known is not None and set(known) == set(_nothing()) else _nothing()


def _compresses(data: bytes) -> bool:
    """Return True if compressing `data` is worth the time, judged by a sample."""
    sample = data[:_SAMPLE_BYTES]
    return len(zlib.compress(sample, 1)) < 0.9 * len(sample)


def made(package: Mapping[str, Any], what: str, session: Any) -> str:
    """The folder of this host that has what was sent.

    Raises ObjectLostError, ValueError for what no caller sends.
    """
    tree = package["tree"]
    if not manifests.is_digest(tree):
        raise ValueError(f"{what}: {str(tree)[:80]!r} is no name of a directory")

    def make(folder: Path) -> dict[str, str]:
        packages.need(session, what)
        listed = blobs.get(
            session,
            package["holder"],
            bytes.fromhex(package["sha256"]),
            package["size_bytes"],
            what=what,
        )
        try:
            rows, packs = manifests.read(listed, tree)
            with disk.writing(
                what,
                folder,
                needed=sum(row.size for row in rows),
                remedy=packages.ROOM,
                partial=folder,
            ):
                missing = _from_similar(rows, folder)
                for number, (digest, size) in enumerate(packs):
                    wanted = [row for row in missing if row.pack == number]
                    if wanted:
                        _unpack(
                            blobs.get(
                                session, package["holder"], bytes.fromhex(digest), size, what=what
                            ),
                            wanted,
                            folder,
                        )
                for row in rows:
                    row.set_mode(folder)
        except (ValueError, zipfile.BadZipFile, KeyError, zlib.error) as error:
            raise ValueError(f"{what}: {error}") from None
        return {row.path: row.digest for row in rows}

    return str(packages.made_once(f"{packages.TREE}{tree[:32]}", make, what))


def _unpack(pack: bytes, wanted: Sequence[manifests.Row], folder: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(pack)) as opened:
        for row in wanted:
            if opened.getinfo(row.digest).file_size != row.size:
                raise ValueError(
                    f"{row.path}: its pack has another size of it than the list of files"
                )
            row.write(folder, opened.read(row.digest))


def _from_similar(rows: list[manifests.Row], folder: Path) -> list[manifests.Row]:
    """Copies what the latest other directories here hold of it, as they were made; the rows that
    are left."""
    missing = rows
    for other in packages.latest(packages.TREE, _SIMILAR_MAX):
        there = packed.parts(other)
        left = []
        for row in missing:
            part = there.get(row.digest)
            if part is None or not packed.copied(other, part, row.place(folder)):
                row.place(folder).unlink(missing_ok=True)
                left.append(row)
        missing = left
        if not missing:
            break
    return missing
