"""The working directory on other hosts: as it is at each launch, and no more of it sent than has
changed.

Method: two workers by --force-tcp, which take no path of this host for theirs. Rules and limits:
tests/bindings/code/test_trees.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Home
from submits import printed, project, troupe_in

from troupe.launch import distributed

READS = (
    "import os\nimport helper\nprint(helper.VALUE, os.environ['RANK'], len(open('large.bin', "
    "'rb').read()), os.getcwd())\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = project(tmp_path / "w", reads=READS, helper="VALUE = 1\n")
    (made / "large.bin").write_bytes(os.urandom(400_000))
    return made


def edited_unseen(file: Path, text: str) -> None:
    """Another text of the same size, with the time of the old one."""
    before = file.stat()
    file.write_text(text)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def kept_by_workers(home: Home) -> dict[str, int]:
    return {str(path): path.stat().st_size for path in home.path.rglob("blobs/*") if path.is_file()}


def test_each_launch_has_the_directory_as_it_is_then(hosts: dict[str, str], folder: Path) -> None:
    def value() -> int:
        import helper

        return helper.VALUE

    launch = distributed(
        processes=2,
        remote=True,
        strategy="SPREAD",
        quiet=True,
        runtime_env={"working_dir": str(folder)},
    )(value)
    assert launch.distributed() == [1, 1]
    edited_unseen(folder / "helper.py", "VALUE = 2\n")
    assert launch.distributed() == [2, 2]
    edited_unseen(folder / "helper.py", "VALUE = 1\n")
    assert launch.distributed() == [1, 1]


def test_only_what_changed_is_sent_by_another_process_too(
    hosts: dict[str, str], shared_home: Home, folder: Path
) -> None:
    first = printed(troupe_in(folder, "submit", "--nnodes", "2", "reads.py"))
    assert [line.split()[:3] for line in first] == [["1", "0", "400000"], ["1", "1", "400000"]]
    before = kept_by_workers(shared_home)
    assert printed(troupe_in(folder, "submit", "--nnodes", "2", "reads.py")) == first, (
        "in the same folder of the nodes"
    )
    edited_unseen(folder / "helper.py", "VALUE = 3\n")
    assert [
        line.split()[:3]
        for line in printed(troupe_in(folder, "submit", "--nnodes", "2", "reads.py"))
    ] == [["3", "0", "400000"], ["3", "1", "400000"]]
    new = {path: size for path, size in kept_by_workers(shared_home).items() if path not in before}
    assert new and sum(new.values()) < 100_000, new


def test_what_a_host_has_of_it_is_made_anew_where_it_was_changed(
    hosts: dict[str, str], folder: Path
) -> None:
    there = printed(troupe_in(folder, "submit", "reads.py"))[0].split()[3]
    Path(there, "helper.py").write_text("VALUE = 0\n")
    assert printed(troupe_in(folder, "submit", "reads.py"))[0].split()[:3] == ["1", "0", "400000"]


WRITERS = """
import os, sqlite3, sys, time
kind, folder = sys.argv[1:]
print("writes", flush=True)
number = 0
database = sqlite3.connect(os.path.join(folder, "runs.db")) if kind == "sqlite" else None
if database is not None:
    database.execute("create table runs (number integer)")
while True:
    number += 1
    if kind == "log":
        with open(os.path.join(folder, "run.log"), "a") as log:
            log.write(f"step {number}\\n")
    elif kind == "temporary":
        path = os.path.join(folder, "part", f"{number}.tmp")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "w").close()
        os.unlink(path)
        os.rmdir(os.path.dirname(path))
    elif kind == "rewritten":
        with open(os.path.join(folder, "state.json"), "w") as state:
            state.write("x" * (number % 5000))
    else:
        database.execute("insert into runs values (?)", (number,))
        database.commit()
    time.sleep(0.002)  # lint-ok: the pace of a writer
"""


def test_what_writes_in_the_directory_fails_no_launch(
    hosts: dict[str, str], folder: Path, tmp_path: Path
) -> None:
    """Four kinds of writers beside 200 files: a log that grows, a folder that comes and goes, a
    file written anew, a database."""
    for number in range(200):
        (folder / f"{number}.txt").write_text(str(number))
    (tmp_path / "writes.py").write_text(WRITERS)
    writers = [
        subprocess.Popen(
            [sys.executable, str(tmp_path / "writes.py"), kind, str(folder)], stdout=subprocess.PIPE
        )
        for kind in ("log", "temporary", "rewritten", "sqlite")
    ]
    try:
        for each in writers:
            assert each.stdout is not None and each.stdout.readline()

        def seen() -> tuple[int, bool]:
            return sum(
                Path(f"{number}.txt").read_text() == str(number) for number in range(200)
            ), Path("run.log").read_text().endswith("\n")

        launch = distributed(
            processes=2,
            remote=True,
            strategy="SPREAD",
            quiet=True,
            runtime_env={"working_dir": str(folder)},
        )(seen)
        for _ in range(int(os.environ.get("TROUPE_TEST_LAUNCHES", "12"))):
            assert launch.distributed() == [(200, True)] * 2
    finally:
        for each in writers:
            each.kill()
            each.wait()
