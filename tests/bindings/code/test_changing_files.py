"""Files that several write at once, and folders whose files vanish while they are copied.

Method: threads write one path again and again; a file is removed between the look at its folder and
the copy.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from troupe._cluster import folders
from troupe._code import packed
from troupe.azure import _code_folder, _files
from troupe.azure._data import inputs
from troupe.train import Checkpoint, _run_folder

WRITERS, ROUNDS = 8, 100


def by_packed(path: Path, number: int) -> None:
    packed.write(path, {"by": number, "filler": "x" * 5000})


def by_run_folder(path: Path, number: int) -> None:
    _run_folder.write_whole(path, json.dumps({"by": number, "filler": "x" * 5000}))


def by_checkpoint(path: Path, number: int) -> None:
    Checkpoint(path.parent).set_metadata({"by": number, "filler": "x" * 5000})


@pytest.mark.parametrize("write", [by_packed, by_run_folder, by_checkpoint])
def test_of_writers_at_once_the_last_one_stays_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path, int], None]
) -> None:
    """Threads of one process, and so of one pid, as two containers on a shared disk may have."""
    monkeypatch.setattr(_run_folder, "synced", lambda _: None)
    path = tmp_path / (".metadata.json" if write is by_checkpoint else "record")
    with ThreadPoolExecutor(WRITERS) as pool:
        for done in [
            pool.submit(write, path, number % WRITERS) for number in range(WRITERS * ROUNDS)
        ]:
            done.result()
    assert json.loads(path.read_bytes())["by"] < WRITERS
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_replacement_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("before")
    with pytest.raises(KeyError), folders.replacement(path) as fresh:
        fresh.write_text("half")
        raise KeyError("x")
    with pytest.raises(FileNotFoundError), folders.replacement(path):
        pass  # nothing was written
    assert [each.name for each in tmp_path.iterdir()] == ["a"] and path.read_text() == "before"


def test_code_of_a_sweep_is_copied_without_what_vanishes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = tmp_path / "code"
    (code / "logs").mkdir(parents=True)
    for name in ("main.py", "logs/old", "logs/new"):
        (code / name).write_text(name)
    files_of = _code_folder.listing.files_of

    def and_then_rotated(*args: Any, **kwargs: Any) -> Any:
        found = files_of(*args, **kwargs)
        (code / "logs/old").unlink()
        (code / "logs/new").write_text("longer than before")
        return found

    monkeypatch.setattr(_code_folder.listing, "files_of", and_then_rotated)
    copy = _code_folder.keep(str(code), tmp_path / "copy", "the code of the sweep")
    assert {
        str(each.relative_to(copy)): each.read_text() for each in copy.rglob("*") if each.is_file()
    } == {"main.py": "main.py", "logs/new": "longer than before"}


def test_files_of_a_job_are_brought_without_what_vanishes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While its folder is looked at, before its first piece, and between two of them."""
    folder = tmp_path / "job"
    (folder / "logs").mkdir(parents=True)
    for name in "abc":
        (folder / "logs" / name).write_text(name * 3)
    monkeypatch.setattr(_files, "_PIECE_BYTES", 2)
    monkeypatch.setattr(_files.packages, "find", Path)
    job = _files.JobFiles(str(folder))
    digest = _files._digest

    def vanishes(path: Path) -> str:
        (folder / "logs/a").unlink(missing_ok=True)
        return digest(path)

    monkeypatch.setattr(_files, "_digest", vanishes)
    listed = [(path, size) for path, size, _ in job.listed("logs")[0]]
    assert listed == [("b", 3), ("c", 3)]
    (folder / "logs/b").unlink()

    def piece(name: str, at: int) -> bytes | None:
        got = job.piece("logs", name, at)
        (folder / "logs/c").unlink(missing_ok=at > 0) if name == "c" else None
        return got

    for name, size in listed:
        _files._write(tmp_path / "brought" / name, size, lambda at, name=name: piece(name, at))
    assert not list((tmp_path / "brought").iterdir())
    with pytest.raises(FileNotFoundError, match="the job's directory is not on this node any more"):
        monkeypatch.setattr(_files.packages, "find", lambda _: None)
        _files.JobFiles("x").piece("logs", "b", 0)


def test_a_copied_input_has_nothing_that_leads_a_write_to_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links of each kind, a FIFO, rights, and a file that vanishes before it is opened; by ranges
    and by plain copies."""
    source, other = tmp_path / "source", tmp_path / "other"
    (source / "blobs").mkdir(parents=True)
    other.mkdir()
    (other / "o").write_text("other")
    (source / "blobs/x").write_text("x" * 100_000)
    (source / "blobs/x").chmod(0o444)
    for name, text in {
        "inner": "blobs/x",
        "absolute": str(source / "blobs/x"),
        "outer": "../other",
        "cycle": "../source",
        "broken": "/nowhere",
    }.items():
        (source / name).symlink_to(text)
    os.mkfifo(source / "pipe")
    (source / "gone").write_text("")
    opens = os.open

    def and_gone(path: Any, *more: Any, **named: Any) -> int:
        (source / "gone").unlink(missing_ok=True)
        return opens(path, *more, **named)

    monkeypatch.setattr(inputs.os, "open", and_gone)
    for target in (tmp_path / "ranges", tmp_path / "plain"):
        inputs.copy(str(source), target, "inputs: d")
        assert sorted(str(each.relative_to(target)) for each in target.rglob("*")) == [
            "absolute",
            "blobs",
            "blobs/x",
            "inner",
            "outer",
            "outer/o",
        ]
        assert (target / "inner").readlink() == Path("blobs/x") and not any(
            (target / each).is_symlink() for each in ("absolute", "outer", "outer/o")
        )
        assert (target / "absolute").read_text() == "x" * 100_000 and (
            target / "blobs/x"
        ).stat().st_mode & 0o777 == 0o644

        def no_ranges(*_: Any) -> int:
            raise OSError(errno.EXDEV, "")

        monkeypatch.setattr(inputs.os, "copy_file_range", no_ranges)


def test_inputs_are_copied_where_no_process_may_mount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/a").write_text("a")
    monkeypatch.setattr(inputs, "PROGRAM", str(tmp_path / "none.py"))
    monkeypatch.setattr(inputs, "_may_mount_as_root", lambda _: False)
    (tmp_path / "job/inputs").mkdir(parents=True)
    inputs.place(
        tmp_path / "job",
        {
            "d": (str(tmp_path / "d"), "ro_mount", ""),
            "f": (str(tmp_path / "d/a"), "", "a"),
            "place": (str(tmp_path / "d"), "rw_mount", ""),
        },
        mounts=True,
    )
    (tmp_path / "job/inputs/d/a").write_text("changed")
    (tmp_path / "job/inputs/f/a").write_text("changed")
    assert (tmp_path / "d/a").read_text() == "a" and inputs.with_mounts(
        tmp_path / "job", "true", "bash"
    ) == "true"
    assert inputs.shown(tmp_path / "job/inputs/place") == str(tmp_path / "d")
