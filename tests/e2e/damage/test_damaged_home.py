"""Files of TROUPE_HOME that are not what was written: each command says which file, and what to do;
none takes a damaged file for a missing one.

Method: a real cluster is started and stopped once; its folder is put back and damaged in one way
for each test, and real commands look at it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually

from troupe import exceptions
from troupe._cluster import connect, home as _home

KINDS = ("empty", "half", "zeros at its end", "other bytes")
START = ("start", "--head", "--num-cpus", "1", "--node-name", "one")


def damage(path: Path, kind: str) -> None:
    """Write what a full disk, a loss of power or a broken disk leaves."""
    data = path.read_bytes()
    middle = len(data) // 2
    path.write_bytes(
        {
            "empty": b"",
            "half": data[:middle],
            "zeros at its end": data[:middle] + bytes(len(data) - middle),
            "other bytes": bytes((37 * at + 11) % 251 for at in range(len(data))),
        }[kind]
    )


@pytest.fixture(scope="module")
def left(shared_home: Home, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folder of a cluster that was stopped, and a copy of it."""
    shared_home.run(*START, "--port", "0")
    (folder,) = (shared_home.path / "clusters").iterdir()
    shared_home.run("stop")
    copy = tmp_path_factory.mktemp("copy") / "cluster"
    shutil.copytree(folder, copy)
    return folder, copy


@pytest.fixture
def folder(left: tuple[Path, Path]) -> Path:
    """The cluster's folder as it was left, and nothing else in its home."""
    folder, copy = left
    shutil.rmtree(folder.parent)
    folder.parent.mkdir(mode=0o700)
    shutil.copytree(copy, folder)
    return folder


@pytest.fixture
def ended(shared_home: Home) -> Iterator[None]:
    """Nothing of this home runs after the test."""
    yield
    shared_home.run("stop", "--all", ok=False)
    assert not shared_home.processes()


def said_by(*commands: tuple[str, ...]) -> dict[tuple[str, ...], tuple[int, str]]:
    """Run commands side by side; the exit code of each, and what it says."""
    running = {
        words: subprocess.Popen(
            [sys.executable, "-m", "troupe", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for words in commands
    }
    said = {
        words: (process.communicate(timeout=4 * TIMEOUT_S)[0], process.returncode)
        for words, process in running.items()
    }
    for words, (text, _) in said.items():
        assert "Traceback" not in text, f"troupe {' '.join(words)}: {text}"
    return {words: (code, text) for words, (text, code) in said.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_with_every_file_damaged_at_once_each_command_says_so_in_words(
    ended: None, folder: Path, kind: str
) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            damage(path, kind)
    start = (*START, "--port", "0")
    said = said_by(
        start, ("status",), ("journal", "check"), ("stop",), ("start", "--address", "127.0.0.1:9")
    )
    assert said[start][0] == 1 and f"{folder}/head.json is damaged at offset " in said[start][1], (
        said[start]
    )
    assert said["journal", "check"][0] == 1, said["journal", "check"]
    assert (
        f"{folder}/nodes/one/joined.json is damaged at offset "
        in said["start", "--address", "127.0.0.1:9"][1]
    )
    assert "--token-file" in said["start", "--address", "127.0.0.1:9"][1]


@pytest.mark.parametrize(
    ("file", "kind", "repair"),
    [
        ("head.json", "half", "troupe start --head --cluster "),
        ("head.json", "empty", "--listen ADDRESS --port PORT"),
        ("head/ca.key", "zeros at its end", "restore it from a copy"),
        ("head/ca.crt", "half", "move it away"),
        ("head/journal.db", "empty", "remove journal.db and"),
        ("head/journal.db", "other bytes", "remove journal.db and"),
        ("nodes/one/node.key", "half", "remove node.crt there"),
        ("nodes/one/node.crt", "empty", "remove node.crt there"),
        ("nodes/one/ca.crt", "other bytes", "remove node.crt there"),
    ],
)
def test_a_head_that_cannot_go_on_names_the_file_and_the_repair(
    ended: None, folder: Path, file: str, kind: str, repair: str
) -> None:
    damage(folder / file, kind)
    ((code, text),) = said_by((*START, "--port", "0") if file != "head.json" else START).values()
    assert code == 1 and f"{folder}/{file}" in text and repair in text, text
    assert [each.name for each in folder.parent.iterdir()] == [folder.name], (
        "no other cluster was made in its place"
    )


def test_what_says_only_what_can_be_found_out_again_stops_nothing(
    ended: None, shared_home: Home, folder: Path
) -> None:
    for name in ("node.json", "joined.json"):
        damage(folder / "nodes/one" / name, "zeros at its end")
    assert shared_home.json(*START, "--port", "0")["node"]["name"] == "one"
    assert (
        _home.node_of(folder / "nodes/one/node.json")
        and "is damaged, and not used" in (folder / "nodes/one/worker.log").read_text()
    )


def test_a_cluster_that_runs_is_found_and_stopped_without_its_records(
    ended: None, shared_home: Home, folder: Path
) -> None:
    """By the locks that its programs hold; started again where it listened it is the same cluster,
    with a whole record."""
    started = shared_home.json(*START, "--port", "0")
    for name in ("head.json", "nodes/one/node.json"):
        damage(folder / name, "half")
    for words, (code, text) in said_by(
        ("status",), ("submit", "--quiet", "--", "true"), START
    ).items():
        assert (
            code == 1
            and f"{folder}/head.json is damaged" in text
            and "troupe stop, then troupe start --head --cluster" in text
        ), (words, text)
    with pytest.raises(exceptions.DamagedFileError, match="head.json is damaged"):
        connect.only_local_cluster()
    assert sorted(shared_home.json("stop")["stopped"]) == sorted(
        [started["pid"], started["node"]["pid"]]
    )
    eventually(lambda: not shared_home.processes(), what="the end of both")
    again = shared_home.json(
        *START,
        "--port",
        started["address"].rpartition(":")[2],
        "--cluster",
        started["cluster_id"][:8],
    )
    assert (again["cluster_id"], again["address"], again["resumed"]) == (
        started["cluster_id"],
        started["address"],
        True,
    )
    assert _home.cluster_of(folder / "head.json").damage is None


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "7",
        "{}",
        '{"cluster_id": "a", "address": 5, "pid": 1, "socket": ""}',
        '{"cluster_id": "a", "address": "h:1", "pid": "1"}',
    ],
)
def test_json_that_does_not_say_what_it_must_is_damaged_too(tmp_path: Path, text: str) -> None:
    (tmp_path / "head.json").write_text(text)
    found = _home.cluster_of(tmp_path / "head.json")
    assert found is not None and not found.running and "does not say" in str(found.damage)
    with pytest.raises(exceptions.DamagedFileError, match="head.json is damaged at offset 0"):
        found.require_whole()
    assert (
        _home.cluster_of(tmp_path / "nothing") is None
        and _home.holder_of(tmp_path / "nothing") == 0
    )


def test_who_holds_a_lock_is_known(tmp_path: Path) -> None:
    import fcntl

    with open(tmp_path / "lock", "w") as lock:
        assert _home.holder_of(tmp_path / "lock") == 0
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert _home.holder_of(tmp_path / "lock") == os.getpid()
