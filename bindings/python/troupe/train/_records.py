"""Files of a run whose lines are records: whole, torn at the end, or damaged.

A record is a line of JSON that ends with a checksum of the text before it. A file that was written
by an older version has lines without checksums, which count as they are.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from troupe._code import packed
from troupe.exceptions import DamagedFileError

_CRC = b', "crc": '


@dataclass(frozen=True)
class Records:
    """The contents of a file of records: the records, their size in bytes, and how many there are
    in all.

    What is behind the last one is torn.
    """

    records: list[dict[str, Any]]
    whole: int
    size: int


def line(record: Mapping[str, Any]) -> str:
    """Return a record, of one key at least, as the file has it."""
    text = json.dumps(record)[:-1]
    return f"{text}{_CRC.decode()}{zlib.crc32(text.encode())}}}\n"


def read(path: Path, repair: str) -> Records:
    """Return the records of a file.

    A tail without any whole record is torn, and left out.

    Raises DamagedFileError, with `repair`, for what is no record and has whole ones after it;
    FileNotFoundError.
    """
    data = path.read_bytes()
    found: list[dict[str, Any]] = []
    at, whole, bad = 0, 0, -1
    for text in data.splitlines(keepends=True):
        record = _record(text)
        if record is None:
            bad = at if bad < 0 else bad
        if bad >= 0 and (record is not None or _has_whole_end(text)):
            raise DamagedFileError(
                path,
                bad,
                f"line {data.count(bytes([10]), 0, bad) + 1} is not what was written",
                repair,
            )
        if record is not None:
            found.append(record)
            whole = at + len(text)
        at += len(text)
    return Records(found, whole, len(data))


def only(path: Path, repair: str) -> dict[str, Any]:
    """Return the one record of a file that was written whole or not at all.

    Raises DamagedFileError, FileNotFoundError.
    """
    data = path.read_bytes()
    record = _record(
        data if data.endswith(b"\n") else data + b"\n"
    )  # older versions wrote no end of the line
    if record is None:
        raise DamagedFileError(path, 0, f"its {len(data)} bytes are not what was written", repair)
    return record


def _record(text: bytes) -> dict[str, Any] | None:
    """Return what a line says, without its checksum; None for one that is not what was written."""
    if not text.endswith(b"\n"):
        return None
    try:
        record = json.loads(text)
    except ValueError:
        return None
    if not isinstance(record, dict):
        return None
    if "crc" in record and record.pop("crc") != zlib.crc32(text.rpartition(_CRC)[0]):
        return None
    return record


def _has_whole_end(text: bytes) -> bool:
    """Return True if a line that is no record ends with a whole one: what went between the two is
    the end of the line before."""
    at = text.find(b'{"', 1)
    while at >= 0:
        if _record(text[at:]) is not None:
            return True
        at = text.find(b'{"', at + 1)
    return False


def said_in(data: bytes) -> dict[str, Any]:
    """Return what the owner of a run wrote down of itself; {} where another one takes over at this
    moment, or the file is damaged: only the lock counts."""
    return packed.mapping_in(data) or {}
