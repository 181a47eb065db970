"""A directory on its way to other hosts: a list of its files by the digest of what each holds, and packs of what was not sent before.

View: the caller's process (`sent`) and a process on another host (`made`). What the caller has sent before is in its cache, with inode, size
and times of each file: one that has all of these as they were is not read again, for every write changes the time of its last change, which no
program can set. One that was changed so short a time before it was read that the clock could not tell is read again. A host takes what
another directory there holds already, and fetches the packs that have the rest.
"""
from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import time
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from troupe._cluster import blobs, workers
from troupe._code import disk, ignore_files, listing, packages, packed
from troupe._code.listing import Look

PACKS_MAX = 8  # over which all is packed anew
_CLOCK_NS, _COARSE_CLOCK_NS = 100_000_000, 2_000_000_000  # of file systems with fractions of a second, and without
_SIMILAR_MAX = 4
_SAMPLE_BYTES = 16 << 10

Known = dict[str, Any]
"""What was sent: `packs` as [digest, size], `manifest` as one of these, `tree`, and `files`: path -> [*Look, digest, pack]."""


def sent(directory: str, excludes: Sequence[str], *, inside: str, what: str, session: Any, ignored: ignore_files.Ignored | None = None,
         remedy: str = "") -> dict[str, Any]:
    """Where another host can have the directory as it is now: its files, below `inside`. A worker of this host keeps what is sent, which is
    what it does not have yet. `ignored`, `remedy`: as of `listing.files_of`. Blocks for as long as reading and sending what has changed takes. Raises as `listing.files_of`, ConnectionError.
    """
    looks = listing.files_of(directory, excludes, what=what, ignored=ignored, remedy=remedy)
    holder = workers.nearest(session)["node"]
    file = _remembered_in(directory, excludes, inside, holder)
    link = workers.link(session, holder)
    known = _read(file)
    known = only_kept(known, {digest for digest, size in known["packs"] if blobs.has(link, bytes.fromhex(digest), size)})
    again = changed(looks, known)
    if again or len(known["files"]) != len(looks) or not blobs.has(link, bytes.fromhex(known["manifest"][0]), known["manifest"][1]):
        known = _send(directory, looks, known, again, inside=inside, what=what, link=link)
        with contextlib.suppress(OSError):  # a full disk: it is read anew the next time
            packed.write(file, known)
    else:
        with contextlib.suppress(OSError):
            os.utime(file)
    return {"sha256": known["manifest"][0], "size_bytes": known["manifest"][1], "holder": holder, "tree": known["tree"],
            "files": len(looks), "bytes": sum(look.size for look in looks.values()),
            "left": ignore_files.shown(ignored.left) if ignored is not None else ""}


def changed(looks: Mapping[str, Look], known: Known) -> list[str]:
    """Paths of the files that have to be read: they are not known, or not as they were.

        >>> changed({"a": Look(1, 2, 3, 4, 0o644)}, {"files": {"a": [1, 2, 3, 5, 0o644, "digest", 0]}})
        ['a']
    """
    files = known["files"]
    return sorted(path for path, look in looks.items() if path not in files or tuple(files[path][:5]) != look)


def settled(look: Look, read_ns: int) -> bool:
    """Whether a write after the file was read, at `read_ns`, cannot have left all as it was: the clock that stamps it had gone on."""
    coarse = look.ctime_ns % 1_000_000_000 == 0
    return look.ctime_ns + (_COARSE_CLOCK_NS if coarse else _CLOCK_NS) < read_ns


def only_kept(known: Known, there: set[str]) -> Known:
    """What of the known is in packs that are still kept, with these packs alone."""
    kept = [number for number, (digest, _) in enumerate(known["packs"]) if digest in there]
    if len(kept) == len(known["packs"]):
        return known
    place = {number: at for at, number in enumerate(kept)}
    return {**known, "packs": [known["packs"][number] for number in kept],
            "files": {path: [*entry[:6], place[entry[6]]] for path, entry in known["files"].items() if entry[6] in place}}


def _send(directory: str, looks: Mapping[str, Look], known: Known, again: Sequence[str], *, inside: str, what: str, link: Any) -> Known:
    read_ns = time.time_ns()
    files, pack = {path: known["files"][path] for path in set(looks) - set(again)}, _Pack(known)
    for path in again:
        digest, number = pack.add(os.path.join(directory, path), what)
        look = looks[path]
        trusted = look if settled(look, read_ns) else look._replace(ctime_ns=0)
        files[path] = [*trusted, digest, number]
    used = {entry[6] for entry in files.values()}
    if len(used) > PACKS_MAX:
        return _send(directory, looks, _nothing(), sorted(looks), inside=inside, what=what, link=link)
    packs = [*known["packs"], *([pack.put(link)] if pack.holds else [])]
    sent_now = only_kept({**_nothing(), "packs": packs, "files": files}, {packs[number][0] for number in used})
    rows = [[os.path.join(inside, path), looks[path].mode, looks[path].size, *sent_now["files"][path][5:]] for path in sorted(files)]
    manifest = json.dumps({"packs": sent_now["packs"], "files": rows}).encode()
    put = blobs.put_on(link, manifest)
    return {**sent_now, "manifest": [put["sha256"].hex(), len(manifest)],
            "tree": hashlib.sha256(json.dumps([row[:4] for row in rows]).encode()).hexdigest()}


class _Pack:
    """What is sent now: a zip of contents by their digests."""

    def __init__(self, known: Known) -> None:
        self._where = {entry[5]: entry[6] for entry in known["files"].values()}
        self._number = len(known["packs"])
        self._sink = io.BytesIO()
        self._zip = zipfile.ZipFile(self._sink, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        self.holds = False

    def add(self, path: str, what: str) -> tuple[str, int]:
        """(digest, pack) of a file's content, which is taken in where no pack has it."""
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise type(error)(f"{what}: {path} cannot be read: {error.strerror}\n"
                              "  leave it out: runtime_env={'excludes': [...]}, of troupe submit --exclude") from None
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self._where:
            packages.add(self._zip, data, digest, 0o600, compressed=_compresses(data))
            self._where[digest] = self._number
            self.holds = True
        return digest, self._where[digest]

    def put(self, link: Any) -> list:
        """[digest, size] of the pack, once it is on the worker."""
        self._zip.close()
        data = self._sink.getvalue()
        return [blobs.put_on(link, data)["sha256"].hex(), len(data)]


def _remembered_in(directory: str, excludes: Sequence[str], inside: str, holder: str) -> Path:
    about = json.dumps([directory, list(excludes), inside, holder])
    return packages.cache() / f"{packages.SENT}{hashlib.sha256(about.encode()).hexdigest()[:32]}.json"


def _nothing() -> Known:
    return {"packs": [], "files": {}, "manifest": ["", 0], "tree": ""}


def _read(file: Path) -> Known:
    known = packed.read(file)
    return known if known is not None and set(known) == set(_nothing()) else _nothing()


def _compresses(data: bytes) -> bool:
    """Whether it is worth the time: of what does not, a sample says so."""
    sample = data[:_SAMPLE_BYTES]
    return len(zlib.compress(sample, 1)) < 0.9 * len(sample)


def made(package: Mapping[str, Any], what: str, session: Any) -> str:
    """The folder of this host that has what was sent. Raises ObjectLostError, ValueError for what no caller sends."""
    def make(folder: Path) -> dict[str, str]:
        packages.need(session, what)
        manifest = json.loads(blobs.get(session, package["holder"], bytes.fromhex(package["sha256"]), package["size_bytes"], what=what))
        rows = [_Row(*row) for row in manifest["files"]]
        with disk.writing(what, folder, needed=sum(row.size for row in rows), remedy=packages.ROOM, partial=folder):
            missing = _from_similar(rows, folder)
            for number, (digest, size) in enumerate(manifest["packs"]):
                wanted = [row for row in missing if row.pack == number]
                if wanted:
                    _unpack(blobs.get(session, package["holder"], bytes.fromhex(digest), size, what=what), wanted, folder, what)
            for row in rows:
                os.chmod(f"{folder}/{row.path}", row.mode & 0o777 | 0o600)
        return {row.path: row.digest for row in rows}

    return str(packages.made_once(f"{packages.TREE}{package['tree'][:32]}", make, what))


def _unpack(pack: bytes, wanted: Sequence[_Row], folder: Path, what: str) -> None:
    with zipfile.ZipFile(io.BytesIO(pack)) as opened:
        for row in wanted:
            if opened.getinfo(row.digest).file_size != row.size:
                raise ValueError(f"{what}: a pack and its list do not fit together")
            row.place(folder).write_bytes(opened.read(row.digest))


class _Row(NamedTuple):
    """One file of a manifest."""

    path: str
    mode: int
    size: int
    digest: str
    pack: int

    def place(self, folder: Path) -> Path:
        """Where it goes, with the folders above it. ValueError for what lies outside."""
        parts = self.path.split("/")
        if ".." in parts or not all(parts):
            raise ValueError(f"{self.path!r} is no path inside a directory")
        target = folder / self.path
        target.parent.mkdir(parents=True, exist_ok=True)
        return target


def _from_similar(rows: list[_Row], folder: Path) -> list[_Row]:
    """Copies what the latest other directories here hold of it, as they were made; the rows that are left."""
    missing = rows
    for other in packages.latest(packages.TREE, _SIMILAR_MAX):
        there = packed.parts(other)
        left = []
        for row in missing:
            part = there.get(row.digest)
            if part is None or not packed.copied(other, part, row.place(folder)):
                left.append(row)
        missing = left
        if not missing:
            break
    return missing
