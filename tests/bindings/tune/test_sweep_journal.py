"""The journal of a sweep: rows that are all there as they were written, or an error that says which
is not; one writer; objects kept apart.

Method: journals of real files, damaged by hand; a writer that is killed by its own hand in another
process.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from troupe import exceptions
from troupe.tune._journal import history, values
from troupe.tune._journal.journal import FILE, Journal, JournalError
from troupe.tune._journal.owner import Owner

CONFIG = {
    "lr": 0.1,
    "layers": (1, 2),
    "act": len,
    "nested": {"a": [1, None, True]},
    3: "key",
    "__tuple__": 1,
}


def rows(config: dict) -> list[dict]:
    return [
        {"kind": "begin", "epoch": 1},
        {"kind": "trial", "trial": "t", "config": config, "extra": {}, "shape": ""},
        {
            "kind": "end",
            "trial": "t",
            "end": "failed",
            "why": "x",
            "error": {"kind": "KeyError", "text": "'k'", "raised": KeyError("k")},
        },
    ]


def test_rows_come_back_as_they_were_and_objects_lie_apart(tmp_path: Path) -> None:
    journal = Journal(tmp_path, create=True)
    journal.append(rows(CONFIG), durable=True)
    journal.append(
        [
            {
                "kind": "report",
                "trial": "t",
                "number": 1,
                "metrics": {"x": float("nan"), "y": float("inf")},
            }
        ],
        durable=False,
    )
    journal.close()
    again = Journal(tmp_path, create=False)
    found = list(again.read())
    assert found[1]["config"] == CONFIG and isinstance(found[1]["config"]["layers"], tuple)
    assert isinstance(again.load(found[2]["error"]["pickled"]), KeyError)
    assert found[3]["metrics"]["x"] != found[3]["metrics"]["x"] and found[3]["metrics"][
        "y"
    ] == float("inf")
    again.append([{"kind": "leave"}], durable=True)
    again.close()
    with history.opened(tmp_path) as db:
        assert [number for (number,) in db.execute("SELECT number FROM rows ORDER BY number")] == [
            1,
            2,
            3,
            4,
            5,
        ]
        assert b"KeyError" not in b"".join(
            text.encode() for (text,) in db.execute("SELECT row FROM rows WHERE number=2")
        )


def test_a_journal_needs_no_memory_that_processes_share(tmp_path: Path) -> None:
    """A network file system has no memory shared by processes: SQLite would keep it in a file
    beside."""
    journal = Journal(tmp_path, create=True)
    journal.append(rows({}), durable=False)
    assert sorted(each.name for each in tmp_path.iterdir()) == [FILE, f"{FILE}-wal"]
    journal.close()


@pytest.mark.parametrize(
    "change, says",
    [
        (
            "UPDATE rows SET row=replace(row, '\"epoch\":1', '\"epoch\":2') WHERE number=1",
            "row 1 is not what was written",
        ),
        ("DELETE FROM rows WHERE number=2", "row 2 is missing"),
        ("UPDATE rows SET number=9 WHERE number=3", "row 3 is missing"),
    ],
    ids=["changed", "missing", "moved"],
)
def test_damage_is_found_and_said(tmp_path: Path, change: str, says: str) -> None:
    journal = Journal(tmp_path, create=True)
    journal.append(rows({}), durable=True)
    journal.close()
    with sqlite3.connect(tmp_path / FILE) as db:
        db.execute(change)
    db.close()
    damaged = Journal(tmp_path, create=False)
    with pytest.raises(JournalError, match=says):
        list(damaged.read())
    damaged.close()


def test_files_that_are_no_journals(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Journal(tmp_path, create=False)
    (tmp_path / FILE).write_bytes(b"this is no database " * 100)
    with pytest.raises(JournalError, match="cannot be read or written as a sweep's journal"):
        Journal(tmp_path, create=False)
    (tmp_path / FILE).unlink()
    db = sqlite3.connect(tmp_path / FILE)
    db.execute("PRAGMA user_version=7")
    db.close()
    with pytest.raises(JournalError, match="of format 7, and this version of Troupe knows 1"):
        Journal(tmp_path, create=False)


def test_a_disk_that_is_full_is_said_and_nothing_of_the_rows_is_there(tmp_path: Path) -> None:
    journal = Journal(tmp_path, create=True)
    journal.append(rows({}), durable=True)
    journal._db.execute("PRAGMA max_page_count=1")  # as SQLite has it where a disk is full
    with pytest.raises(OSError, match="gone on with once there is room") as raised:
        journal.append([{"kind": "x", "text": "y" * 100_000}, {"kind": "z"}], durable=True)
    assert raised.value.errno == errno.ENOSPC
    journal.close()
    again = Journal(tmp_path, create=False)
    assert len(list(again.read())) == 3
    again.close()


def test_g4_two_writers_are_one_too_many(tmp_path: Path) -> None:
    owner = Owner(tmp_path)
    with pytest.raises(BlockingIOError, match=f"pid {os.getpid()} on "):
        Owner(tmp_path)
    owner.close()
    Owner(tmp_path).close()
    journal = Journal(tmp_path, create=True)
    other = subprocess.run(
        [
            sys.executable,
            "-c",
            f"""
from pathlib import Path
from troupe.tune._journal.journal import Journal
import sqlite3
sqlite3.connect = lambda path, real=sqlite3.connect, **given: real(path, timeout=0.1, **given)
Journal(Path({str(tmp_path)!r}), create=False)""",
        ],
        capture_output=True,
        text=True,
    )
    assert (
        other.returncode == 1
        and "BlockingIOError" in other.stderr
        and "is open in another process" in other.stderr
    )
    journal.close()


def test_g3_a_writer_that_is_killed_leaves_whole_commits(tmp_path: Path) -> None:
    """The process ends itself without a word after a commit that was not synced, with another
    transaction begun."""
    writer = subprocess.run(
        [
            sys.executable,
            "-c",
            f"""
import os
from pathlib import Path
from troupe.tune._journal.journal import Journal
journal = Journal(Path({str(tmp_path)!r}), create=True)
for number in range(100):
    journal.append([{{"kind": "a", "n": number}}, {{"kind": "b", "n": number}}], durable=False)
journal._db.execute("BEGIN")
journal._db.execute("INSERT INTO rows VALUES(201, 0, '')")
os.kill(os.getpid(), 9)""",
        ],
        capture_output=True,
        text=True,
    )
    assert writer.returncode == -9, writer.stderr
    journal = Journal(tmp_path, create=False)
    assert [(row["kind"], row["n"]) for row in journal.read()] == [
        (kind, number) for number in range(100) for kind in "ab"
    ]
    journal.append([{"kind": "c", "n": 0}], durable=True)
    journal.close()


def test_what_cannot_be_pickled_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path, create=True)
    with pytest.raises(exceptions.LaunchError, match="cannot be pickled"):
        journal.append(rows({"lock": threading.Lock()}), durable=True)
    journal.append(rows({}), durable=True)
    assert len(list(journal.read())) == 3
    journal.close()


def test_numbers_of_numpy_are_pythons_own() -> None:
    numpy = pytest.importorskip("numpy")
    found = values.plain_scalars(
        {
            "a": numpy.float32(0.5),
            "b": [numpy.int64(3)],
            "c": (numpy.array(2.0),),
            "d": numpy.arange(3),
        }
    )
    assert [type(each) for each in (found["a"], found["b"][0], found["c"][0])] == [
        float,
        int,
        float,
    ] and found["d"].shape == (3,)
