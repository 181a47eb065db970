"""The head's journal as an operator meets it: check, damage, refusal, repair; a full disk;
snapshots."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from conftest import Home, eventually, running


def killed(home: Home, head: dict) -> Path:
    """Kills the head; the folder of its journal, its log not folded in."""
    os.kill(head["pid"], signal.SIGKILL)
    eventually(lambda: not running(head["pid"]), what="the head's end")
    return Path(head["state"]) / "head"


def test_a_damaged_journal_is_refused_checked_and_repaired(home: Home) -> None:
    head = home.json("start", "--head", "--no-worker", "--port", "0")
    for _ in range(8):
        home.run("token", "create")
    folder = killed(home, head)
    assert "is sound" in home.run("journal", "check").stdout
    # Checking has folded the log into the database: eight more events make another one.
    head = home.json("start", "--head", "--no-worker")
    for _ in range(8):
        home.run("token", "create")
    folder = killed(home, head)
    log = folder / "journal.db-wal"
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 4
    log.write_bytes(data)
    refused = home.run("start", "--head", "--no-worker", ok=False)
    assert (
        refused.returncode == 1
        and "is damaged" in refused.stderr
        and "troupe journal repair" in refused.stderr
    )
    checked = home.run("journal", "check", str(folder), ok=False)
    assert checked.returncode == 1 and "is damaged" in checked.stderr
    assert "are given up" in home.run("journal", "repair").stdout
    assert (folder / "journal.db-wal.damaged").exists()
    assert home.json("start", "--head", "--no-worker")["resumed"]
    assert len(home.json("token", "list")) >= 8


def test_the_journal_of_a_running_head_is_left_alone(home: Home) -> None:
    head = home.json("start", "--head", "--no-worker", "--port", "0")
    for command in ("check", "repair"):
        done = home.run("journal", command, ok=False)
        assert done.returncode == 1 and f"another head (pid {head['pid']}) runs on" in done.stderr
    assert home.json("status")["pid"] == head["pid"]


def test_snapshots_bound_the_journal(home: Home) -> None:
    from troupe._base.bridge import native
    from troupe._cluster import executables

    args = [f"--state-dir={home.path / 'cluster'}", "--snapshot-every=200"]
    log = home.path / "head.log"

    def boot() -> tuple[executables.Started, object]:
        started = executables.start("troupe-head", args, log=log)
        return started, native.ControlClient.connect_unix(str(started.ready["socket"]))

    head, client = boot()
    try:
        for i in range(1000):
            client.request("KvPut", {"scope": "s", "key": f"k{i % 10}"}, b"value %d" % i)
        client.close()
        head.process.kill()
        head.process.wait()
        assert log.read_text().count("snapshot") >= 4
        head, client = boot()
        for i in range(10):
            _, answer, data = client.request("KvGet", {"scope": "s", "key": f"k{i}"})
            assert data == b"value %d" % (990 + i) and answer["version"] == 100
        client.close()
    finally:
        executables.end([head.process])
    checked = home.run("journal", "check", str(home.path / "cluster")).stdout
    assert int(checked.split(" events")[0].rsplit(" ", 1)[1]) < 600, (
        checked
    )  # out of more than a thousand


def test_launches_that_are_over_leave_the_heads_memory_and_are_read_from_its_archive(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Launches wait for nodes that never come, and are cancelled: 120 of them, at a head that keeps
    5 in memory."""
    from troupe._base.bridge import native
    from troupe._base.identity import new_id
    from troupe._cluster import executables, view
    from troupe._cluster.session import Session

    in_memory, launches = 5, 120
    args = [f"--state-dir={home.path / 'cluster'}", f"--ended-max={in_memory}"]

    def boot() -> tuple[executables.Started, Session]:
        started = executables.start("troupe-head", args, log=home.path / "head.log")
        client = native.ControlClient.connect_unix(str(started.ready["socket"]))
        return started, Session.over_client(client, namespace="")

    def end_one(number: int) -> str:
        spec = {"mode": "command", "ranks": 1, "attempts_max": 1, "name": f"run-{number}"}
        accepted = session.request("SubmitLaunch", {"spec": spec, "request": new_id()})[1]
        stop = {"launch": accepted["launch"], "hard": True, "reason": f"reason {number}"}
        session.request("CancelLaunch", stop)
        return str(accepted["launch"])

    def whole(launch: str) -> tuple[str, str, str]:
        info = session.request("GetLaunch", {"launch": launch})[1]["info"]
        marker = session.request("WaitMarker", {"launch": launch})[1]["marker"]
        assert (info["outcome"], info["cause"]) == (marker["outcome"], marker["cause"])
        return info["name"], info["outcome"], info["cause"]

    head, session = boot()
    try:
        ids = [end_one(number) for number in range(launches)]
        eventually(
            lambda: len(session.request("ListLaunches", {})[1]["launches"]) <= in_memory,
            what="the move of all others to the archive",
        )
        for _ in range(2):
            for number in (0, launches // 2, launches - 1):
                expected = (f"run-{number}", "cancelled", f"reason {number}")
                assert whole(ids[number]) == expected
            listed = [each["launch"] for each in view.iter_launches(session, page=7)]
            assert listed == ids[::-1], "page after page, the latest first"
            session.close()
            head.process.kill()
            head.process.wait()
            head, session = boot()
        session.close()
        assert (home.path / "cluster" / "head" / "archive.db").stat().st_mode & 0o077 == 0
    finally:
        executables.end([head.process])


FAULTS = pytest.mark.skipif(
    b"TROUPE_FAULTS"
    not in Path(os.environ.get("TROUPE_BIN_DIR", "/nonexistent"), "troupe-head").read_bytes()
    if Path(os.environ.get("TROUPE_BIN_DIR", "/nonexistent"), "troupe-head").exists()
    else True,
    reason="needs a build with faults",
)


@FAULTS
def test_a_full_disk_stops_nothing_that_was_promised(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writes find no room for a while: what was asked waits or is refused by name, and goes on
    afterwards."""
    from troupe import exceptions
    from troupe._base.bridge import native
    from troupe._cluster import executables

    monkeypatch.setenv("TROUPE_FAULTS", "journal.write=full@200-212")
    head = executables.start(
        "troupe-head", [f"--state-dir={home.path / 'cluster'}"], log=home.path / "head.log"
    )
    client = native.ControlClient.connect_unix(str(head.ready["socket"]))
    try:
        written, refused = 0, []
        for i in range(300):
            try:
                client.request("KvPut", {"scope": "s", "key": f"k{i}"}, b"v")
                written += 1
            except exceptions.TooLargeError as error:
                refused.append(str(error))
        assert refused and all("disk is full" in each for each in refused)
        _, keys, _ = client.request("KvList", {"scope": "s"})
        assert len(keys["keys"]) == written, "what was acknowledged is there"

        def takes_writes() -> bool:
            try:
                client.request("KvPut", {"scope": "s", "key": "after"}, b"v")
            except exceptions.TooLargeError:
                return False
            return True

        eventually(takes_writes, what="room on the disk to be seen")
        client.close()
    finally:
        executables.end([head.process])
    shutil.rmtree(home.path / "cluster")


@FAULTS
def test_an_error_of_the_disk_ends_the_head_by_name(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    from troupe import exceptions
    from troupe._base.bridge import native
    from troupe._cluster import executables

    monkeypatch.setenv("TROUPE_FAULTS", "journal.sync.after=fail@20-")
    log = home.path / "head.log"
    head = executables.start("troupe-head", [f"--state-dir={home.path / 'cluster'}"], log=log)
    client = native.ControlClient.connect_unix(str(head.ready["socket"]))
    with pytest.raises(exceptions.ConnectionError):
        for i in range(100):
            client.request("KvPut", {"scope": "s", "key": f"k{i}"}, b"v", 30)
    assert head.process.wait(30) == 1
    assert "journal.db" in log.read_text().splitlines()[-1]
    client.close()
    monkeypatch.delenv("TROUPE_FAULTS")
    again = executables.start("troupe-head", [f"--state-dir={home.path / 'cluster'}"], log=log)
    executables.end([again.process])
