"""Advice for failures of NCCL or Gloo between ranks: the hosts, the interfaces and ports that were
tried, the versions, and what to do.

A rank adds to its error what it knows of its own host (`noted`); whoever shows the launch's error
adds the hosts and the remedy (`remedy`).
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import Any

from troupe._base.tracebacks import words_of
from troupe._cluster import variables
from troupe.launch import _network_errors

_HOSTS_MAX = 8
_ADDRESS_OF_INTERFACE = 0x8915  # SIOCGIFADDR
_INTERFACES_MAX = 16
_PORTS_MAX = 32
_BY_ITSELF = (0, signal.SIGABRT)  # torch ends a process so whose collective has failed
_DRIVER = re.compile(r"(?:Kernel Module|Open Kernel Module for \S+)\s+(\d[\d.]+)")


def noted(error: BaseException, host: str) -> None:
    """Adds a note to such an error of this rank: which interface its library was told, by whom,
    which there are, and versions. Never raises."""
    try:
        library = _network_errors.library_of(words_of(error))
        if library and not any(
            "_SOCKET_IFNAME" in each for each in getattr(error, "__notes__", ())
        ):
            error.add_note(
                note(library, host, os.environ.get(f"{library}_SOCKET_IFNAME", ""), interfaces())
            )
            if library == _network_errors.NCCL:
                error.add_note(rdma_note(rdma_ports()))
            error.add_note(f"troupe: versions on {host}: {versions(library)}")
    except Exception:  # the error's own text is shown in any case
        return


def note(library: str, host: str, chosen: str, there: dict[str, str]) -> str:
    """`NCCL on node-a: NCCL_SOCKET_IFNAME=eth0 (troupe's choice ...); interfaces there: eth0
    10.0.0.1, lo 127.0.0.1`."""
    name = f"{library}_SOCKET_IFNAME"
    tried = (
        f"{name}={chosen} ({_whose(name, chosen)})"
        if chosen
        else f"{name} is not set, so that it chose by itself"
    )
    return (
        f"troupe: {library} on {host}: {tried}; interfaces there: "
        f"{', '.join(f'{each} {address}'.strip() for each, address in there.items())}"
    )


def _whose(name: str, value: str) -> str:
    began = variables.began_with or {}
    if began.get(name) != value:
        return "set by the program there"
    return (
        "of the caller's environment"
        if name in variables.carried
        else "troupe's choice: by it the node reaches the others"
    )


def interfaces() -> dict[str, str]:
    """This host's, by name, with their IPv4 addresses; "" of one that has none."""
    import fcntl

    found: dict[str, str] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asks:
        for _, name in socket.if_nameindex()[:_INTERFACES_MAX]:
            try:
                answer = fcntl.ioctl(
                    asks.fileno(), _ADDRESS_OF_INTERFACE, struct.pack("256s", name.encode()[:15])
                )
                found[name] = socket.inet_ntoa(answer[20:24])
            except OSError:
                found[name] = ""
    return found


def rdma_note(ports: list[str]) -> str:
    """`troupe: RDMA ports there: mlx5_0:1 ACTIVE; NCCL_IB_HCA==mlx5_0:1 (troupe's choice ...)`."""
    chosen = os.environ.get("NCCL_IB_HCA", "")
    told = (
        f"NCCL_IB_HCA={chosen} ({_whose('NCCL_IB_HCA', chosen)})"
        if chosen
        else "NCCL_IB_HCA is not set"
    )
    off = (
        "; NCCL_IB_DISABLE=1: they are not used" if os.environ.get("NCCL_IB_DISABLE") == "1" else ""
    )
    return (
        f"troupe: RDMA ports there: {', '.join(ports)}; {told}{off}"
        if ports
        else "troupe: RDMA ports there: none"
    )


def rdma_ports(root: str = "") -> list[str]:
    """`mlx5_0:1 ACTIVE`, of what the kernel has under `root`."""
    folder = Path(f"{root}/sys/class/infiniband")
    found = []
    for path in sorted(folder.glob("*/ports/*/state"))[:_PORTS_MAX]:
        with contextlib.suppress(OSError):
            found.append(
                f"{path.parts[-4]}:{path.parts[-2]} {path.read_text().strip().rpartition(': ')[2]}"
            )
    return found


def versions(library: str) -> str:
    """`NCCL 2.27.5, driver 570.86.15, CUDA 12.8, torch 2.8.0`, of what this process has loaded."""
    torch = sys.modules.get("torch")
    parts = []
    if library == _network_errors.NCCL:
        parts = [
            f"NCCL {_nccl_version(torch)}",
            f"driver {driver_version() or 'none'}",
            f"CUDA {getattr(getattr(torch, 'version', None), 'cuda', None) or 'none'} of torch",
        ]
    return ", ".join([*parts, f"torch {getattr(torch, '__version__', 'not loaded')}"])


def _nccl_version(torch: Any) -> str:
    """Return the version of torch's NCCL, without loading it or calling CUDA."""
    try:
        return ".".join(map(str, torch.cuda.nccl.version()))
    except Exception:  # a torch without it
        return "unknown"


def driver_version(root: str = "") -> str:
    """NVIDIA's, as the kernel tells it; "": there is none."""
    try:
        text = Path(f"{root}/proc/driver/nvidia/version").read_text()
    except OSError:
        return ""
    found = _DRIVER.search(text)
    return found[1] if found else ""


def remedy(info: dict[str, Any], failure: dict[str, Any]) -> str:
    """Return advice with the hosts of the launch if the rank's failure is of this kind; else ""."""
    own = failure["traceback"] or failure["cause"]
    if (
        not failure["traceback"] and failure["signal"] in _BY_ITSELF
    ):  # a program of its own, of which there are but its last lines
        own += failure["log_tail"]
    library = _network_errors.library_of(own)
    if not library:
        return ""
    ranks: dict[tuple[str, str], list[str]] = {}
    for each in info["rank_infos"]:
        ranks.setdefault((each["node_name"], each["host"]), []).append(str(each["rank"]))
    hosts = [
        f"{node}{f' ({host})' if host and host != node else ''}: "
        f"{'ranks' if len(of) > 1 else 'rank'} {_range(of)}"
        for (node, host), of in ranks.items()
    ]
    more = f", and {len(hosts) - _HOSTS_MAX} more" if len(hosts) > _HOSTS_MAX else ""
    return _network_errors.remedy(
        f"{own}\n{failure['log_tail']}", library, ", ".join(hosts[:_HOSTS_MAX]) + more
    )


def _range(numbers: list[str]) -> str:
    """`0-7` of many."""
    return ", ".join(numbers) if len(numbers) <= 2 else f"{numbers[0]}-{numbers[-1]}"
