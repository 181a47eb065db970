"""What there is to say where NCCL's or Gloo's processes could not connect: the hosts, the interfaces that were tried, and what to do.

A rank adds to its error what it knows of its own host (`noted`); whoever shows the launch's error adds the hosts and the remedy (`remedy`).
"""
from __future__ import annotations

import os
import re
import socket
import struct
from typing import Any

from troupe._cluster import variables
from troupe._tracebacks import words_of

_LIBRARIES = {
    "NCCL": re.compile(r"ncclInternalError|[Bb]ootstrap ?:|no socket interface found|socketStartConnect|socketPollConnect|ncclSocketConnect"
                       r"|NCCL[\s\S]*(?:Connect to \S+ failed|No route to host|Network is unreachable)"),
    "GLOO": re.compile(r"connectFullMesh failed|Unable to find (?:interface|address) for|gloo/[\s\S]*(?:No route to host|Network is unreachable)"),
}
_HOSTS_MAX = 8
_ADDRESS_OF_INTERFACE = 0x8915  # SIOCGIFADDR
_INTERFACES_MAX = 16


def library_of(text: str) -> str:
    """NCCL or GLOO where an error of theirs says that processes could not connect, or not tell by which interface; "" of any other error."""
    return next((name for name, words in _LIBRARIES.items() if words.search(text)), "")


def noted(error: BaseException, host: str) -> None:
    """Adds a note to such an error of this rank: which interface its library was told, by whom, and which there are. Never raises."""
    try:
        library = library_of(words_of(error))
        if library and not any("_SOCKET_IFNAME" in each for each in getattr(error, "__notes__", ())):
            error.add_note(note(library, host, os.environ.get(f"{library}_SOCKET_IFNAME", ""), interfaces()))
    except Exception:  # what the error says itself is told in any case
        return


def note(library: str, host: str, chosen: str, there: dict[str, str]) -> str:
    """`NCCL on node-a: NCCL_SOCKET_IFNAME=eth0 (troupe's choice ...); interfaces there: eth0 10.0.0.1, lo 127.0.0.1`."""
    name = f"{library}_SOCKET_IFNAME"
    tried = f"{name}={chosen} ({_whose(name, chosen)})" if chosen else f"{name} is not set, so that it chose by itself"
    return f"troupe: {library} on {host}: {tried}; interfaces there: {', '.join(f'{each} {address}'.strip() for each, address in there.items())}"


def _whose(name: str, value: str) -> str:
    began = variables.began_with or {}
    if began.get(name) != value:
        return "set by the program there"
    return "of the caller's environment" if name in variables.carried else "troupe's choice: by it the node reaches the others"


def interfaces() -> dict[str, str]:
    """This host's, by name, with their IPv4 addresses; "" of one that has none."""
    import fcntl

    found: dict[str, str] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asks:
        for _, name in socket.if_nameindex()[:_INTERFACES_MAX]:
            try:
                answer = fcntl.ioctl(asks.fileno(), _ADDRESS_OF_INTERFACE, struct.pack("256s", name.encode()[:15]))
                found[name] = socket.inet_ntoa(answer[20:24])
            except OSError:
                found[name] = ""
    return found


def remedy(info: dict[str, Any], failure: dict[str, Any]) -> str:
    """What to try, with the hosts of the launch, where the failure of a rank is of this kind; else ""."""
    library = library_of(failure["traceback"] or failure["cause"])
    if not library:
        return ""
    name = f"{library}_SOCKET_IFNAME"
    ranks: dict[tuple[str, str], list[str]] = {}
    for each in info["rank_infos"]:
        ranks.setdefault((each["node_name"], each["host"]), []).append(str(each["rank"]))
    hosts = [f"{node}{f' ({host})' if host and host != node else ''}: {'ranks' if len(of) > 1 else 'rank'} {_range(of)}" for (node, host), of in ranks.items()]
    more = f", and {len(hosts) - _HOSTS_MAX} more" if len(hosts) > _HOSTS_MAX else ""
    return (f"another interface, where {library} could not connect these hosts: {', '.join(hosts[:_HOSTS_MAX])}{more}\n"
            f"    os.environ[\"{name}\"] = \"NAME\" before the launch, which takes it along, of one that every host has and that leads to the others\n"
            f"    (the note above has the host's where it failed; `ip addr` there all of it), and a firewall that lets the hosts' ports through to each other"
            + ('\n    os.environ["NCCL_DEBUG"] = "INFO" makes NCCL write into the ranks\' output what it tries' if library == "NCCL" else ""))


def _range(numbers: list[str]) -> str:
    """`0-7` of many."""
    return ", ".join(numbers) if len(numbers) <= 2 else f"{numbers[0]}-{numbers[-1]}"
