"""Facts of a machine that decide whether Troupe works well there: gathered, not judged.

Gathering raises nothing and starts nothing: a fact that cannot be read is None or empty. The same
code runs in `troupe doctor` and in an actor on each node.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import re
import resource
import shutil
import socket
import sys
from collections.abc import Iterable
from concurrent import futures
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from troupe import exceptions

HEAD_PORT = 6400  # port of `troupe start --head`, unless --port gives another
CONNECT_S = 5.0
_AT_ONCE = 16
_UNSYNCHRONIZED = 0x40  # STA_UNSYNC of adjtimex(2)
_STATUS_OFFSET, _TIMEX_BYTES = 40, 256  # struct timex of 64-bit Linux
_LIBRARIES = ("torch", "numpy", "cloudpickle")
_NCCL = re.compile(r"nvidia-nccl-cu\d+")


@dataclass(frozen=True)
class Space:
    """Sizes of a file system, in bytes."""

    total: int
    free: int


@dataclass(frozen=True)
class MachineFacts:
    """The facts about a machine, as one of its processes sees it. None and "": not known."""

    host: str
    uid: int = 0
    cpus: int = 1
    kernel: str = ""
    python: tuple[int, int] = (3, 11)
    versions: dict[str, str] = field(default_factory=dict)
    missing_programs: tuple[str, ...] = ()
    open_files_max: int | None = None
    user_processes_max: int | None = None
    user_processes: int = 0
    group_processes_max: int | None = None
    group_processes: int = 0
    locked_memory_max: int | None = None
    shared_memory: Space | None = None
    home: str = ""
    home_error: str = ""
    home_space: Space | None = None
    clock_synchronized: bool | None = None
    head_port_taken: bool = False
    """By another program than a head of this user"""
    dynamic_ports: tuple[int, int] | None = None
    gpu_devices: int = 0
    gpu_driver: str = ""
    driver_cuda: int = 0
    """Latest CUDA that the driver runs, as 12040 for 12.4; 0: libcuda cannot be loaded"""
    torch_cuda: str = ""
    interfaces: tuple[str, ...] = ()
    rdma_active: tuple[str, ...] = ()
    nccl_variables: dict[str, str] = field(default_factory=dict)


def gather(*, home: bool = True) -> MachineFacts:
    """Return the facts of this machine. `home`: look at TROUPE_HOME, too. Blocks for moments."""
    folder, error = _home() if home else ("", "")
    return MachineFacts(
        host=socket.gethostname(),
        uid=os.getuid(),
        cpus=len(os.sched_getaffinity(0)),
        kernel=platform.release(),
        python=sys.version_info[:2],
        versions=_versions(),
        missing_programs=_missing_programs() if home else (),
        open_files_max=_limit(resource.RLIMIT_NOFILE),
        user_processes_max=_limit(resource.RLIMIT_NPROC),
        user_processes=_processes_of(os.getuid()),
        **_group_processes(),
        locked_memory_max=_limit(resource.RLIMIT_MEMLOCK),
        shared_memory=_space("/dev/shm"),
        home=folder,
        home_error=error,
        home_space=_space(folder) if folder else None,
        clock_synchronized=_is_synchronized(),
        head_port_taken=home and not error and _is_taken(HEAD_PORT),
        dynamic_ports=_dynamic_ports(),
        gpu_devices=len(list(Path("/dev").glob("nvidia[0-9]*"))),
        gpu_driver=_gpu_driver(),
        driver_cuda=_driver_cuda(),
        torch_cuda=_torch_cuda(),
        interfaces=tuple(name for _, name in socket.if_nameindex()),
        rdma_active=tuple(_rdma_active(Path("/sys/class/infiniband"))),
        nccl_variables={k: v for k, v in os.environ.items() if k.startswith(("NCCL_", "GLOO_"))},
    )


def reach(targets: Iterable[tuple[str, str, int]]) -> dict[str, str]:
    """Return, by the name of each target (name, host, port), why no TCP connection to it can be
    made; "": it can. Blocks for CONNECT_S seconds at most for each _AT_ONCE targets."""
    wanted = list(targets)
    with futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        said = pool.map(lambda target: _connect_error(target[1], target[2]), wanted)
        return dict(zip((name for name, *_ in wanted), said, strict=True))


def _connect_error(host: str, port: int) -> str:
    try:
        socket.create_connection((host, port), CONNECT_S).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _limit(which: int) -> int | None:
    """Return a soft limit; None for none."""
    soft, _ = resource.getrlimit(which)
    return None if soft == resource.RLIM_INFINITY else soft


def _space(path: str) -> Space | None:
    try:
        usage = shutil.disk_usage(path)
    except OSError:
        return None
    return Space(usage.total, usage.free)


def _home() -> tuple[str, str]:
    """Return where this user's clusters keep their state, or why that is not possible."""
    from troupe._cluster import home

    try:
        root = home.state_root()
        home.require_writable(root)
    except OSError as error:
        return "", str(error)
    return str(root), ""


def _missing_programs() -> tuple[str, ...]:
    from troupe._cluster import executables

    missing = []
    for name in ("troupe-head", "troupe-worker"):
        try:
            executables.find(name)
        except (OSError, exceptions.TroupeError):
            missing.append(name)
    return tuple(missing)


def _versions() -> dict[str, str]:
    import troupe

    found = {"Python": platform.python_version(), "troupe": troupe.__version__}
    for name in _LIBRARIES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    for each in metadata.distributions():
        if _NCCL.fullmatch(each.metadata["Name"] or ""):
            found["NCCL"] = each.version
    return found


def _processes_of(uid: int) -> int:
    """Return how many threads this user has, which is what RLIMIT_NPROC counts."""
    count = 0
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            if path.stat().st_uid == uid:
                count += max(1, path.joinpath("task").stat().st_nlink - 2)
    return count


def _group_processes() -> dict[str, Any]:
    """Return the tightest pids.max over this process's control group and those above it."""
    line = next(
        (each for each in _text("/proc/self/cgroup").splitlines() if each.startswith("0::")), ""
    )
    found: dict[str, Any] = {}
    folder = Path("/sys/fs/cgroup") / line.partition("::")[2].strip().lstrip("/")
    for each in [folder, *folder.parents]:
        if not each.is_relative_to("/sys/fs/cgroup"):
            break
        limit, count = _text(each / "pids.max").strip(), _text(each / "pids.current").strip()
        if limit.isdigit() and count.isdigit():
            left = int(limit) - int(count)
            if not found or left < found["group_processes_max"] - found["group_processes"]:
                found = {"group_processes_max": int(limit), "group_processes": int(count)}
    return found


def _is_synchronized() -> bool | None:
    """Return whether something keeps the kernel's clock to that of others."""
    buffer = ctypes.create_string_buffer(_TIMEX_BYTES)
    try:
        if ctypes.CDLL(None).adjtimex(buffer) < 0:
            return None
    except (OSError, AttributeError):
        return None
    status = int.from_bytes(buffer.raw[_STATUS_OFFSET : _STATUS_OFFSET + 4], sys.byteorder)
    return not status & _UNSYNCHRONIZED


def _is_taken(port: int) -> bool:
    from troupe._cluster import home

    if any(each.address.endswith(f":{port}") for each in home.clusters(running_only=True)):
        return False
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def _dynamic_ports() -> tuple[int, int] | None:
    found = _text("/proc/sys/net/ipv4/ip_local_port_range").split()
    return (int(found[0]), int(found[1])) if len(found) == 2 else None


def _gpu_driver() -> str:
    match = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", _text("/proc/driver/nvidia/version"))
    return match[1] if match else ""


def _driver_cuda() -> int:
    version = ctypes.c_int()
    try:
        failed = ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return 0
    return 0 if failed else version.value


def _torch_cuda() -> str:
    from troupe._cluster import versions

    found = versions.here().get(versions.CUDA, "")
    return found if found[:1].isdigit() else ""


def _rdma_active(root: Path) -> list[str]:
    """Return the ports that are up, as NCCL names them."""
    return [
        f"{path.parents[2].name}:{path.parent.name}"
        for path in sorted(root.glob("*/ports/*/state"))
        if "ACTIVE" in _text(path)
    ]
