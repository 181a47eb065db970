"""The file of the journal: rows numbered without gaps, each with a checksum over its number and its
text.

    rows(number, crc, row)     JSON
    objects(key, data)         pickles, by the digest of what they hold

One process writes: SQLite's exclusive lock is held from the first transaction to the end, in WAL
mode, which then needs no memory that is shared and works on a network file system too. A commit
survives kill -9 of anything; one that is to survive a loss of power is synced.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from troupe._code import capture, failures
from troupe.exceptions import TroupeError
from troupe.tune._journal import values

FILE = "sweep.db"
FORMAT = 1
WITH_CONFIG = frozenset({"trial", "exploit"})
OBJECT_BYTES_MAX = 100 << 20
DECODED_AT_ONCE = 256  # rows, as one JSON text: in half the time that they take one by one


class JournalError(TroupeError):
    """A sweep's journal cannot be read or written; the text says where and what to do."""


_REPAIR = "start the sweep anew under another RunConfig(name=...), or restore the file from a copy"


def digest_of(data: Any) -> str:
    """Return the key of an object: the digest of its bytes."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()[:32]


def object_data(value: Any) -> bytes:
    """Return the bytes of a part of a configuration that JSON does not have.

    Raises LaunchError where it is too large or cannot be pickled.
    """
    return capture.dumps(None, (value,), {}, what="a sweep's configuration", limit=OBJECT_BYTES_MAX)


def has_rows_table(db: sqlite3.Connection) -> bool:
    """Return True if the file is a journal; an empty file, or one that was cut off, is none."""
    return db.execute("SELECT 1 FROM sqlite_master WHERE name='rows'").fetchone() is not None


def empty_text(path: Path) -> str:
    """Return the error message for a journal that has lost all that was written."""
    size = path.stat().st_size
    return (
        f"{path} has {size} bytes and no rows, from offset 0 on: the file is damaged; the sweep "
        f"was begun, and is not begun again\n  {_REPAIR}"
    )


def _crc(number: int, text: str) -> int:
    return zlib.crc32(text.encode(), number & 0xFFFFFFFF)


class Journal:
    """Opened by the one process that is at the sweep.

    Raises JournalError for a file that is none, BlockingIOError for one that is open elsewhere,
    OSError for a full disk.
    """

    def __init__(self, folder: Path, *, create: bool) -> None:
        self.path = folder / FILE
        if not create and not self.path.exists():
            raise FileNotFoundError(f"{self.path}: there is no journal of a sweep")
        self._db = sqlite3.connect(
            self.path, isolation_level=None, check_same_thread=False, cached_statements=16
        )
        self._kept: set[str] = set()
        self._next = 1
        self._synced: bool | None = None
        try:
            self._open(create)
        except sqlite3.Error as error:
            self._db.close()
            raise _refusal(self.path, error) from error
        except JournalError:
            self._db.close()
            raise

    def _open(self, create: bool) -> None:
        for pragma in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "temp_store=MEMORY"):
            self._db.execute(f"PRAGMA {pragma}")
        self._sync(True)
        self._db.execute("BEGIN IMMEDIATE")
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version not in (0, FORMAT):
            raise JournalError(
                f"{self.path} is of format {version}, and this version of Troupe knows {FORMAT}: "
                "use the version that wrote it"
            )
        if not create and not has_rows_table(self._db):
            raise JournalError(empty_text(self.path))
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS rows(number INTEGER PRIMARY KEY, crc INTEGER NOT NULL, row "
            "TEXT NOT NULL)"
        )
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS objects(key TEXT PRIMARY KEY, data BLOB NOT NULL) WITHOUT "
            "ROWID"
        )
        self._db.execute(f"PRAGMA user_version={FORMAT}")
        self._db.execute("COMMIT")
        self._kept = {key for (key,) in self._db.execute("SELECT key FROM objects")}

    def _sync(self, wanted: bool) -> None:
        if wanted != self._synced:
            self._db.execute(f"PRAGMA synchronous={'FULL' if wanted else 'NORMAL'}")
            self._synced = wanted

    def read(self) -> Iterator[dict[str, Any]]:
        """All rows, in their order.

        Raises JournalError where one is missing or is not what was written.
        """
        loaded: dict[str, Any] = {}

        def load(key: str) -> Any:
            if key not in loaded:
                loaded[key] = self.load(key)
            return loaded[key]

        for number, row in rows_of(self._db, self.path):
            if row["kind"] in WITH_CONFIG:
                row["config"] = values.decoded(row["config"], load)
            self._next = number + 1
            yield row

    def append(self, rows: Iterable[dict[str, Any]], *, durable: bool) -> None:
        """Commits these rows, all or none, after those that were.

        Raises LaunchError for a configuration that cannot be pickled, with nothing written; OSError
        where the disk is full, JournalError where the file cannot be written for another reason.
        """
        objects: dict[str, bytes] = {}
        written, number = [], self._next
        for row in rows:
            if row["kind"] in WITH_CONFIG:
                row = {
                    **row,
                    "config": values.encoded(row["config"], lambda part: self._key(part, objects)),
                }
            if "error" in row and "raised" in row["error"]:
                row = {**row, "error": self._error(row["error"], objects)}
            text = json.dumps(row, separators=(",", ":"))
            written.append((number, _crc(number, text), text))
            number += 1
        try:
            self._commit(written, objects, durable)
        except sqlite3.Error as error:
            raise _refusal(self.path, error) from error
        self._next = number
        self._kept.update(objects)

    def _commit(
        self, written: list[tuple[int, int, str]], objects: dict[str, bytes], durable: bool
    ) -> None:
        self._sync(durable)
        self._db.execute("BEGIN")
        try:
            if objects:
                self._db.executemany("INSERT OR IGNORE INTO objects VALUES(?, ?)", objects.items())
            self._db.executemany("INSERT INTO rows VALUES(?, ?, ?)", written)
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def load(self, key: str) -> Any:
        """Return the object stored under that key.

        Raises JournalError where it is not what was written, and what unpickling raises.
        """
        import cloudpickle

        found = self._db.execute("SELECT data FROM objects WHERE key=?", (key,)).fetchone()
        if found is None:
            raise JournalError(
                f"{self.path}: the object {key} is not there: the file is damaged\n  {_REPAIR}"
            )
        if digest_of(found[0]) != key:
            raise JournalError(
                f"{self.path}: the object {key} is not what was written: the file is damaged\n  "
                f"{_REPAIR}"
            )
        loaded = cloudpickle.loads(found[0])
        return loaded[1][0] if isinstance(loaded, tuple) else loaded

    def _error(self, error: dict[str, Any], objects: dict[str, bytes]) -> dict[str, Any]:
        """With the key of the exception itself, where that can be pickled, in its place."""
        raised = error["raised"]
        data = failures.pickled(raised) if raised is not None else b""
        return {
            "kind": error["kind"],
            "text": error["text"],
            "pickled": self._key_of(data, objects) if data else "",
        }

    def _key(self, value: Any, objects: dict[str, bytes]) -> str:
        return self._key_of(object_data(value), objects)

    def _key_of(self, data: bytes, objects: dict[str, bytes]) -> str:
        key = digest_of(data)
        if key not in self._kept:
            objects[key] = data
        return key

    def close(self) -> None:
        """Lets another process open it."""
        self._db.close()


def rows_of(db: sqlite3.Connection, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number, row) of all rows as they are written.

    Raises JournalError where one is missing or is not what was written.
    """
    found, expected = db.execute("SELECT number, crc, row FROM rows ORDER BY number"), 1
    while some := _fetched(found, path, expected):
        for number, crc, text in some:
            if number != expected or not isinstance(text, str) or crc != _crc(number, text):
                what = (
                    f"row {expected} is missing"
                    if number != expected
                    else f"row {number} is not what was written"
                )
                raise JournalError(f"{path}: {what}: the file is damaged\n  {_REPAIR}")
            expected += 1
        rows = json.loads(f"[{','.join(text for _, _, text in some)}]")
        yield from zip((number for number, _, _ in some), rows, strict=True)


def _fetched(found: sqlite3.Cursor, path: Path, expected: int) -> list[tuple[int, int, str]]:
    try:
        return found.fetchmany(DECODED_AT_ONCE)
    except sqlite3.DatabaseError as error:
        raise JournalError(
            f"{path}: rows from {expected} on cannot be read ({error}): the file is damaged\n  "
            f"{_REPAIR}"
        ) from error


def _refusal(path: Path, error: sqlite3.Error) -> Exception:
    if "locked" in str(error):
        return BlockingIOError(f"{path} is open in another process, which is at this sweep")
    if "disk" in str(error) and "full" in str(error):
        return OSError(
            errno.ENOSPC,
            f"the sweep's journal cannot be written ({error}); the sweep can be gone on with once "
            "there is room",
            os.fspath(path),
        )
    return JournalError(
        f"{path} cannot be read or written as a sweep's journal: {error}\n  {_REPAIR}"
    )
