"""Files of a run that are whole, torn at the end, or damaged: what a later training does with each.

Method: every record of every file is damaged in every way in turn, and the run is opened again.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from troupe.train import Checkpoint, Result, _run_folder
from troupe.train._records import DamagedFileError
from troupe.train._run_folder import PROGRESS, REPORTS, RunFolder


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_run_folder, "synced", lambda path: None)


def train(storage: Path) -> Path:
    """Four reports, the second and the third with a checkpoint."""
    folder = RunFolder(storage, "run")
    staging = folder.restarted()
    for number in range(1, 5):
        source = storage / "source"
        source.mkdir(exist_ok=True)
        (source / "model").write_text(str(number))
        parts = (
            [staging / _run_folder.stage(staging, folder.nonce, number, 0, source)]
            if number in (2, 3)
            else []
        )
        folder.commit({"n": number}, parts, None)
    folder.close()
    return storage / "run"


def damaged(data: bytes, start: int, end: int, kind: str) -> bytes:
    """The record from `start` to `end`, its line's end included, is not what was written."""
    middle = (start + end) // 2
    if kind == "zeros":
        return data[:start] + bytes(end - start) + data[end:]
    if kind == "zeros from its middle":
        return data[:middle] + bytes(end - middle) + data[end:]
    if kind == "another digit":
        at = data.index(b'"n": ', start) + 5
        return data[:at] + b"9" + data[at + 1 :]
    if kind == "glued to the next":
        return data[: end - 1] + data[end:]
    assert kind == "half of it"
    return data[:middle] + data[end:]


KINDS = ["zeros", "zeros from its middle", "another digit", "glued to the next", "half of it"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_history_is_cut_at_a_torn_end_and_refused_where_it_is_damaged_before(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture
) -> None:
    run = train(tmp_path)
    whole = (run / PROGRESS).read_bytes()
    assert [line["metrics"]["n"] for line in _run_folder.lines_of(run)] == [1, 2, 3, 4]
    starts = [0, *(at + 1 for at, byte in enumerate(whole) if byte == 10)]
    for number, (start, end) in enumerate(zip(starts, starts[1:]), 1):
        (run / PROGRESS).write_bytes(damaged(whole, start, end, kind))
        if number == 4:
            assert [each["n"] for each in Result.from_path(run).metrics_history] == [1, 2, 3]
            capsys.readouterr()
            folder = RunFolder(tmp_path, "run")
            folder.close()
            assert (run / PROGRESS).read_bytes() == whole[:start]
            assert f"{PROGRESS} are no whole report, and are cut off" in capsys.readouterr().err
            continue
        for opened in (lambda: RunFolder(tmp_path, "run"), lambda: Result.from_path(run)):
            with pytest.raises(
                DamagedFileError,
                match=rf"{PROGRESS} is damaged at offset {start}: line {number} .*\n  move the file away",
            ) as raised:
                opened()
            assert raised.value.offset == start
    (run / PROGRESS).unlink()  # the repair
    folder = RunFolder(tmp_path, "run")
    assert folder.reports == 3 and [each["n"] for each in _run_folder.history(run)] == [2, 3]
    folder.close()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "glued to the next"])
@pytest.mark.parametrize("name", ["checkpoint_000000", "checkpoint_000001"])
def test_a_checkpoints_report_that_is_damaged_is_named_with_the_repair(
    tmp_path: Path, kind: str, name: str
) -> None:
    run = train(tmp_path)
    record = run / REPORTS / name
    data = record.read_bytes()
    record.write_bytes(damaged(data, 0, len(data), kind))
    for opened in (lambda: RunFolder(tmp_path, "run"), lambda: Result.from_path(run)):
        with pytest.raises(
            DamagedFileError,
            match=rf"{name} is damaged at offset 0: .*\n  remove the file and the folder .*/run/{name}: the run goes on",
        ):
            opened()


def test_files_of_an_older_version_are_read(tmp_path: Path) -> None:
    run = train(tmp_path)
    for path in [run / PROGRESS, *(run / REPORTS).iterdir()]:
        lines = [
            {name: value for name, value in json.loads(line).items() if name != "crc"}
            for line in path.read_text().splitlines()
        ]
        path.write_text(
            "".join(json.dumps(line) + "\n" for line in lines)
            if path.name == PROGRESS
            else json.dumps(lines[0])
        )
    folder = RunFolder(tmp_path, "run")
    assert [one.report for one in folder.kept] == [2, 3] and [
        each["n"] for each in _run_folder.history(run)
    ] == [1, 2, 3, 4]
    folder.close()


@pytest.mark.parametrize("text", [b"", bytes(40), b'{"pid": 1', b"[1]"])
def test_what_an_owner_wrote_of_itself_matters_to_nobody_but_the_lock(
    tmp_path: Path, text: bytes
) -> None:
    run = train(tmp_path)
    first = RunFolder(tmp_path, "run")
    (run / _run_folder.OWNER).write_bytes(text)
    with pytest.raises(BlockingIOError, match="another process trains in"):
        RunFolder(tmp_path, "run")
    first.close()
    RunFolder(tmp_path, "run").close()


def test_metadata_that_is_damaged_is_named(tmp_path: Path) -> None:
    checkpoint = Checkpoint.from_directory(tmp_path)
    checkpoint.set_metadata({"a": 1})
    (path,) = tmp_path.iterdir()
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(
        ValueError, match=rf"{path.name} is damaged at offset 0 .*set_metadata\(\) writes it anew"
    ):
        checkpoint.get_metadata()
    checkpoint.set_metadata({"a": 2})
    assert checkpoint.get_metadata() == {"a": 2}
