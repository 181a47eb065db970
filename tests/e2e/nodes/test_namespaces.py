"""Head, workers and driver on hosts of their own: network namespaces joined by a bridge.

Method: nothing but the bridge connects them (the nodes share no Unix socket: --force-tcp), so
whatever binds to loopback, or takes the wrong interface, fails. Skipped, with the reason, where
namespaces cannot be made.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Home, eventually
from namespaces import Hosts, why_not

REASON = why_not()
pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON)
ROOT = Path(__file__).resolve().parents[3]
TROUPE = [sys.executable, "-m", "troupe"]


class Network:
    """A cluster over four hosts; `job` runs a program on the fourth, which has a client's token
    only."""

    def __init__(self, hosts: Hosts, home: Home) -> None:
        self.hosts = hosts
        listen = ["--listen", hosts["head"].address, "--port", "0"]
        head = hosts["head"].run([*TROUPE, "start", "--head", "--no-worker", *listen, "--json"])
        self.address = json.loads(head.stdout)["address"]
        self.pids: dict[str, int] = {}
        for name in ("a", "b"):
            self.join(name, home)
        self.token = home.token("--role", "client")

    def join(self, name: str, home: Home) -> None:
        """Starts the worker of a host."""
        options = ["--token-file", home.token(), "--node-name", name, "--num-cpus", "2"]
        started = self.hosts[name].run(
            [*TROUPE, "start", "--address", self.address, *options, "--force-tcp", "--json"]
        )
        self.pids[name] = json.loads(started.stdout)["pid"]

    def job(self, *args: str) -> str:
        """Runs a Python program as a driver; what it printed."""
        return (
            self.hosts["driver"]
            .run(
                [sys.executable, *args],
                timeout=180,
                env={"TROUPE_ADDRESS": self.address, "TROUPE_TOKEN_FILE": self.token},
            )
            .stdout
        )


@pytest.fixture(scope="module")
def network(shared_home: Home) -> Iterator[Network]:
    """A network for the module's tests."""
    with Hosts("head", "a", "b", "driver") as hosts:
        yield Network(hosts, shared_home)
        shared_home.run("stop", "--all")


def test_nodes_join_and_are_seen_by_their_own_addresses(network: Network) -> None:
    shown = network.job(
        "-c",
        """
import json, os, troupe
troupe.init(os.environ["TROUPE_ADDRESS"])
print(json.dumps({n["NodeName"]: n["NodeManagerAddress"] for n in troupe.nodes()}))
""",
    )
    assert json.loads(shown) == {name: network.hosts[name].address for name in ("a", "b")}


def test_c9_a_node_finds_its_own_interfaces(network: Network) -> None:
    """And no other of this machine; the speed is what the kernel says of such a cable."""
    shown = network.job(
        "-c",
        """
import json, os, troupe
troupe.init(os.environ["TROUPE_ADDRESS"])
print(json.dumps({n["name"]: n["network"]["interfaces"] for n in troupe.state.list_nodes()}))
""",
    )
    told = json.loads(shown)
    assert {
        name: [(each["name"], each["up"], each["addresses"]) for each in found]
        for name, found in told.items()
    } == {name: [("eth0", True, [f"{network.hosts[name].address}/24"])] for name in ("a", "b")}
    speed = network.hosts["a"].run(["cat", "/sys/class/net/eth0/speed"]).stdout.strip()
    assert told["a"][0]["mbit_s"] == max(int(speed), 0)


def test_ranks_take_the_interface_that_reaches_the_others(network: Network) -> None:
    pytest.importorskip("torch")
    shown = network.job(
        "-c",
        """
import json, os
from troupe.launch import distributed

@distributed(processes=4, remote=True, timeout=120)
def look():
    import torch
    import torch.distributed as dist
    dist.init_process_group()
    total = torch.ones(1000) * dist.get_rank()
    dist.all_reduce(total)
    names = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "MASTER_ADDR")
    return total[0].item(), [os.environ[name] for name in names]

print(json.dumps(look.distributed()))
""",
    ).splitlines()[-1]
    results = json.loads(shown)
    addresses = [network.hosts[name].address for name in ("a", "b")]
    assert [total for total, _ in results] == [6.0] * 4
    assert all(names[:2] == ["eth0", "=eth0"] and names[2] in addresses for _, names in results)


CONNECT = (
    "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), "
    "timeout=float(sys.argv[3]))"
)


def test_the_store_of_a_launch_takes_connections_from_its_nodes_alone(
    network: Network, tmp_path: Path
) -> None:
    """The other two hosts, whose packets reach its node, get no answer; the launch, whose ranks
    have met there, goes on."""
    pytest.importorskip("torch")
    job = subprocess.Popen(
        network.hosts["driver"].command(
            [
                sys.executable,
                "-c",
                """
import os, sys, threading
from pathlib import Path
from troupe.launch import distributed

@distributed(processes=4, remote=True, timeout=60)
def meet(folder):
    import torch.distributed as dist
    dist.init_process_group()
    dist.barrier()
    if dist.get_rank() == 0:
        print("at", os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"], flush=True)
        while not (folder / "tried").exists():
            threading.Event().wait(0.05)
    dist.barrier()
    dist.new_group()
    return dist.get_world_size()

print(meet.distributed(Path(sys.argv[1])))
""",
                str(tmp_path),
            ]
        ),
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TROUPE_ADDRESS": network.address, "TROUPE_TOKEN_FILE": network.token},
    )
    try:
        assert job.stdout is not None
        at = next(
            found
            for found in (re.search(r"at ([\d.]+) (\d+)$", line) for line in job.stdout)
            if found
        ).groups()
        answers = {
            name: subprocess.run(
                network.hosts[name].command(
                    [sys.executable, "-c", CONNECT, *at, "60" if name in "ab" else "3"]
                ),
                capture_output=True,
                text=True,
                timeout=100,
            ).stderr
            for name in network.hosts.names()
        }
        assert answers["a"] == answers["b"] == "", answers
        assert "TimeoutError" in answers["head"] and "TimeoutError" in answers["driver"]
    finally:
        (tmp_path / "tried").touch()
        said, _ = job.communicate(timeout=180)
    assert said.splitlines()[-1] == "[4, 4, 4, 4]"


REPLACED = """
import os, sys
from pathlib import Path
from troupe import train
from troupe.launch import distributed

@distributed(processes=2, cpus_per_rank=2, remote=True, timeout=170, on_rank_death="replace")
def meet(folder):
    import torch
    import torch.distributed as dist
    from troupe.launch import current
    for attempt in train.attempts("gloo"):
        with attempt:
            one = torch.ones(1)
            dist.all_reduce(one)
            Path(folder, f"{current().node_name}-{current().group_epoch}").touch()
            while current().group_epoch == 1:
                dist.all_reduce(torch.ones(1))
            result = int(one), current().node_name
    return result

print(sorted(meet.distributed(sys.argv[1])))
"""


def test_a_node_that_comes_to_a_launch_later_reaches_its_store(home: Home, tmp_path: Path) -> None:
    """The store's node is a; b is lost, and c, which nobody knew, takes its place. The driver's
    host, whose packets reach a, is of no node."""
    pytest.importorskip("torch")
    with Hosts("head", "a", "b", "c", "driver") as hosts:
        network = Network(hosts, home)
        job = subprocess.Popen(
            hosts["driver"].command([sys.executable, "-c", REPLACED, str(tmp_path)]),
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "TROUPE_ADDRESS": network.address,
                "TROUPE_TOKEN_FILE": network.token,
            },
        )
        try:
            both = [tmp_path / "a-1", tmp_path / "b-1"]
            eventually(lambda: all(each.exists() for each in both), what="the first group")
            network.join("c", home)
            os.kill(network.pids["b"], signal.SIGKILL)
            said, _ = job.communicate(timeout=180)
        finally:
            job.kill()
            job.wait()
        assert said.splitlines()[-1] == "[(2, 'a'), (2, 'c')]"
        home.run("stop", "--all")


def test_actors_on_both_hosts_call_each_other(network: Network) -> None:
    shown = network.job(
        "-c",
        """
import json, os, troupe
from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On
troupe.init(os.environ["TROUPE_ADDRESS"])

class Peer:
    def name(self):
        return troupe.get_runtime_context().get_node_name()
    def ask(self, other, size):
        return len(troupe.get(other.echo.remote(bytes(size)), timeout=60)), troupe.get(other.name.remote(), timeout=60)
    def echo(self, value):
        return value

a, b = [troupe.remote(Peer).options(scheduling_strategy=On(n["NodeID"], soft=False)).remote()
        for n in sorted(troupe.nodes(), key=lambda n: n["NodeName"])]
print(json.dumps([troupe.get(call(), timeout=120)
                  for call in (a.name.remote, lambda: a.ask.remote(b, 2_000_000), lambda: b.ask.remote(a, 10))]))
""",
    ).splitlines()[-1]
    assert json.loads(shown) == ["a", [2_000_000, "b"], [10, "a"]]


CUT_JOB = """
import os, sys, troupe
from troupe import exceptions
from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On
troupe.init(os.environ["TROUPE_ADDRESS"])

class Peer:
    def ask(self, other):
        try:
            return troupe.get(other.echo.remote("reached"), timeout=60)
        except exceptions.ActorUnavailableError as error:
            return type(error).__name__
    def echo(self, value):
        return value

a, b = [troupe.remote(Peer).options(scheduling_strategy=On(n["NodeID"], soft=False)).remote()
        for n in sorted(troupe.nodes(), key=lambda n: n["NodeName"])]
for line in sys.stdin:
    print(troupe.get(a.ask.remote(b), timeout=120), flush=True)
"""


class Asking:
    """CUT_JOB on the driver's host: each line begins a call from host a to host b."""

    def __init__(self, network: Network) -> None:
        self._job = subprocess.Popen(
            network.hosts["driver"].command([sys.executable, "-c", CUT_JOB]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "TROUPE_ADDRESS": network.address,
                "TROUPE_TOKEN_FILE": network.token,
            },
        )

    def begin(self) -> None:
        self._job.stdin.write("\n")
        self._job.stdin.flush()

    def end(self) -> str:
        return self._job.stdout.readline().strip()

    def __call__(self) -> str:
        self.begin()
        return self.end()

    def close(self) -> None:
        self._job.stdin.close()
        self._job.wait(60)
        self._job.stdout.close()


@pytest.fixture
def ask(network: Network) -> Iterator[Asking]:
    """Ended with the test, and every cut healed."""
    asking = Asking(network)
    yield asking
    network.hosts.heal()
    asking.close()


def test_a_call_over_a_cut_ends_by_name_and_one_after_it_gets_through(
    network: Network, ask: Asking
) -> None:
    """Both hosts stay with their head: only between them nothing passes, for as long as the call
    needs."""
    assert ask() == "reached"
    network.hosts.cut("a", "b")
    assert ask() == "MaybeExecutedError"  # silence after 5 s, not reached for 5 s more
    assert ask() == "NotSentError"  # the next dials anew, in vain
    network.hosts.heal()
    eventually(lambda: ask() == "reached", what="a call after the cut was healed")


def test_a_cut_that_ends_before_the_caller_gives_up_is_no_failure(
    network: Network, ask: Asking
) -> None:
    """Longer than the silence after which the connection counts as lost, shorter than that and the
    grace."""
    assert ask() == "reached"
    network.hosts.cut("a", "b")
    ask.begin()
    time.sleep(6.5)  # lint-ok: a cut that lasts this long
    network.hosts.heal()
    assert ask.end() == "reached"
    assert ask() == "reached"


REFS_JOB = """
import os, sys, threading, numpy as np, troupe
from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On
troupe.init(os.environ["TROUPE_ADDRESS"])

class Holder:
    def makes(self, size):
        return [troupe.put(np.full(size, 3, dtype=np.uint8)), troupe.put("small")]
    def keep(self, refs):
        self.refs = refs
    def total(self):
        return int(troupe.get(self.refs[0], timeout=60).sum(dtype=np.uint64)), troupe.get(self.refs[1], timeout=60)

a, b = [troupe.remote(Holder).options(scheduling_strategy=On(n["NodeID"], soft=False)).remote()
        for n in sorted(troupe.nodes(), key=lambda n: n["NodeName"])]
# b has its refs from the driver, which has them from a: the value goes from a to the driver, and on to b.
troupe.get(b.keep.remote(troupe.get(a.makes.remote(200_000_000), timeout=60)), timeout=60)
print("held", flush=True)
sys.stdin.readline()
asked = b.total.remote()
troupe.wait([asked], timeout=0.2)
print("asked", flush=True)
print(troupe.get(asked, timeout=120), flush=True)
"""


def test_refs_and_values_on_their_way_survive_a_cut(network: Network) -> None:
    """A real cut between the driver and the host its value comes from, longer than the silence
    after which a connection counts as lost: nothing is sent twice as a whole, and nobody is told
    that the object is lost."""
    job = subprocess.Popen(
        network.hosts["driver"].command([sys.executable, "-c", REFS_JOB]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TROUPE_ADDRESS": network.address, "TROUPE_TOKEN_FILE": network.token},
    )
    try:
        assert job.stdout.readline() == "held\n"
        job.stdin.write("\n")
        job.stdin.flush()
        assert job.stdout.readline() == "asked\n"
        network.hosts.cut("driver", "a")
        time.sleep(6.5)  # lint-ok: a cut that lasts this long
        network.hosts.heal()
        assert job.stdout.readline() == "(600000000, 'small')\n"
    finally:
        network.hosts.heal()
        job.stdin.close()
        job.stdout.close()
        assert job.wait(60) == 0


@pytest.mark.parametrize("example", ["digits_ddp.py", "driver_on_rank0.py"])
def test_the_quickstarts_jobs(network: Network, example: str) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    network.job(str(ROOT / "examples" / example))
