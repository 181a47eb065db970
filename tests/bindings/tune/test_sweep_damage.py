"""Files of a sweep that are whole, torn at the end, or damaged: every reader says which file,
where, and what to do.

Method: the files of a sweep that is over, written by hand; every row, every object and every file
is damaged in turn.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import pytest

from troupe.tune._journal import view
from troupe.tune._journal.journal import FILE, Journal, JournalError
from troupe.tune._run import folder as folders
from troupe.tune._run.folder import ABOUT, TRAINABLE, TUNER, SweepFolder

TRIALS = 3


class Part:
    """An object that JSON has not."""

    def __init__(self, number: int) -> None:
        self.number = number


cloudpickle.register_pickle_by_value(__import__("sys").modules[__name__])


def sweep(path: Path) -> Path:
    """A sweep of three trials that each reported once, and are over; configurations hold
    objects."""
    made = SweepFolder(path, new=True)
    made.keep_tuner({"space": {"a": 1}})
    made.keep_trainable(len)
    made.keep_about(
        {"name": path.name, "metric": "x", "mode": "max", "trial_name": "train", "trials": TRIALS}
    )
    rows: list[dict] = [{"kind": "begin", "epoch": 1, "host": "h", "pid": 1, "wall": 1.0}]
    for number in range(TRIALS):
        name = f"t{number}"
        rows += [
            {
                "kind": "trial",
                "trial": name,
                "config": {"part": Part(number)},
                "extra": {},
                "shape": "",
            },
            {"kind": "start", "trial": name, "attempt": 1, "number": 0, "where": {}, "base": None},
            {
                "kind": "report",
                "trial": name,
                "attempt": 1,
                "sequence": 1,
                "number": 1,
                "metrics": {"x": number},
                "checkpoint": "",
                "can_add": False,
                "begun": 0,
            },
            {"kind": "end", "trial": name, "end": "completed", "why": "its function returned"},
        ]
    made.journal.append([*rows, {"kind": "leave", "seconds": 1.0, "over": "all"}], durable=True)
    made.close()
    return path


def read_all(path: Path) -> None:
    """Reads as an engine that goes on with the sweep does."""
    journal = Journal(path, create=False)
    try:
        list(journal.read())
    finally:
        journal.close()


def test_every_row_that_is_not_what_was_written_is_named_by_every_reader(tmp_path: Path) -> None:
    path = sweep(tmp_path / "sweep")
    whole = (path / FILE).read_bytes()
    with sqlite3.connect(path / FILE) as db:
        texts = dict(db.execute("SELECT number, row FROM rows"))
    db.close()
    assert len(texts) == 2 + 4 * TRIALS
    for number, text in texts.items():
        for value in (
            "\0" * len(text),
            text[: len(text) // 2],
            text.replace("t", "u", 1).replace("epoch", "epocj").replace("leave", "leavf"),
            b"\xff\x00",
            None,
        ):
            (path / FILE).write_bytes(whole)
            with sqlite3.connect(path / FILE) as db:
                if value is None:
                    db.execute("UPDATE rows SET crc=crc+1 WHERE number=?", (number,))
                else:
                    db.execute("UPDATE rows SET row=? WHERE number=?", (value, number))
            db.close()
            for reader in (read_all, view.of):
                with pytest.raises(
                    JournalError,
                    match=rf"{FILE}: row {number} is not what was written: the file is damaged\n  start the sweep anew",
                ):
                    reader(path)


def test_every_object_is_compared_with_its_digest(tmp_path: Path) -> None:
    path = sweep(tmp_path / "sweep")
    read_all(path)
    whole = (path / FILE).read_bytes()
    with sqlite3.connect(path / FILE) as db:
        objects = dict(db.execute("SELECT key, data FROM objects"))
    db.close()
    assert len(objects) == TRIALS
    other = cloudpickle.dumps(Part(9))  # readable, as the damage is elsewhere
    for key, data in objects.items():
        for value in (other, bytes(len(data)), data[:-1], b"", "text"):
            (path / FILE).write_bytes(whole)
            with sqlite3.connect(path / FILE) as db:
                db.execute("UPDATE objects SET data=? WHERE key=?", (value, key))
            db.close()
            with pytest.raises(
                JournalError, match=rf"{FILE}: the object {key} is not what was written"
            ):
                read_all(path)
        assert len(view.of(path).trials) == TRIALS  # the view loads no objects


@pytest.mark.parametrize("size", [0, 100, 4096, 5000, 8192])
def test_a_journal_that_was_cut_off_is_not_taken_for_a_sweep_that_has_not_begun(
    tmp_path: Path, size: int
) -> None:
    path = sweep(tmp_path / "sweep")
    whole = (path / FILE).read_bytes()
    assert len(whole) > size
    for data in (whole[:size], whole[:size] + bytes(len(whole) - size)):
        (path / FILE).write_bytes(data)
        for reader in (
            (read_all, view.of) if size < 8192 else (read_all,)
        ):  # behind that there are objects, which a view does not load
            with pytest.raises(
                JournalError, match=rf"{path}/{FILE}.*(\n.*)?start the sweep anew|cannot be read"
            ):
                reader(path)


def damages(data: bytes) -> Iterator[bytes]:
    """The file with a part that is not what was written, and cut off."""
    for at in {0, 1, len(data) // 2, len(data) - 1}:
        yield data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        yield data[:at]
    yield bytes(len(data))


@pytest.mark.parametrize(
    "name, read", [(TUNER, folders.tuner_of), (TRAINABLE, folders.trainable_of)]
)
def test_what_a_sweep_goes_on_with_is_read_whole_or_not_at_all(
    tmp_path: Path, name: str, read: object
) -> None:
    path = sweep(tmp_path / "sweep")
    assert read(path) in ({"space": {"a": 1}}, len) or read(path).function is len  # type: ignore[operator]
    data = (path / name).read_bytes()
    for damaged in damages(data):
        (path / name).write_bytes(damaged)
        with pytest.raises(
            JournalError,
            match=rf"{name} \({len(damaged)} bytes, from offset 0 on\) is not what was written",
        ):
            read(path)  # type: ignore[operator]


def test_what_people_look_at_is_named_and_can_be_removed(tmp_path: Path) -> None:
    path = sweep(tmp_path / "sweep")
    for data in (b"", bytes(50), (path / ABOUT).read_bytes()[:-3], b"[1]", b"3"):
        (path / ABOUT).write_bytes(data)
        with pytest.raises(
            JournalError, match=rf"{ABOUT} is damaged \(offset \d+: .*remove it, and Tuner.restore"
        ):
            view.of(path)
    (path / ABOUT).unlink()
    assert len(view.of(path).trials) == TRIALS and view.of(path).metric is None


@pytest.mark.parametrize("text", [b"", bytes(40), b'{"pid": 1', b"[1]"])
def test_what_an_engine_wrote_of_itself_matters_to_nobody_but_the_lock(
    tmp_path: Path, text: bytes
) -> None:
    path = sweep(tmp_path / "sweep")
    (path / ".engine").write_bytes(text)
    assert view.of(path).state == "finished"
    first = SweepFolder(path, new=False)
    (path / ".engine").write_bytes(text)
    with pytest.raises(BlockingIOError, match="another process runs the sweep"):
        SweepFolder(path, new=False)
    first.close()


def test_a_damaged_sweep_hides_no_other_in_the_list(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from troupe.cli._sweep import sweep as command

    for number, damage in enumerate(("", "empty", "row", "about", "object", "zeros")):
        path = sweep(tmp_path / f"s{number}")
        if damage == "empty":
            (path / FILE).write_bytes(b"")
        elif damage == "zeros":
            (path / FILE).write_bytes(bytes(8192))
        elif damage == "about":
            (path / ABOUT).write_bytes(bytes(9))
        elif damage:
            with sqlite3.connect(path / FILE) as db:
                db.execute(
                    "UPDATE objects SET data=x'00'"
                    if damage == "object"
                    else "UPDATE rows SET row=x'00' WHERE number=4"
                )
            db.close()
    done = CliRunner().invoke(command, ["list", "--storage", str(tmp_path), "--json"])
    assert done.exit_code == 0, done.output
    assert {each["name"]: each["state"] for each in json.loads(done.stdout)} == {
        "s0": "finished",
        "s1": "unreadable",
        "s2": "unreadable",
        "s3": "unreadable",
        "s4": "finished",
        "s5": "unreadable",
    }
