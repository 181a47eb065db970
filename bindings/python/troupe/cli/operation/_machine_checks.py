"""Findings about one machine, from its facts. Pure: no clock, no file, no network."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from troupe.cli.operation._machine_facts import HEAD_PORT, MachineFacts

PYTHONS = ((3, 11), (3, 13))
"""First and last version of CPython that Troupe runs on"""
# Descriptors of a worker: some 8 for each process, a few processes a CPU
FILES_BASE, FILES_PER_CPU = 256, 32
PROCESSES_BASE, PROCESSES_PER_CPU = 64, 16  # threads count
SHARED_LOW, SHARED_SMALL = 64 << 20, 512 << 20
HOME_FULL, HOME_SMALL = 100 << 20, 1 << 30
LOCKED_SMALL = 64 << 20


class Level(enum.StrEnum):
    """How bad a finding is."""

    ERROR = "error"  # something does not work, or will fail
    WARNING = "warning"  # something works worse than it need, or will fail under load


@dataclass(frozen=True)
class Finding:
    """A fault found, with its remedy."""

    check: str
    level: Level
    where: str
    what: str
    remedy: str


_Told = tuple[Level, str, str] | None
_Check = Callable[[MachineFacts], _Told]


def check_machine(facts: MachineFacts) -> list[Finding]:
    """Return what is wrong with a machine, errors first."""
    found = []
    for name, check in CHECKS.items():
        told = check(facts)
        if told:
            found.append(Finding(name, told[0], facts.host, told[1], told[2]))
    return sorted(found, key=lambda each: each.level is not Level.ERROR)


def amount(size: int) -> str:
    """Return a number of bytes for people: 512 MiB."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size} bytes"


def _python(facts: MachineFacts) -> _Told:
    first, last = PYTHONS
    if first <= facts.python <= last:
        return None
    text = ".".join(map(str, facts.python))
    return (
        Level.ERROR,
        f"Python {text} runs this command; Troupe is tested with {first[0]}.{first[1]} to "
        f"{last[0]}.{last[1]}",
        f"install Troupe for Python {last[0]}.{last[1]}",
    )


def _programs(facts: MachineFacts) -> _Told:
    if not facts.missing_programs:
        return None
    return (
        Level.ERROR,
        f"{' and '.join(facts.missing_programs)} cannot be found",
        "install the wheel again (pip install --force-reinstall troupe), or set TROUPE_BIN_DIR to "
        "the folder of the programs",
    )


def _open_files(facts: MachineFacts) -> _Told:
    needed = FILES_BASE + FILES_PER_CPU * facts.cpus
    if facts.open_files_max is None or facts.open_files_max >= needed:
        return None
    return (
        Level.WARNING,
        f"a process may have {facts.open_files_max} open files; a worker for {facts.cpus} CPUs may "
        f"need {needed}",
        "ulimit -n 65536 before `troupe start`, LimitNOFILE=65536 in its systemd unit, or nofile "
        "in /etc/security/limits.conf",
    )


def _user_processes(facts: MachineFacts) -> _Told:
    if facts.uid == 0 or facts.user_processes_max is None:  # root is not limited
        return None
    left = facts.user_processes_max - facts.user_processes
    return _processes(
        facts,
        left,
        f"this user may have {facts.user_processes_max} processes and threads, of which "
        f"{facts.user_processes} are there",
        "ulimit -u before `troupe start`, LimitNPROC= in its systemd unit, or nproc in "
        "/etc/security/limits.conf",
    )


def _group_processes(facts: MachineFacts) -> _Told:
    if facts.group_processes_max is None:
        return None
    return _processes(
        facts,
        facts.group_processes_max - facts.group_processes,
        f"the control group may have {facts.group_processes_max} processes and threads, of which "
        f"{facts.group_processes} are there",
        "docker run --pids-limit=-1, podPidsLimit of the kubelet, or TasksMax= of the systemd unit",
    )


def _processes(facts: MachineFacts, left: int, what: str, remedy: str) -> _Told:
    needed = PROCESSES_BASE + PROCESSES_PER_CPU * facts.cpus
    if left >= needed:
        return None
    text = f"{what}; ranks and actors on {facts.cpus} CPUs may need {needed} more"
    return (Level.ERROR if left < PROCESSES_BASE else Level.WARNING), text, remedy


def _shared_memory(facts: MachineFacts) -> _Told:
    remedy = "docker run --shm-size=8g (or --ipc=host), an emptyDir of medium Memory at /dev/shm "
    remedy += "in a pod, or: mount -o remount,size=8G /dev/shm"
    there = facts.shared_memory
    if there is None:
        return Level.ERROR, "there is no /dev/shm", "mount -t tmpfs -o size=8G tmpfs /dev/shm"
    text = f"/dev/shm has {amount(there.total)}, of which {amount(there.free)} are free"
    if there.free < SHARED_LOW:
        return Level.ERROR, f"{text}: objects and data loaders' batches do not fit", remedy
    if there.total < SHARED_SMALL:
        return Level.WARNING, f"{text}: large objects and batches will not fit", remedy
    return None


def _home(facts: MachineFacts) -> _Told:
    if facts.home_error:
        what, _, remedy = facts.home_error.partition("\n")
        return Level.ERROR, what, remedy.strip() or "set TROUPE_HOME to a folder of yours"
    space = facts.home_space
    if space is None or space.free >= HOME_SMALL:
        return None
    return (
        Level.ERROR if space.free < HOME_FULL else Level.WARNING,
        f"{facts.home}, where clusters keep their state and logs, has {amount(space.free)} left",
        "remove what is not needed there, or set TROUPE_HOME to a folder on another disk",
    )


def _clock(facts: MachineFacts) -> _Told:
    if facts.clock_synchronized is not False:
        return None
    return (
        Level.WARNING,
        "nothing keeps the clock right: certificates are refused where clocks are an hour apart",
        "start chrony or systemd-timesyncd (timedatectl set-ntp true), on the host for a container",
    )


def _port(facts: MachineFacts) -> _Told:
    if facts.head_port_taken:
        return (
            Level.WARNING,
            f"port {HEAD_PORT}, where a head listens, is another program's",
            f"see which: ss -ltnp 'sport = :{HEAD_PORT}'; or: troupe start --head --port 0",
        )
    low, high = facts.dynamic_ports or (0, 0)
    if low <= HEAD_PORT <= high:
        return (
            Level.WARNING,
            f"port {HEAD_PORT}, a head's own, is one of those ({low} to {high}) that the system "
            "gives to any connection",
            f"sysctl net.ipv4.ip_local_reserved_ports={HEAD_PORT}, or give the head another --port",
        )
    return None


def _gpus(facts: MachineFacts) -> _Told:
    if facts.gpu_driver and not facts.gpu_devices:
        return (
            Level.ERROR,
            f"NVIDIA's driver {facts.gpu_driver} is loaded, and there is no /dev/nvidia0",
            "docker run --gpus all (with nvidia-container-toolkit), or nvidia-modprobe on the host",
        )
    if facts.gpu_devices and not facts.driver_cuda:
        return (
            Level.ERROR,
            f"there are {facts.gpu_devices} GPUs, and libcuda.so.1 cannot be loaded",
            "install the user-space part of NVIDIA's driver in the version of the kernel's "
            f"({facts.gpu_driver or 'nvidia-smi'}); in a container: --gpus all",
        )
    return None


def _cuda(facts: MachineFacts) -> _Told:
    if not facts.gpu_devices or not facts.driver_cuda or "torch" not in facts.versions:
        return None
    torch = f"torch {facts.versions['torch']}"
    if not facts.torch_cuda:
        return (
            Level.WARNING,
            f"there are {facts.gpu_devices} GPUs, and {torch} is built without CUDA",
            "install torch from an index with CUDA (pytorch.org/get-started)",
        )
    runs = facts.driver_cuda // 1000
    if runs >= int(facts.torch_cuda.partition(".")[0]):
        return None
    return (
        Level.ERROR,
        f"{torch} is built for CUDA {facts.torch_cuda}, and driver {facts.gpu_driver} runs CUDA "
        f"{runs}.{facts.driver_cuda % 1000 // 10} at most",
        f"install a newer driver, or torch for CUDA {runs}",
    )


def _interface(facts: MachineFacts) -> _Told:
    for name in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
        value = facts.nccl_variables.get(name, "")
        if not value or value.startswith("^"):
            continue
        wanted = [each.lstrip("=") for each in value.split(",") if each.lstrip("=")]
        exact = value.startswith("=") or name.startswith("GLOO")
        if not any(
            here == each or (not exact and here.startswith(each))
            for here in facts.interfaces
            for each in wanted
        ):
            return (
                Level.ERROR,
                f"{name}={value} names no interface of this machine "
                f"({', '.join(facts.interfaces)})",
                f"unset {name}: ranks are told which interface reaches the others",
            )
    return None


def _rdma(facts: MachineFacts) -> _Told:
    if not facts.rdma_active:
        return None
    ports = ", ".join(facts.rdma_active[:4])
    if facts.nccl_variables.get("NCCL_IB_DISABLE", "0") not in ("", "0"):
        return (
            Level.WARNING,
            f"NCCL_IB_DISABLE is set, and there are active RDMA ports ({ports})",
            "unset NCCL_IB_DISABLE, unless RDMA is broken here",
        )
    if facts.locked_memory_max is not None and facts.locked_memory_max < LOCKED_SMALL:
        return (
            Level.ERROR,
            f"a process may lock {amount(facts.locked_memory_max)} of memory, too little for RDMA "
            f"({ports})",
            "ulimit -l unlimited, LimitMEMLOCK=infinity in the systemd unit, or docker run "
            "--ulimit memlock=-1",
        )
    return None


CHECKS: dict[str, _Check] = {
    "python": _python,
    "programs": _programs,
    "open_files": _open_files,
    "user_processes": _user_processes,
    "group_processes": _group_processes,
    "shared_memory": _shared_memory,
    "home": _home,
    "clock": _clock,
    "port": _port,
    "gpus": _gpus,
    "cuda": _cuda,
    "interface": _interface,
    "rdma": _rdma,
}
