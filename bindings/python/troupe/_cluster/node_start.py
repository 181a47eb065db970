"""Starting workers: what a node offers, where it keeps its files, how it reaches its head."""

from __future__ import annotations

import json
import os
import platform
import re
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from troupe import exceptions
from troupe._cluster import executables, folders, home, selectors
from troupe._cluster.options import nodes

if TYPE_CHECKING:
    from typing import Unpack

    from troupe._cluster.options.nodes import NodeOptions

TOKEN_BYTES_MAX = 4096
_NODE_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_JOINED = "joined.json"  # the address a node joined at, so that it can join again without a token


def offer(**given: Unpack[NodeOptions]) -> list[str]:
    """Return the command line of a worker for what its node has and keeps.

    Nothing given: what the machine has, and defaults. `preimport`: lists of modules, for each of
    which the node keeps a process that has imported them.
    """
    options: dict[str, Any] = {**given}
    labels = selectors.labels_of_types(options.get("resources"), options.get("labels"))
    empty = [name for name in ("resources", "preimport") if not options.get(name)]
    kept = {name: value for name, value in options.items() if name not in empty}
    return nodes.arguments(nodes.NODES, {**kept, "labels": labels or None})


def object_memory(memory: int | None, folder: str | None) -> dict[str, str]:
    """Return the variables that say how much memory the objects of a process take, and where they
    go beyond it, on a disk.

    ValueError where such a process could not use them.
    """
    given = {"object_store_memory": memory, "object_spilling_directory": folder}
    return {
        f"TROUPE_{name.upper()}": str(nodes.NODES[name].check(name, value))
        for name, value in given.items()
        if value is not None
    }


def log_file_option(mib: float | None) -> list[str]:
    """The option of head and worker for the size of a log file; none: their default."""
    return nodes.arguments(nodes.NODES, {"log_file_mib": mib})


def check_name(name: str) -> str:
    """A node's name, which is also its folder's: letters, digits, dots, dashes and underscores."""
    if _NODE_NAME.fullmatch(name) is None:
        raise ValueError(
            f"{name!r} is no name of a node: up to 63 letters, digits, '.', '-' and '_', a letter "
            "or digit first"
        )
    return name


def start(
    head: str,
    node_dir: Path,
    args: list[str],
    *,
    log: Path,
    token_file: str | None = None,
    lifeline: int | None = None,
    tell_versions: bool = True,
) -> executables.Started:
    """Starts troupe-worker and returns when it has joined; see `executables.start` for errors.

    `head`: host:port or unix:/path. A node that joined before keeps its certificate in `node_dir`
    and needs no token. `tell_versions`: callers with another interpreter are told where its
    versions differ from theirs.
    """
    if tell_versions:
        from troupe._cluster import versions

        args = versions.with_label(args)
    options = [f"--head={head}", f"--node_dir={node_dir}", f"--python={sys.executable}", *args]
    if token_file is not None:
        options.append(f"--token_file={os.path.abspath(token_file)}")
    started = executables.start("troupe-worker", options, log=log, lifeline=lifeline)
    with (
        folders.replacement(node_dir / _JOINED) as fresh,
        open(fresh, "w", encoding="utf-8", opener=folders.open_private) as file,
    ):
        file.write(json.dumps({"head": head}))
    return started


def node_dir(root: Path, cluster_id: str, name: str | None, *, once: bool = False) -> Path:
    """Return the folder of a node of this cluster: of that name, or name-2 and so on while those
    run.

    Raises JoinError, with `once`, if the node of that name runs.
    """
    nodes = root / "clusters" / cluster_id / "nodes"
    base = name or platform.node() or "node"
    number = 1
    while True:
        path = nodes / (base if number == 1 else f"{base}-{number}")
        record = home.node_of(path / "node.json")
        if record is None or not home.is_running(record["pid"], "troupe-worker"):
            return path
        if once:
            raise exceptions.JoinError(
                f"node {base} of cluster {cluster_id[:8]} runs here already (pid {record['pid']})\n"
                "  end it with: troupe stop --only worker; or let this node have another name"
            )
        number += 1


def cluster_of_token(token_file: str) -> str:
    """The id of the cluster a token is for.

    Raises JoinError for a file that is none or has none.
    """
    text = token_text(token_file)
    sound = cluster_of_sound_token(text)
    return sound if sound is not None else str(_token_facts(token_file, text)["cluster_id"])


def role_of_token(token_file: str) -> str:
    """Return the role that a token is for, a name of the wire's Role; raises what
    `cluster_of_token` does."""
    return str(_token_facts(token_file, token_text(token_file))["role"])


def token_text(token_file: str) -> str:
    """Return what a token's file has; raises JoinError where it cannot be read, or others than its
    owner can read it."""
    try:
        with open(token_file, encoding="ascii") as file:
            info = os.fstat(file.fileno())
            if stat.S_ISREG(info.st_mode) and info.st_mode & 0o077:
                raise exceptions.JoinError(
                    f"{token_file} holds a token, but others than its owner can read it\n"
                    f"  chmod 600 {token_file}"
                )
            return file.read(TOKEN_BYTES_MAX)
    except FileNotFoundError:
        raise exceptions.JoinError(f"the token file {token_file} does not exist") from None
    except OSError as error:
        raise exceptions.JoinError(
            f"the token file {token_file} cannot be read: {error.strerror}"
        ) from None
    except ValueError:
        raise exceptions.JoinError(f"{token_file} holds no token") from None


def _token_facts(token_file: str, text: str) -> dict[str, Any]:
    from troupe._base.bridge import native

    try:
        return dict(native.check_token(text))
    except ValueError as error:
        raise exceptions.JoinError(f"{token_file}: {error}") from None


_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"


def cluster_of_sound_token(text: str) -> str | None:
    """The cluster id in a token whose check sum is right; None for any other text.

    What is wrong with that one, the native module tells. Loading it takes longer than all else that
    a command does that starts a worker, and the worker looks at the token again.
    """
    parts = text.strip(" \t\r\n").split(".")
    if len(parts) != 5 or parts[0] != "rt1" or len(parts[2]) != 52 or set(parts[2]) - set(_BASE32):
        return None
    if parts[4] != f"{_crc32c('.'.join(parts[:4]).encode()):08x}":
        return None
    value = 0
    for character in parts[2]:
        value = value << 5 | _BASE32.index(character)
    return f"{value >> (260 - 128):032x}"


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def known_cluster(root: Path, address: str) -> str:
    """The cluster a node of this home joined at that address before, for joining again without a
    token."""
    found, damaged = set(), []
    for path in (root / "clusters").glob(f"*/nodes/*/{_JOINED}"):
        try:
            if (
                home.read_record(
                    path, "join with a token, which writes it anew: --token-file", head=str
                )
                or {}
            ).get("head") == address:
                found.add(path.parts[-4])
        except exceptions.DamagedFileError as error:
            damaged.append(error)
    if not found and damaged:
        raise damaged[0]
    if len(found) != 1:
        raise exceptions.JoinError(
            f"joining {address} needs a token: no node of {home.home()} has joined there before\n"
            "  on the head: troupe token create > token\n"
            f"  here: troupe start --address {address} --token-file token"
        )
    return found.pop()
