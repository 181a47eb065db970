"""Reading a file of hosts: YAML with the keys of `Host`, or a hostfile.

Errors name file, line and column, all at once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from troupe._cluster import home
from troupe._code import field_checks, yaml_files
from troupe._provision import hostfile, hosts
from troupe._provision.hosts import Host
from troupe._run import place

_SUFFIXES = (".yml", ".yaml")
_TOP_FIELDS = ("hosts", "address", *hosts.CONNECTION_FIELDS, *hosts.NODE_FIELDS)
_EXAMPLE = "hosts: [node-a, node-b]"
_PATHS = ("identity_file", "ssh_config")


@dataclass(frozen=True)
class HostsFile:
    """Content of a file of hosts.

    `address`: the head's as the hosts reach it; "": the one that this process reaches it at.
    """

    hosts: tuple[Host, ...]
    address: str = ""


def read(path: str) -> HostsFile:
    """Return the hosts of a file: YAML where its name ends in .yml or .yaml, else a hostfile.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if anything in it is wrong.
        MissingPackageError: if it is YAML and PyYAML is not installed.
    """
    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no file {path}")
    if not path.endswith(_SUFFIXES):
        return HostsFile(hostfile.read(path))
    document = yaml_files.read_document(path)
    faults = yaml_files.Faults(document)
    top = document.value
    if top is None:
        faults.add(ValueError(f"the file is empty; it needs hosts, as {_EXAMPLE}"))
    elif not isinstance(top, Mapping):
        faults.add(TypeError(f"a file of hosts is a mapping, as {_EXAMPLE}, not {top!r:.80}"))
    faults.raise_any()
    shared = _fields(faults, (), "the file", top, _TOP_FIELDS)
    base = os.path.dirname(os.path.abspath(path))
    found = _hosts(faults, top, shared, base)
    faults.raise_any()
    return HostsFile(tuple(found), shared.get("address", ""))


def _fields(
    faults: yaml_files.Recorder,
    at: yaml_files.Place,
    what: str,
    given: Mapping[Any, Any],
    names: tuple[str, ...],
) -> dict[str, Any]:
    """Return the checked fields of a mapping, without `host` and `hosts`; record what is wrong."""
    found = {}
    for name, value in given.items():
        with faults.at(*at, name, key=True):
            if not isinstance(name, str):
                raise TypeError(f"{what}: a key must be a string, not {name!r}")
            field_checks.known(what, name, names)
        if name not in names or name in ("host", "hosts") or value is None:
            continue
        with faults.at(*at, name):
            if name == "address":
                home.host_and_port(field_checks.text(name, value))
                found[name] = value
            else:
                found[name] = hosts.check_field(name, value)
    return found


def _hosts(
    faults: yaml_files.Recorder, top: Mapping[str, Any], shared: dict[str, Any], base: str
) -> list[Host]:
    listed = top.get("hosts")
    if not isinstance(listed, list) or not listed:
        problem = (
            f"hosts must be a list, as {_EXAMPLE}, not {listed!r:.80}"
            if listed
            else f"the file has no hosts; it needs them, as {_EXAMPLE}"
        )
        faults.add(ValueError(problem), *(["hosts"] if "hosts" in top else []))
        return []
    found: list[Host] = []
    seen: dict[tuple[str, str, int, str], int] = {}
    for index, each in enumerate(listed):
        with faults.at("hosts", index):
            for host in _entry(faults, index, each, shared, base):
                if host.key in seen:
                    raise ValueError(
                        f"{host.shown} is there twice: as host {seen[host.key] + 1} and as host "
                        f"{index + 1}; two nodes on one host need a `name` each"
                    )
                seen[host.key] = index
                found.append(host)
                if len(found) > hosts.HOSTS_MAX:
                    raise ValueError(f"the file has more than {hosts.HOSTS_MAX} hosts")
    return found


def _entry(
    faults: yaml_files.Recorder, index: int, given: Any, shared: dict[str, Any], base: str
) -> list[Host]:
    """Return the hosts of an entry of `hosts`: several for `node-[01-16]`."""
    own: dict[str, Any] = {}
    text = given
    if isinstance(given, Mapping):
        count = len(faults)
        own = _fields(faults, ("hosts", index), "a host", given, hosts.HOST_FIELDS)
        if len(faults) > count:
            return []
        if given.get("host") is None:
            raise ValueError("a host needs `host`: its name or address")
        text = given["host"]
    if not isinstance(text, str):
        raise TypeError(f"a host is a name or a mapping with `host`, not {text!r:.80}")
    user, _, pattern = text.rpartition("@")
    names = place.expand(pattern)
    if not names:
        raise ValueError(f"{text!r} is no host")
    if len(names) > 1 and "name" in own:
        raise ValueError(f"name: {text!r} are {len(names)} hosts, which cannot have one name")
    merged = {**{name: value for name, value in shared.items() if name != "address"}, **own}
    for name in _PATHS:
        if name in merged:
            merged[name] = os.path.join(base, os.path.expanduser(merged[name]))
    fields = {name: each for name, each in merged.items() if name not in hosts.NODE_FIELDS}
    options = {name: each for name, each in merged.items() if name in hosts.NODE_FIELDS}
    if user:
        fields["user"] = hosts.check_field("user", user)
    return [Host(host=hosts.check_host(each), options=options, **fields) for each in names]
