"""Hosts made of network namespaces: each has its own interfaces and addresses, joined by one
bridge.

    with Hosts("head", "a", "b") as hosts:
        hosts["a"].run([...])                      # a command on that host
        hosts.cut("a", "b")                        # nothing passes between them, either way
        hosts.cut_one_way("a", "b")  # what a sends to b is lost; what b sends still arrives
        hosts.isolate("a")                         # its cable is pulled
        hosts.heal()

A cut drops packets silently, as a network does; nobody is told. The file system, users and
processes are shared with this machine: whoever wants nodes that share no Unix socket starts them
with --force-tcp. Needs root; `why_not()` says in a sentence what is missing. At the end the
namespaces are gone, and with them their interfaces and routes.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Sequence

_LIMIT_S = 30.0
# A cut is a wrong entry in the sender's neighbour table: its frames go to an address nobody has. (A
# blackhole route would tell the sender, at connect and send.)
_NOWHERE = "02:00:00:00:de:ad"


def ip(*args: str) -> None:
    """Runs the command `ip`; one at a time on this machine, for two that make the folder of
    namespaces at once fail."""
    with open(
        os.path.join(tempfile.gettempdir(), f"troupe-tests-ip-{os.geteuid()}.lock"), "w"
    ) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["ip", *args], check=True, capture_output=True, text=True, timeout=_LIMIT_S)


class Host:
    """A network namespace, with the interface eth0."""

    def __init__(self, name: str, namespace: str, address: str) -> None:
        self.name = name
        self.namespace = namespace
        self.address = address

    def command(self, args: Sequence[str]) -> list[str]:
        """The command line that runs `args` on this host."""
        return ["ip", "netns", "exec", self.namespace, *args]

    def run(
        self, args: Sequence[str], *, timeout: float = 60.0, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess:
        """Runs a command here to its end; AssertionError with its stderr when it fails."""
        done = subprocess.run(
            self.command(args),
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, **(env or {})},
        )
        assert done.returncode == 0, (
            f"on host {self.name}: {' '.join(args)} ended with {done.returncode}\n"
            f"{done.stdout}\n{done.stderr}"
        )
        return done


class Hosts:
    """A context manager of hosts by name, with the addresses 10.77.0.1, .2 and so on."""

    def __init__(self, *names: str) -> None:
        self._tag = uuid.uuid4().hex[:6]
        # the bridge has a namespace of its own: nothing of this machine is touched
        self._hub = f"tt-{self._tag}-hub"
        self._hosts = {
            name: Host(name, f"tt-{self._tag}-{name}", f"10.77.0.{number}")
            for number, name in enumerate(names, 1)
        }
        self._cuts: list[tuple[Host, str]] = []
        self._unplugged: list[Host] = []

    def __enter__(self) -> Hosts:
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make(self) -> None:
        ip("netns", "add", self._hub)
        ip("-n", self._hub, "link", "add", "bridge0", "type", "bridge")
        ip("-n", self._hub, "link", "set", "bridge0", "up")
        for host in self._hosts.values():
            ip("netns", "add", host.namespace)
            ip(
                "link",
                "add",
                "eth0",
                "netns",
                host.namespace,
                "type",
                "veth",
                "peer",
                "name",
                f"to-{host.name}",
                "netns",
                self._hub,
            )
            ip("-n", self._hub, "link", "set", f"to-{host.name}", "master", "bridge0", "up")
            ip("-n", host.namespace, "link", "set", "lo", "up")
            ip("-n", host.namespace, "addr", "add", f"{host.address}/24", "dev", "eth0")
            ip("-n", host.namespace, "link", "set", "eth0", "up")

    def __exit__(self, *_: object) -> None:
        for namespace in [host.namespace for host in self._hosts.values()] + [self._hub]:
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True, timeout=_LIMIT_S)

    def __getitem__(self, name: str) -> Host:
        return self._hosts[name]

    def names(self) -> list[str]:
        """Return the names of all hosts."""
        return list(self._hosts)

    def cut_one_way(self, sender: str, receiver: str) -> None:
        """Drop all packets from `sender` to `receiver` from now on."""
        host, to = self[sender], self[receiver].address
        ip(
            "-n",
            host.namespace,
            "neigh",
            "replace",
            to,
            "lladdr",
            _NOWHERE,
            "dev",
            "eth0",
            "nud",
            "permanent",
        )
        self._cuts.append((host, to))

    def cut(self, one: str, other: str) -> None:
        """Nothing passes between the two, either way."""
        self.cut_one_way(one, other)
        self.cut_one_way(other, one)

    def isolate(self, name: str) -> None:
        """Pulls the host's cable."""
        ip("-n", self._hub, "link", "set", f"to-{name}", "down")
        self._unplugged.append(self[name])

    def heal(self) -> None:
        """Undoes every cut."""
        while self._cuts:
            host, to = self._cuts.pop()
            ip("-n", host.namespace, "neigh", "del", to, "dev", "eth0")
        while self._unplugged:
            ip("-n", self._hub, "link", "set", f"to-{self._unplugged.pop().name}", "up")


def why_not() -> str:
    """Why there can be no such hosts here, or "": found out by making two."""
    if shutil.which("ip") is None:
        return "the command `ip` (iproute2) is not installed"
    if os.geteuid() != 0:
        return "making network namespaces needs root"
    try:
        with Hosts("one", "two") as hosts:
            hosts["one"].run(["true"])
            hosts.cut("one", "two")
            hosts.isolate("one")
            hosts.heal()
    except subprocess.CalledProcessError as error:
        return (
            "network namespaces, veth pairs or a bridge are not to be had here: "
            f"{error.stderr.strip()}"
        )
    except (AssertionError, subprocess.TimeoutExpired) as error:
        return f"network namespaces do not work here: {error}"
    return ""
