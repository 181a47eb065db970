"""A run's folder: a process that ends at any step leaves checkpoints that are whole, each with the
report that brought it.

Method: a child process commits and drops checkpoints, and ends without a word at the n-th step that
changes the file system, for every n; the folder is opened again and looked at. What is written is
not synced to the disk, which no process's end asks for.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from troupe.train import Checkpoint, Result, _run_folder
from troupe.train._run_folder import RunFolder


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_run_folder, "synced", lambda path: None)


STEPS = (
    (os, "rename"),
    (os, "replace"),
    (os, "unlink"),
    (os, "mkdir"),
    (os, "rmdir"),
    (shutil, "copyfile"),
)


def part(folder: RunFolder, staging: Path, number: int, rank: int, text: str) -> Path:
    source = folder.path.parent / f"source-{number}-{rank}"
    source.mkdir(exist_ok=True)
    (source / "model").write_text(text)
    (source / f"own-{rank}").write_text(text)
    return staging / _run_folder.stage(staging, folder.nonce, number, rank, source)


def train(storage: Path, *, reports: int) -> None:
    """Reports with a checkpoint of two ranks each, of which two stay."""
    folder = RunFolder(storage, "run")
    staging = folder.restarted()
    for number in range(1, reports + 1):
        n = folder.reports + 1
        folder.commit(
            {"n": n}, [part(folder, staging, number, rank, f"{n} {rank}") for rank in (0, 1)], None
        )
        for one in folder.kept[:-2]:
            folder.drop(one)
    folder.close()


def ends_at(step: int, storage: Path) -> bool:
    """Return True if a child that trains there came to that many steps, and ended at it."""
    pid = os.fork()
    if pid == 0:
        left = [step]

        def counted(owner: object, name: str) -> None:
            real = getattr(owner, name)

            def call(*args: object, **kwargs: object) -> object:
                left[0] -= 1
                if left[0] == 0:
                    os._exit(9)
                return real(*args, **kwargs)

            setattr(owner, name, call)

        try:
            for owner, name in STEPS:
                counted(owner, name)
            train(storage, reports=3)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9


def test_every_checkpoint_is_whole_wherever_its_writer_ended(tmp_path: Path) -> None:
    step = 1
    while ends_at(step, storage := tmp_path / str(step)):
        before = (
            Result.from_path(storage / "run") if (storage / "run" / ".reports").is_dir() else None
        )
        folder = RunFolder(storage, "run")
        names = [one.name for one in folder.kept]
        assert (
            before is None or [Path(each.path).name for each, _ in before.best_checkpoints] == names
        )
        assert before is None or [m["n"] for m in before.metrics_history] == list(
            range(1, len(before.metrics_history) + 1)
        ), step
        for one in folder.kept:
            n = one.metrics["n"]
            assert n == one.report and (folder.path / one.name / "model").read_text() == f"{n} 0", (
                step,
                one,
            )  # the lower rank's file, where both have one
            assert sorted(os.listdir(folder.path / one.name)) == ["model", "own-0", "own-1"], (
                step,
                one,
            )
        assert {each.name for each in folder.path.iterdir()} <= {
            *names,
            ".reports",
            ".run",
            "progress.jsonl",
        }, step
        assert sorted(each.name for each in (folder.path / ".reports").iterdir()) == names, step
        was = folder.kept[-1].report if folder.kept else 0
        folder.close()
        train(storage, reports=1)
        after = Result.from_path(storage / "run")
        assert after.metrics == {"n": was + 1} and [m["n"] for m in after.metrics_history] == list(
            range(1, was + 2)
        ), step
        step += 1
    assert step > 60, step  # passes through all steps of three reports


def test_reports_after_the_checkpoint_of_a_restart_do_not_count(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "run")
    for attempt in range(2):
        staging = folder.restarted()
        for number in range(1, 3):
            folder.commit(
                {"n": 10 * attempt + number},
                [part(folder, staging, number, rank, "x") for rank in (0, 1)]
                if number == 1
                else [],
                None,
            )
    assert [each["n"] for each in Result.from_path(folder.path).metrics_history] == [
        1,
        11,
        12,
    ] and [one.report for one in folder.kept] == [1, 2]
    folder.close()


def test_half_a_line_of_progress_is_none(tmp_path: Path) -> None:
    train(tmp_path, reports=2)
    with (tmp_path / "run" / "progress.jsonl").open("a") as file:
        file.write('{"report": 3, "metr')
    assert Result.from_path(tmp_path / "run").metrics == {"n": 2}
    train(tmp_path, reports=1)
    assert Result.from_path(tmp_path / "run").metrics == {"n": 3}


def test_one_process_at_a_time(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "run")
    with pytest.raises(
        BlockingIOError, match=rf"another process trains in {tmp_path}/run: pid {os.getpid()} on "
    ):
        RunFolder(tmp_path, "run")
    folder.close()
    RunFolder(tmp_path, "run").close()


def test_a_name_is_given_once(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "run")
    staging = folder.restarted()
    folder.commit({}, [part(folder, staging, 1, 0, "a")], "best")
    with pytest.raises(FileExistsError, match="there is a 'best' in .* already"):
        folder.commit({}, [part(folder, staging, 2, 0, "b")], "best")
    assert (folder.path / "best" / "model").read_text() == "a" and len(folder.kept) == 1
    assert not list(staging.iterdir())  # neither of what was kept nor of what was not
    folder.close()


def test_a_folder_that_is_not_there_or_not_writable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="the run's folder cannot be written"):
        RunFolder(tmp_path / "file", "run")
    with pytest.raises(FileNotFoundError, match="is no folder of a run"):
        Result.from_path(tmp_path / "nothing")


def test_another_hosts_folder_of_the_same_path(tmp_path: Path) -> None:
    """A rank that sees a folder of that name, and not this one, does not write into it."""
    folder = RunFolder(tmp_path, "run")
    staging = folder.restarted()
    with pytest.raises(FileNotFoundError, match="has to be a folder that all of them share"):
        _run_folder.stage(staging, "another", 1, 1, tmp_path)
    assert not (staging / "1").exists()
    folder.close()


def test_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "model").write_text("weights")
    made = Checkpoint.from_directory(tmp_path / "c")
    assert made.get_metadata() == {}
    made.set_metadata({"epoch": 1})
    made.update_metadata({"lr": 0.1})
    assert (
        made.get_metadata()
        == {"epoch": 1, "lr": 0.1}
        == json.loads((tmp_path / "c" / ".metadata.json").read_text())
    )
    with made.as_directory() as folder:
        assert folder == str(tmp_path / "c")
    copy = Checkpoint(made.to_directory(tmp_path / "copy" / "of"))
    assert (
        (tmp_path / "copy" / "of" / "model").read_text() == "weights"
        and copy.get_metadata()["epoch"] == 1
        and copy != made
    )
    temporary = made.to_directory()
    assert Path(temporary, "model").read_text() == "weights"
    shutil.rmtree(temporary)
    with pytest.raises(FileNotFoundError, match="there is no such folder on"):
        Checkpoint(tmp_path / "nothing").to_directory()
    with pytest.raises(NotADirectoryError), Checkpoint(tmp_path / "c" / "model").as_directory():
        pass
    with pytest.raises(ValueError, match="without filesystem="):
        Checkpoint("/x", filesystem="s3")
    with pytest.raises(TypeError, match="of the path of a folder"):
        Checkpoint(3)
