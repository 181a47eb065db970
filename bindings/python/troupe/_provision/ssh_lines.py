"""Command lines of the ssh client, and of `troupe start` on the far side. Pure."""

from __future__ import annotations

import shlex

from troupe._provision.hosts import Host, node_flags

CONNECT_TIMEOUT_S = 15
_OPTIONS = (
    "BatchMode=yes",  # a host that asks for a password fails, with ssh's own line
    "StrictHostKeyChecking=yes",  # the token goes to no host whose key is not known
    f"ConnectTimeout={CONNECT_TIMEOUT_S}",
    "ServerAliveInterval=15",  # a host that is silent for a minute is lost
    "ServerAliveCountMax=4",
    "ControlMaster=no",  # the connection is this node's alone: its end is the node's end
    "ControlPath=none",
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "RequestTTY=no",
    "RemoteCommand=none",
    "PermitLocalCommand=no",
)


def client_line(host: Host, address: str, *, ssh: str = "ssh") -> list[str]:
    """Return the command line of the ssh client that keeps a host's node.

    Args:
        host: where to.
        address: the head's as the host reaches it.
        ssh: the ssh client.
    """
    line = [ssh, "-T", *(part for option in _OPTIONS for part in ("-o", option))]
    if host.ssh_config:
        line += ["-F", host.ssh_config]
    if host.identity_file:
        line += ["-i", host.identity_file, "-o", "IdentitiesOnly=yes"]
    if host.port:
        line += ["-p", str(host.port)]
    if host.user:
        line += ["-l", host.user]
    return [*line, "--", host.host, far_line(host, address)]


def far_line(host: Host, address: str) -> str:
    """Return the line that the far side's shell runs: it reads the token from its stdin."""
    words = ["start", f"--address={address}", "--token-file=-", "--until-stdin-ends", "--json"]
    if host.name:
        words.append(f"--node-name={host.name}")
    if host.notice_command:
        words.append(f"--notice-command={host.notice_command}")
    if host.listen:
        words.append(f"--listen={host.listen}")
    return f"{host.command} {shlex.join([*words, *node_flags(host.options)])}"
