"""`troupe up` and `troupe down` over OpenSSH: servers on loopback, each with a home of its own.

Method: each test has its own servers and cluster. What a node's processes are is read from /proc.
"""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sshd
from conftest import TIMEOUT_S, Home, eventually, running

from troupe._cluster import home as homes

pytestmark = pytest.mark.skipif(bool(sshd.why_not()), reason=sshd.why_not())


@pytest.fixture
def site(home: Home, tmp_path: Path) -> Iterator[sshd.Site]:
    """No host yet, and a head."""
    home.run("start", "--head", "--no-worker", "--port", "0")
    made = sshd.Site(tmp_path)
    try:
        yield made
        home.run("down", "--wait", str(TIMEOUT_S))
    finally:
        made.close()


@pytest.fixture
def file(site: sshd.Site, tmp_path: Path) -> Path:
    """A file of hosts, to be written."""
    return tmp_path / "hosts.yml"


def up(home: Home, file: Path, *args: str, code: int = 0) -> dict[str, dict]:
    """Run `troupe up`, check its exit code, and return the hosts' rows by place in the file."""
    done = home.run("up", str(file), *args, "--json", ok=False, timeout=2 * TIMEOUT_S)
    assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout)["hosts"]


def node_names(home: Home) -> list[str]:
    """Return the names of the nodes that are alive."""
    return sorted(each["name"] for each in home.json("list", "nodes") if each["state"] == "alive")


def clients(home: Home) -> dict[str, int]:
    """Return the pids of the ssh clients by the names of their nodes."""
    records = [json.loads(path.read_text()) for path in home.path.glob("clusters/*/ssh/*/*.json")]
    return {each["node"]: each["pid"] for each in records if homes.is_running(each["pid"], "ssh")}


def workers(home: Home) -> list[int]:
    """Return the pids of all workers."""
    return [pid for pid, line in home.processes().items() if "troupe-worker" in line.split()[0]]


def test_a_node_ends_with_its_client_and_comes_back(
    home: Home, site: sshd.Site, file: Path
) -> None:
    for name in "abc":
        site.add(name)
    file.write_text(site.yaml())
    assert [(each["node"], each["state"]) for each in up(home, file)] == [
        *(("a", "up"), ("b", "up"), ("c", "up"))
    ]
    assert node_names(home) == ["a", "b", "c"]
    for pid in (each for each in home.processes() if each != os.getpid()):
        assert b"rt1." not in Path(f"/proc/{pid}/cmdline").read_bytes()
    assert all(each["state"] != "good" for each in home.json("token", "list"))

    before = clients(home)
    os.kill(before["b"], signal.SIGKILL)
    eventually(lambda: node_names(home) == ["a", "c"], what="the end of node b")
    eventually(lambda: len(workers(home)) == 2, what="the end of b's worker")

    assert [each["state"] for each in up(home, file)] == ["was up", "up", "was up"]
    after = clients(home)
    assert {**before, "b": after["b"]} == after
    assert node_names(home) == ["a", "b", "c"]

    rows = json.loads(home.run("down", "b", "--json").stdout)["hosts"]
    assert [(each["node"], each["state"]) for each in rows] == [("b", "ended")]
    assert not running(after["b"]) and running(after["a"])
    told = home.run("down").stdout
    assert told.count("ended") == 2 and not workers(home) and not clients(home)
    assert home.run("down").stdout == "nothing that `troupe up` started is up\n"


def test_hosts_that_fail_are_told_with_their_own_lines(
    home: Home, site: sshd.Site, file: Path
) -> None:
    site.add("good")
    site.add("unknown", known=False)
    site.add("password", password_only=True)
    site.add("bare")
    site.add("older")
    site.add("refused").stop()
    site.add("broken")
    site.hosts["broken"].home.write_text("no folder")
    file.write_text(
        site.yaml(
            bare="/nowhere/troupe",
            older="echo Error: No such option: --until-stdin-ends. >&2; (exit 2); exit; ",
        )
    )
    rows = dict(zip(site.hosts, up(home, file, code=1), strict=True))
    assert {name: each["state"] for name, each in rows.items()} == {
        **dict.fromkeys(site.hosts, "failed"),
        "good": "up",
    }
    causes = {name: each["cause"] for name, each in rows.items()}
    assert "ssh failed (exit code 255)" in causes["unknown"]
    assert "Host key verification failed." in causes["unknown"]
    assert "Permission denied (password)." in causes["password"]
    assert "Connection refused" in causes["refused"]
    assert "not found there (exit code 127)" in causes["bare"] and "nowhere" in causes["bare"]
    assert "another version" in causes["older"] and "No such option" in causes["older"]
    assert "troupe start failed there: NotADirectoryError" in causes["broken"]
    assert list(clients(home)) == ["good"], "the clients of hosts that failed have ended"

    told = home.run("up", str(file), "--at-least", "1")
    assert "was up" in told.stdout and "1 of 7 hosts are up" in told.stdout
    assert "Permission denied (password)." in told.stderr
    assert home.run("up", str(file), "--at-least", "2", ok=False).returncode == 1
    assert home.run("up", str(file), "--at-least", "8", ok=False).returncode == 2


def test_nodes_outlive_the_terminal_and_down_ends_them(
    home: Home, site: sshd.Site, file: Path
) -> None:
    site.add("a")
    file.write_text(site.yaml())
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "troupe", "up", str(file)])
    shown = b""
    try:
        while part := os.read(terminal, 1 << 16):
            shown += part
    except OSError:  # the terminal's end, as Linux tells it
        pass
    assert os.waitpid(pid, 0)[1] == 0, shown
    os.close(terminal)
    assert b"1 of 1 hosts are up" in shown
    assert node_names(home) == ["a"]
    home.run("down")
    assert not workers(home)


def test_an_interrupt_ends_what_has_not_joined(home: Home, site: sshd.Site, file: Path) -> None:
    site.add("good")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent_port = silent.getsockname()[1]
        file.write_text(f"{site.yaml()}  - {{host: 127.0.0.1, port: {silent_port}, name: mute}}\n")
        process = subprocess.Popen(
            [sys.executable, "-m", "troupe", "up", str(file)], stdout=subprocess.PIPE, text=True
        )
        eventually(lambda: "good" in clients(home), what="the node of host good")
        silent.accept()  # the client of the other host is there, and gets no answer
        process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=TIMEOUT_S)[0]
        assert process.returncode == 130
        assert "1 of 2 hosts are up" in told
        assert list(clients(home)) == ["good"]

        row = up(home, file, "mute", "--wait", "0.5", code=1)[0]
        assert row["cause"].startswith("its node did not join within 0.5 s; ssh was ended")
        assert list(clients(home)) == ["good"]


def test_a_node_that_somebody_else_started_is_not_doubled(
    home: Home, site: sshd.Site, file: Path
) -> None:
    here = site.add("a").home
    address = homes.clusters(running_only=True)[0].address
    home.run(
        *("start", "--address", address, "--token-file", home.token(), "--node-name", "a"),
        env={"TROUPE_HOME": str(here), "TROUPE_FORCE_TCP": "1"},
    )
    file.write_text(site.yaml())
    row = up(home, file, code=1)[0]
    assert "JoinError: node a of cluster" in row["cause"] and "runs here already" in row["cause"]
    assert node_names(home) == ["a"] and len(workers(home)) == 1


def test_a_worker_that_dies_ends_its_client(home: Home, site: sshd.Site, file: Path) -> None:
    site.add("a")
    file.write_text(site.yaml())
    up(home, file)
    os.kill(workers(home)[0], signal.SIGKILL)
    eventually(lambda: not clients(home), what="the end of the ssh client")
    assert [each["state"] for each in up(home, file)] == ["up"]


def test_what_cannot_be_is_refused_before_anything_starts(
    home: Home, site: sshd.Site, file: Path
) -> None:
    file.write_text("hosts: [node-a]\n")
    done = home.run("up", str(file), ok=False)
    assert done.returncode == 2 and "does not reach it" in done.stderr
    assert "troupe start --head --listen" in done.stderr
    done = home.run("up", str(file), "node-b", ok=False)
    assert done.returncode == 2 and "has no host 'node-b'" in done.stderr
    file.write_text("")
    done = home.run("up", str(file), ok=False)
    assert done.returncode == 1 and "hosts.yml:1:1: the file is empty" in done.stderr
    assert home.run("up", str(file) + "x", ok=False).returncode == 1
    file.write_text("address: 10.0.0.1:6400\nhosts: [alice@node-a]\n")
    line = home.run("up", str(file), "--dry-run").stdout
    assert line.startswith("ssh -T ") and "-l alice -- node-a 'troupe start" in line
    assert not clients(home)
