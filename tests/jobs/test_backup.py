# Method: a head that is written to all the time is backed up, started again, killed, and its state
#     removed; the backup is restored, and its worker and its values come back.
from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually, running

from troupe import exceptions
from troupe._cluster import connect, home as homes
from troupe.cli.operation import _journal_backup

BACKUPS = 3
KEYS = 50


class Writer:
    """A thread that puts numbers under keys in turn, as fast as the head takes them."""

    def __init__(self, address: str) -> None:
        self._session = connect.connect(address)
        self._ended = threading.Event()
        self.durable = 0
        """The latest number of which the head has said that it is kept"""
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            number = self.durable + 1
            fields = {"scope": "s", "key": f"k{number % KEYS}", "overwrite": True}
            self._session.request("KvPut", fields, b"%d " % number + bytes(4000))
            self.durable = number

    def end(self) -> None:
        self._ended.set()
        self._thread.join()
        self._session.close()


def _latest(session: Any) -> int:
    """The largest number that the head has."""
    keys = session.request("KvList", {"scope": "s", "prefix": ""})[1]["keys"]
    values = [bytes(session.request("KvGet", {"scope": "s", "key": key})[2]) for key in keys]
    return max(int(each.split()[0]) for each in values)


def _kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not running(pid), what="the head's end")


def test_a_backup_of_a_head_that_runs_is_whole_and_takes_the_place_of_lost_state(
    home: Home, tmp_path: Path
) -> None:
    head = home.json("start", "--head", "--port", "0", "--num-cpus", "2", "--node-name", "one")
    place = Path(head["state"])
    writer = Writer(head["address"])
    try:
        eventually(lambda: writer.durable > 2 * KEYS, what="the first values")
        for number in range(BACKUPS):
            before = writer.durable
            home.run("journal", "backup", str(tmp_path / f"b{number}"))
    finally:
        writer.end()
    backup = tmp_path / f"b{BACKUPS - 1}"
    assert backup.stat().st_mode & 0o777 == 0o700
    assert (backup / "head" / "archive.db").exists()
    assert all(each.stat().st_mode & 0o077 == 0 for each in backup.rglob("*"))
    again = home.run("journal", "backup", str(backup), ok=False)
    assert again.returncode == 1 and "is there already" in again.stderr
    running_head = home.run("journal", "restore", str(backup), ok=False)
    assert running_head.returncode == 2 and "troupe stop" in running_head.stderr

    for _ in range(2):  # incarnations that the backup does not know, and the worker does
        _kill(home.json("status")["pid"])
        home.run("start", "--head", "--no-worker")
        eventually(lambda: _alive(home) == ["one"], what="the worker's return")
    _kill(home.json("status")["pid"])
    refused = home.run("journal", "restore", str(backup), ok=False)
    assert refused.returncode == 2 and "--replace" in refused.stderr
    shutil.rmtree(place / "head")
    told = home.run("journal", "restore", str(backup)).stdout
    line = told.partition("troupe start ")[2].split()
    home.run("start", *line, "--no-worker")
    session = connect.connect(head["address"])
    try:
        assert before <= _latest(session) <= writer.durable
    finally:
        session.close()
    eventually(lambda: _alive(home) == ["one"], what="the worker's return")
    job = home.run("job", "submit", "--", "true").stdout.strip()
    assert home.run("job", "wait", job, timeout=3 * TIMEOUT_S).returncode == 0


def _alive(home: Home) -> list[str]:
    return [each["name"] for each in home.json("status")["nodes"] if each["state"] == "alive"]


@pytest.mark.parametrize(
    ("record", "error"),
    [
        (None, ValueError),
        ("{", exceptions.DamagedFileError),
        ({"cluster_id": "../../etc", "address": "h:1", "made_s": 1.0}, exceptions.DamagedFileError),
        ({"cluster_id": "a" * 32, "address": "h:1"}, exceptions.DamagedFileError),
    ],
    ids=range(4),
)
def test_what_is_no_backup_is_refused_and_nothing_is_made(
    home: Home, tmp_path: Path, record: object, error: type[Exception]
) -> None:
    source = tmp_path / "b"
    (source / "head").mkdir(parents=True)
    if record is not None:
        text = record if isinstance(record, str) else json.dumps(record)
        (source / _journal_backup.RECORD).write_text(text)
    with pytest.raises(error):
        _journal_backup.restore(source, replace=True)
    assert not homes.clusters()
