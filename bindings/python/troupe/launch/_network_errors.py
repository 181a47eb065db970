"""Errors of NCCL and Gloo: their cause, and what to try. Pure.

The words are those of the libraries' messages, as torch passes them on
(`ncclInternalError: ...\\nLast error:\\n...`) and as NCCL writes them into a rank's output
(`NCCL WARN ...`). The first kind whose words are found is meant: what is said at the root stands
before what follows from it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NCCL, GLOO = "NCCL", "GLOO"
_NCCL = re.compile(
    r"\bncclInternalError\b|\bncclSystemError\b|\bncclRemoteError\b|\bNCCL WARN\b|\bNCCL error\b"
    r"|[Bb]ootstrap ?: no socket|no socket interface found|socketStartConnect|socketPollConnect"
    r"|ncclSocketConnect"
    r"|NCCL[\s\S]*(?:Connect to \S+ failed|No route to host|Network is unreachable)"
)
_GLOO = re.compile(
    r"connectFullMesh failed|Unable to find (?:interface|address) for"
    r"|gloo/[\s\S]*(?:No route to host|Network is unreachable)"
)
# Errors of NCCL's that have nothing to do with what lies between the ranks.
_OF_THE_PROGRAM = re.compile(
    r"\bncclInvalidArgument\b|\bncclInvalidUsage\b|\bncclUnhandledCudaError\b"
    r"|Duplicate GPU detected|unhandled cuda error"
)
_DEBUG = (
    'os.environ["NCCL_DEBUG"] = "INFO" before the launch makes NCCL write into the ranks\' '
    "output what it tries"
)


@dataclass(frozen=True)
class Kind:
    """`words`: by which it is known; `headline`: what to try, with {library} and {hosts}; `more`:
    lines below, with {name} for the variable of the interface."""

    name: str
    words: re.Pattern[str]
    headline: str
    more: tuple[str, ...]


_ANOTHER_INTERFACE = "another interface, where {library} could not connect these hosts: {hosts}"
_WHICH_INTERFACE = (
    'os.environ["{name}"] = "NAME" before the launch, which takes it along, of one that every host '
    "has and that leads to the others",
    "(the note above has the host's where it failed; `ip addr` there all of it), and a firewall "
    "that lets the hosts' ports through to each other",
)
_KINDS = (
    Kind(
        "shared memory",
        re.compile(
            r"shared memory segment|/dev/shm/nccl|posix_fallocate|shm_open"
            r"|failed to extend /dev/shm"
        ),
        "more shared memory where {library} shares it between the ranks of a host, of {hosts}",
        (
            "`df -h /dev/shm` there; in a container `--shm-size=16g` or `--ipc=host`, of "
            "Kubernetes a volume `emptyDir: {{medium: Memory}}` at /dev/shm;",
            "files of runs that were killed: `ls /dev/shm/nccl-*`",
        ),
    ),
    Kind(
        "locked memory",
        re.compile(
            r"ibv_reg_mr\S*(?: call)? failed"
            r"|ibv_(?:create_cq|create_qp|reg_dmabuf_mr)\S* failed[^\n]*Cannot allocate memory"
            r"|[Uu]nable to register memory|ulimit -l|memlock"
        ),
        "a higher limit of locked memory for the workers of these hosts: {hosts}",
        (
            "`ulimit -l` in a rank says it; `unlimited` where `troupe start` is run "
            "(/etc/security/limits.conf, `LimitMEMLOCK=infinity` of a systemd unit,",
            "`--ulimit memlock=-1` of a container), and start the workers again: their ranks have "
            "their limits",
        ),
    ),
    Kind(
        "RDMA",
        re.compile(
            r"NET/IB|NET/OFI|\bibv_\w+|vendor err|ib_plugin|IBV_WC|Got (?:async|completion)"
            r"|transport retry counter exceeded"
        ),
        "RDMA between these hosts, which do not reach each other by it: {hosts}",
        (
            "`troupe list nodes --topology` has their ports; `ibstat` and `ib_write_bw` between "
            "two of them say whether the network carries it;",
            'os.environ["NCCL_IB_HCA"] = "=mlx5_0:1,..." before the launch names ports that do; '
            "RoCE often needs the NCCL_IB_GID_INDEX of `show_gids` (3 for version 2 over IPv4),",
            'rails that do not reach each other NCCL_CROSS_NIC = "0"; NCCL_IB_DISABLE = "1" goes '
            "by sockets, slower: where that works it is RDMA",
        ),
    ),
    Kind(
        "versions",
        re.compile(
            r"[Mm]ismatched NCCL version|NCCL version mismatch"
            r"|(?:receiving|received|Message truncated)[^\n]*\d+ bytes instead of \d+"
            r"|truncated : received"
        ),
        "one version of NCCL and equal NCCL_* variables on these hosts: {hosts}",
        (
            "the note of each rank that failed has its versions; `troupe submit --pip` or "
            'runtime_env={{"pip": [...]}} gives all ranks the same torch',
        ),
    ),
    Kind(
        "interface",
        re.compile(
            r"no socket interface found|neither AF_INET\(2\) nor AF_INET6\(10\)"
            r"|Unable to find (?:interface|address) for|[Bb]ootstrap ?:(?! Using)"
        ),
        _ANOTHER_INTERFACE,
        _WHICH_INTERFACE,
    ),
    Kind(
        "connection",
        re.compile(
            r"socketStartConnect|socketPollConnect|ncclSocketConnect|Connect to \S+ failed"
            r"|No route to host|Network is unreachable|Connection (?:refused|timed out)"
            r"|connectFullMesh failed"
        ),
        _ANOTHER_INTERFACE,
        _WHICH_INTERFACE,
    ),
    Kind(
        "remote end",
        re.compile(
            r"\bncclRemoteError\b|Connection (?:closed by|reset by) (?:remote )?peer|Broken pipe"
            r"|remote process exited|Socket recv failed"
        ),
        "the output of the other ranks, one of which may have ended first, of these hosts: {hosts}",
        (
            "`troupe logs LAUNCH` has it; where none has, a network that drops connections between "
            "the hosts: a firewall's idle timeout, a port that goes down",
        ),
    ),
)
_OTHER = Kind(
    "unknown", re.compile(""), "what {library} writes itself, of these hosts: {hosts}", ()
)


def library_of(text: str) -> str:
    """NCCL or GLOO where an error of theirs speaks of what lies between ranks: connections,
    interfaces, RDMA, shared memory; "" of any other error."""
    if _GLOO.search(text):
        return GLOO
    if not _NCCL.search(text):
        return ""
    return NCCL if kind_of(text) is not _OTHER or not _OF_THE_PROGRAM.search(text) else ""


def kind_of(text: str) -> Kind:
    """Return the kind of error, by the words of its text."""
    return next((kind for kind in _KINDS if kind.words.search(text)), _OTHER)


def remedy(text: str, library: str, hosts: str) -> str:
    """Return advice, as lines; `hosts` names the hosts with their ranks."""
    kind = kind_of(text)
    name = f"{library}_SOCKET_IFNAME"
    more = [*(each.format(name=name) for each in kind.more), *([_DEBUG] if library == NCCL else [])]
    return "\n    ".join([kind.headline.format(library=library, hosts=hosts), *more])
