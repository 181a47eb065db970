"""Descriptors run out in a head, a worker and an actor: said once, no spinning, and all goes on
afterwards.

Method: the limit of a running process is set to what it has open (prlimit), connections are made to
it, and its log and the processor time it takes are looked at; then the limit is lifted.
"""

from __future__ import annotations

import os
import resource
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import cloudpickle
import pytest
from conftest import Home, eventually

import troupe
from troupe.launch import distributed

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # actors would not find this file

SAID = "out of file descriptors"
WAITS = "no descriptor is left"


@contextmanager
def no_descriptor_left(pid: int, spare: int = 0) -> Iterator[None]:
    """The process can open no more than `spare` descriptors: the system gives the lowest free
    number, and none from the limit on."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
    free = [number for number in range(len(used) + spare + 1) if number not in used]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (free[spare], before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def cpu_s(pid: int) -> float:
    """Processor time a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def busy_share(pid: int, seconds: float = 1.5) -> float:
    """The share of one processor that a process takes while nothing is asked of it."""
    began, used = time.monotonic(), cpu_s(pid)
    time.sleep(seconds)  # lint-ok: the time over which it is watched
    return (cpu_s(pid) - used) / (time.monotonic() - began)


def logs(home: Home, part: str) -> str:
    """All log files below the cluster directory whose path has `part`."""
    return "".join(
        path.read_text(errors="replace")
        for path in sorted(home.path.rglob("*"))
        if path.is_file() and part in str(path) and path.suffix in (".log", ".err", ".out")
    )


@pytest.fixture
def node(home: Home) -> Iterator[dict]:
    """A head, and a worker that is reached by TCP only; this process is connected as a driver."""
    head = home.json("start", "--head", "--no-worker", "--port", "0")
    home.run(
        "start",
        "--address",
        head["address"],
        "--token-file",
        home.token(),
        "--node-name",
        "one",
        "--num-cpus",
        "4",
        "--force-tcp",
    )
    troupe.init(head["address"])
    eventually(
        lambda: all(each["zygote_ready"] for each in troupe.state.list_nodes()), what="the zygote"
    )
    yield troupe.nodes()[0] | troupe.state.list_nodes()[0] | {"head": head}
    troupe.shutdown()


def knock(where: tuple[str, int], opened: ExitStack) -> None:
    """Twelve connections: each is taken with the last descriptor and closed, so that nobody is left
    waiting."""
    for _ in range(12):
        one = opened.enter_context(socket.create_connection(where, timeout=30))
        one.settimeout(30)
        try:
            assert one.recv(1) == b""
        except ConnectionResetError:
            pass


class Echo:
    def pid(self) -> int:
        return os.getpid()

    def echo(self, value: object) -> object:
        return value


def test_a_worker_out_of_descriptors_says_so_once_and_goes_on(home: Home, node: dict) -> None:
    actor = troupe.remote(Echo).remote()
    assert troupe.get(actor.echo.remote(1), timeout=60) == 1
    worker = node["pid"]
    where = (node["NodeManagerAddress"], int(node["NodeManagerPort"]))
    with no_descriptor_left(worker), ExitStack() as opened:
        knock(where, opened)
        assert busy_share(worker) < 0.25
        assert troupe.get(actor.echo.remote(2), timeout=30) == 2  # open connections stay
    assert logs(home, "worker").count(SAID) == 1
    later = troupe.remote(Echo).remote()
    assert troupe.get(later.echo.remote(3), timeout=60) == 3


def test_callers_wait_for_an_actor_without_descriptors(home: Home, node: dict) -> None:
    """An actor of this host is reached by its Unix socket (by another actor), one of another host
    by TLS (this driver acts as one)."""

    class Asker:
        def ask(self, other: object) -> object:
            return troupe.get(other.echo.remote("asked"), timeout=60)

    actor, asker = troupe.remote(Echo).remote(), troupe.remote(Asker).remote()
    pid = troupe.get(actor.pid.remote(), timeout=60)
    assert troupe.get(asker.ask.remote(troupe.remote(Echo).remote()), timeout=60) == "asked"
    with no_descriptor_left(pid):
        waiting = asker.ask.remote(actor)
        eventually(lambda: WAITS in logs(home, ""), what="a word on it")
        assert busy_share(pid) < 0.25
        assert troupe.get(actor.echo.remote(1), timeout=30) == 1
        assert troupe.wait([waiting], timeout=0)[0] == []
    assert troupe.get(waiting, timeout=60) == "asked"
    assert logs(home, "").count(WAITS) == 1


def test_a_head_out_of_descriptors_serves_who_is_connected_and_later_the_others(
    home: Home, node: dict
) -> None:
    """Journaled changes are still written; newcomers are refused at once, and told by their own
    command."""

    @distributed(processes=2, remote=True)
    def gang() -> int:
        return 7

    actor = troupe.remote(Echo).remote()
    assert troupe.get(actor.echo.remote(1), timeout=60) == 1
    head, (host, port) = node["head"]["pid"], node["head"]["address"].rsplit(":", 1)
    with no_descriptor_left(head), ExitStack() as opened:
        knock((host, int(port)), opened)
        assert busy_share(head) < 0.25
        named = troupe.remote(Echo).options(name="made meanwhile").remote()
        assert troupe.get(named.echo.remote(2), timeout=60) == 2
        assert gang.distributed() == [7, 7]
        refused = home.run("status", ok=False)
        assert refused.returncode != 0 and refused.stderr.strip(), "who comes is not left waiting"
    assert [each["alive"] for each in home.json("status")["nodes"]] == [True]
    assert troupe.get(troupe.get_actor("made meanwhile").echo.remote(3), timeout=60) == 3
    home.run(
        "start",
        "--address",
        f"{host}:{port}",
        "--token-file",
        home.token(),
        "--node-name",
        "two",
        "--num-cpus",
        "1",
    )
    assert logs(home, "head").count(SAID) == 2, "once by each of its listeners"
