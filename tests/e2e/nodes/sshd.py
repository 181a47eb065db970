"""Servers of ssh for tests: OpenSSH's sshd, each with keys, a port and a home of its own.

    site = Site(tmp_path)
    host = site.add("a")                    # an sshd on a free port of loopback
    (tmp_path / "hosts.yml").write_text(site.yaml())
    site.close()

All run as this user. What tells one host from another: TROUPE_HOME and HOME, which sshd sets.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PATH = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
SSHD = shutil.which("sshd", path=PATH)
_PASSED = ("PATH", "PYTHONPATH", "TROUPE_BIN_DIR", "TROUPE_TEST_ID", "TROUPE_TRACKING")
_LIMIT_S = 60.0

CONFIGURATION = """
Port {port}
ListenAddress {address}
HostKey {folder}/host_key
PidFile none
AuthorizedKeysFile {keys}
StrictModes no
UsePAM no
PubkeyAuthentication {pubkey}
PasswordAuthentication {password}
KbdInteractiveAuthentication no
PermitRootLogin yes
PrintMotd no
SetEnv {environment}
"""


def why_not() -> str:
    """Return why there can be no sshd here, or ""."""
    missing = [name for name in ("ssh", "ssh-keygen") if shutil.which(name) is None]
    if SSHD is None or missing:
        return "sshd or ssh is not installed (Debian: openssh-server openssh-client)"
    return ""


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


class Host:
    """An sshd with a home of its own."""

    def __init__(self, name: str, folder: Path, address: str, port: int) -> None:
        self.name = name
        self.folder = folder
        self.address = address
        self.port = port
        self.process: subprocess.Popen[str] | None = None

    @property
    def home(self) -> Path:
        """Return the TROUPE_HOME of what is started here."""
        return self.folder / "troupe"

    def start(self, keys: Path, *, prefix: Sequence[str] = (), password_only: bool = False) -> None:
        """Start sshd, and wait until it listens."""
        self.folder.mkdir(parents=True)
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / "host_key"],
            check=True,
        )
        # short: the paths of sockets are limited to 108 bytes
        sockets = Path(os.environ.get("XDG_RUNTIME_DIR") or self.folder) / self.name
        sockets.mkdir(mode=0o700)
        environment = {
            **{name: os.environ[name] for name in _PASSED if name in os.environ},
            "HOME": str(self.folder),
            "TROUPE_HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(sockets),
            "TROUPE_FORCE_TCP": "1",
        }
        configuration = self.folder / "sshd_config"
        configuration.write_text(
            CONFIGURATION.format(
                port=self.port,
                address=self.address,
                folder=self.folder,
                keys=keys,
                pubkey="no" if password_only else "yes",
                password="yes" if password_only else "no",
                environment=" ".join(f'"{key}={each}"' for key, each in environment.items()),
            )
        )
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        assert SSHD is not None
        self.process = subprocess.Popen(
            [*prefix, SSHD, "-D", "-e", "-f", str(configuration)],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        assert self.process.stderr is not None
        said = []
        for line in self.process.stderr:
            said.append(line)
            if line.startswith("Server listening"):
                return
        raise AssertionError(f"sshd of {self.name} does not start: {''.join(said)}")

    def public_key(self) -> str:
        """Return the line of a known_hosts file for this host."""
        kind, key = (self.folder / "host_key.pub").read_text().split()[:2]
        return f"[{self.address}]:{self.port} {kind} {key}\n"

    def stop(self) -> None:
        """End sshd; connections that it has go on."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(_LIMIT_S)
            assert self.process.stderr is not None
            self.process.stderr.close()


class Site:
    """Hosts, and the files by which a client reaches them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "ssh"
        self.folder.mkdir(parents=True)
        self.hosts: dict[str, Host] = {}
        key = self.folder / "id"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        self.known_hosts = self.folder / "known_hosts"
        self.known_hosts.touch()
        self.config = self.folder / "config"
        self.config.write_text(
            f"IdentityFile {key}\nIdentitiesOnly yes\nUserKnownHostsFile {self.known_hosts}\n"
            "GlobalKnownHostsFile none\n"
        )

    def add(
        self,
        name: str,
        *,
        address: str = "127.0.0.1",
        port: int = 0,
        prefix: Sequence[str] = (),
        known: bool = True,
        password_only: bool = False,
    ) -> Host:
        """Start a host.

        Args:
            name: name of its node.
            address: what it listens on.
            port: its port; 0: a free one.
            prefix: begins its command line, as `ip netns exec`.
            known: the client knows its key.
            password_only: it takes no key.
        """
        host = Host(name, self.folder / name, address, port or free_port())
        self.hosts[name] = host
        host.start(self.folder / "id.pub", prefix=prefix, password_only=password_only)
        if known:
            with open(self.known_hosts, "a") as file:
                file.write(host.public_key())
        return host

    def yaml(self, *, more: str = "", **commands: str) -> str:
        """Return a hosts file with all hosts.

        Args:
            more: lines at the top of the file.
            commands: `command` of hosts, by name.
        """
        python = f"{sys.executable} -m troupe"
        rows = [
            f"  - {{host: {each.address}, port: {each.port}, name: {each.name}"
            + (f", command: '{commands[name]}'" if name in commands else "")
            + "}\n"
            for name, each in self.hosts.items()
        ]
        return (
            f"ssh_config: {self.config}\ncommand: {python}\nnum_cpus: 1\n{more}hosts:\n"
            + "".join(rows)
        )

    def close(self) -> None:
        """End all servers."""
        for each in self.hosts.values():
            each.stop()
