"""Method: limits and lifetimes so short that what a cluster does over days happens within the
test."""

from __future__ import annotations

import hashlib
import socket
import ssl
from pathlib import Path

from conftest import Home, eventually

SECOND = 1 / 86400  # in days
LOG_BYTES = 64 << 10

SAY = """
from troupe.launch import distributed
def say(text):
    print(text * 1000)
handle = distributed(processes=1, remote=True)(say).submit({text!r})
handle.result(60)
print(handle.id)
"""


def test_logs_of_what_has_ended_make_room_for_newer_ones(home: Home) -> None:
    head = home.json(
        "start", "--head", "--port", "0", "--num-cpus", "1", "--node-name", "n", "--log-gib", "1e-6"
    )
    folder = Path(head["state"], "nodes", "n", "logs")

    def launch(text: str) -> str:
        done = home.python(SAY.format(text=text), env={"TROUPE_ADDRESS": head["address"]})
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[-1]

    first = launch("one")
    assert "oneone" in home.run("logs", first, "--rank", "0").stdout, (
        "what ended last is kept, whatever its size"
    )
    second = launch("two")
    eventually(
        lambda: [path.name for path in folder.iterdir()] == [second],
        what="the removal of the older logs",
    )
    assert "twotwo" in home.run("logs", second, "--rank", "0").stdout
    refused = home.run("logs", first, "--rank", "0", ok=False)
    assert (
        refused.returncode == 1
        and "--log-gib" in refused.stderr
        and "Traceback" not in refused.stderr
    )
    home.run("stop")


def test_the_logs_of_head_worker_and_zygote_lose_their_older_half(home: Home) -> None:
    """The test itself fills the logs; the programs cut at their next line, the zygote's log at a
    tick."""
    head = home.json(
        "start",
        "--head",
        "--port",
        "0",
        "--num-cpus",
        "1",
        "--node-name",
        "n",
        "--log-file-mib",
        str(LOG_BYTES / 2**20),
    )
    node = Path(head["state"], "nodes", "n")
    logs = [Path(head["state"], "head.log"), node / "zygote.log", node / "worker.log"]
    for log in logs:
        with log.open("a") as file:
            file.write("old line\n" * (LOG_BYTES // 9) + "new line\n" * (LOG_BYTES // 18))
    host, port = head["address"].split(":")

    def all_cut() -> bool:
        with socket.create_connection((host, int(port)), timeout=30) as stranger:
            stranger.sendall(b"no TLS at all\n")
        return all(log.stat().st_size <= LOG_BYTES for log in logs)

    eventually(all_cut, what="the cut of " + ", ".join(log.name for log in logs))
    assert all("lost its older half" in log.read_text() for log in (logs[0], logs[2])), (
        "they say so"
    )
    home.run("stop")
    again = home.json("start", "--head", "--no-worker")
    assert again["resumed"] and "head ready" in logs[0].read_text().splitlines()[-1], (
        "a head goes on with its log"
    )
    home.run("stop")


def test_certificates_are_renewed_before_they_end(home: Home) -> None:
    """Certificates of node and head live 15 s; sessions, processes and names outlast them."""
    import troupe

    head = home.json(
        "start", "--head", "--no-worker", "--port", "0", "--certificate-days", repr(15 * SECOND)
    )
    token = home.token()
    client = home.token("--role", "client")
    home.run(
        "start",
        "--address",
        head["address"],
        "--token-file",
        token,
        "--num-cpus",
        "2",
        "--node-name",
        "n",
    )
    certificate = Path(head["state"], "nodes", "n", "node.crt")
    host, port = head["address"].split(":")

    def shown_by_head() -> str:
        text = ssl.get_server_certificate((host, int(port)), timeout=30)
        return hashlib.sha256(text.encode()).hexdigest()

    of_node, of_head = certificate.read_bytes(), shown_by_head()
    with troupe.init(head["address"], token_file=client):

        @troupe.remote
        class Counter:
            def __init__(self) -> None:
                self.n = 0

            def add(self) -> int:
                self.n += 1
                return self.n

        counter = Counter.options(name="counter").remote()
        assert troupe.get(counter.add.remote(), timeout=60) == 1
        eventually(lambda: certificate.read_bytes() != of_node, what="the node's new certificate")
        eventually(lambda: shown_by_head() != of_head, what="the head's new certificate")
        assert troupe.get(counter.add.remote(), timeout=60) == 2
    assert (certificate.parent / "node.key").stat().st_mode & 0o777 == 0o600
    log = (certificate.parent / "worker.log").read_text()
    assert "session with the head ended" not in log, "renewal has a session of its own"
    home.run("stop")
