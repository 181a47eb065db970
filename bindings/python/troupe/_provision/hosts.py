"""Hosts of a hosts file, and checks of their fields. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from troupe._cluster import node_start
from troupe._cluster.options import nodes
from troupe._code import field_checks

HOSTS_MAX = 4096
PORT_MAX = 65535
CONNECTION_FIELDS = ("user", "port", "identity_file", "ssh_config", "command", "notice_command")
"""Fields that say how a host is reached; also at the top of a file, for all its hosts."""
OWN_FIELDS = ("host", "name", "listen")
"""Fields that only a host can have."""
NODE_FIELDS = tuple(nodes.NODES)
"""Fields that are options of a node; also at the top of a file."""
HOST_FIELDS = (*OWN_FIELDS, *CONNECTION_FIELDS, *NODE_FIELDS)

_HOST = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9._:%-]{0,254}")
_USER = re.compile(r"[^\s\x00-\x1f\x7f-][^\s\x00-\x1f\x7f]{0,254}")
_FOLDER_CHARS_MAX = 40


@dataclass(frozen=True)
class Host:
    """A host to reach by ssh, and what its node offers.

    Attributes:
        host: name or address, as ssh takes it.
        user: user there; "": what ssh's own configuration says.
        port: sshd's port; 0: what ssh's own configuration says.
        identity_file: private key; "": ssh's own ones.
        ssh_config: ssh's configuration file; "": ssh's own ones.
        command: `troupe` there, as a shell reads it.
        notice_command: shell command there that exits with 0 once the host will be taken away.
        name: the node's name; "": the host's.
        listen: address to listen on; "": the one that reaches the head.
        options: options of the node by name, checked.
    """

    host: str
    user: str = ""
    port: int = 0
    identity_file: str = ""
    ssh_config: str = ""
    command: str = "troupe"
    notice_command: str = ""
    name: str = ""
    listen: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """Return `alice@node-a:2222`."""
        bare = f"[{self.host}]" if self.port and ":" in self.host else self.host
        return f"{self.user}@" * bool(self.user) + bare + f":{self.port}" * bool(self.port)

    @property
    def key(self) -> tuple[str, str, int, str]:
        """Return the facts that make two hosts the same one."""
        return self.host.lower(), self.user, self.port, self.name

    @property
    def folder_name(self) -> str:
        """Return the name of the folder of this host's record."""
        bare = re.sub("[^A-Za-z0-9-]", "_", self.host)[:_FOLDER_CHARS_MAX]
        digest = hashlib.sha256(json.dumps(self.key).encode()).hexdigest()
        return f"{bare}-{digest[:12]}"


def check_host(text: str) -> str:
    """Return a name or an address of a host.

    Raises ValueError for a text that ssh could take for an option, or that is no host.
    """
    if _HOST.fullmatch(text) is None:
        raise ValueError(f"{text!r} is no host; it looks like node-a, 10.0.0.2 or alice@node-a")
    return text


def split_user(text: str) -> tuple[str, str]:
    """Return (user, host) of `alice@node-a`; the user is "" where there is none."""
    user, at, host = text.rpartition("@")
    if at:
        check_field("user", user)
    return user, check_host(host)


def check_field(name: str, value: Any) -> Any:
    """Return the value of a field that is not `host`, as `Host` has it.

    Raises TypeError or ValueError; the message begins with the field's name.
    """
    if name == "port":
        if field_checks.count("port", value) > PORT_MAX:
            raise ValueError(f"port must be at most {PORT_MAX}, not {value}")
        return value
    if name in NODE_FIELDS:
        return _check_option(name, value)
    text = field_checks.text(name, value)
    if name == "user" and _USER.fullmatch(text) is None:
        raise ValueError(f"user: {text!r} is no name of a user")
    if name == "name":
        node_start.check_name(text)
    if "\n" in text or "\0" in text:
        raise ValueError(f"{name}: {text!r} has more than one line")
    return text


def _check_option(name: str, value: Any) -> Any:
    """Return an option of a node as it was given, once its own check passed."""
    if name in ("resources", "labels"):
        value = field_checks.mapping(name, value)
    elif name == "preimport":
        if not isinstance(value, list):
            raise TypeError(f"preimport must be a list of lists of modules, not {value!r}")
        value = [each if isinstance(each, list) else [each] for each in value]
    elif name == "object_spilling_directory":
        return field_checks.text(name, value)  # a folder of the far side
    nodes.NODES[name].check(name, value)
    return value


def node_flags(options: Mapping[str, Any]) -> list[str]:
    """Return the flags of `troupe start` for options of a node."""
    flags = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if name == "preimport":
            flags += [f"{flag}={','.join(modules)}" for modules in value]
        elif name == "labels":
            flags += [f"{flag}={key}={each}" for key, each in value.items()]
        elif name == "resources":
            flags.append(f"{flag}={json.dumps(value)}")
        else:
            flags.append(f"{flag}={value}")
    return flags
