"""The clusters that this user knows by name, and the rule that says which cluster is meant.

The names are in `~/.config/troupe/clusters.toml`, as `troupe cluster` writes it. The file holds no
secrets: an entry names the file of its token, and the token names the cluster's certificate
authority.
"""

from __future__ import annotations

import contextlib
import difflib
import enum
import fcntl
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from troupe import exceptions
from troupe._cluster import folders, home

ADDRESS, CLUSTER = "TROUPE_ADDRESS", "TROUPE_CLUSTER"
"""Variables that say which cluster is meant: by its address, by its name."""
NAME_CHARS_MAX = 64
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_KEYS = {"address": str, "token_file": str}
_BYTES_MAX = 1 << 20
_REMEDY = "set XDG_CONFIG_HOME to a folder that only you may write to"
_HEADER = "# Written by `troupe cluster`, which keeps no comments. Holds no secrets.\n"


@dataclass(frozen=True)
class Entry:
    """A known cluster: the address of its head, and the file that holds a token for it; "" where
    its head is this user's and runs on this host."""

    address: str
    token_file: str = ""


@dataclass(frozen=True)
class KnownClusters:
    """Content of clusters.toml."""

    entries: dict[str, Entry] = field(default_factory=dict)
    in_use: str = ""
    """Name of the cluster that is meant where nothing else says which; "": none is"""


class Source(enum.Enum):
    """The source of the choice of cluster, in the order in which `choose` looks."""

    GIVEN_ADDRESS = enum.auto()
    GIVEN_NAME = enum.auto()
    ADDRESS_VARIABLE = enum.auto()
    NAME_VARIABLE = enum.auto()
    OTHER_LAUNCHER = enum.auto()
    IN_USE = enum.auto()
    ONLY_ONE = enum.auto()  # nothing did: it is the only one that runs here


@dataclass(frozen=True)
class Choice:
    """The cluster that is meant."""

    address: str
    source: Source
    token_file: str | None = None
    name: str = ""

    @property
    def origin(self) -> str:
        """Return the line for an error that says where a name was looked up; "" for an address."""
        if not self.name:
            return ""
        said = {
            Source.NAME_VARIABLE: f", which {CLUSTER} names",
            Source.IN_USE: ", which is in use",
        }.get(self.source, "")
        return f"\n  the address is that of cluster {self.name!r}{said}; see: troupe cluster list"


def path() -> Path:
    """Return where clusters.toml is, or would be."""
    given = os.environ.get("XDG_CONFIG_HOME", "")
    root = Path(given) if os.path.isabs(given) else Path.home() / ".config"
    return root / "troupe" / "clusters.toml"


def choose(
    address: str | None = None,
    cluster: str | None = None,
    *,
    other_launcher: Callable[[], str] = str,
) -> Choice | None:
    """Return the cluster that is meant; None where nothing says which, so that it is the one that
    runs on this host, or one that is to be started.

    The first of these that says anything: `address`; `cluster`, a name of clusters.toml or the
    beginning of the id of a cluster that runs here; TROUPE_ADDRESS; TROUPE_CLUSTER; the address
    that `other_launcher` returns; the cluster that is in use (`troupe cluster use`).

    Raises:
        ConnectionError: no cluster has the name.
        DamagedFileError, PermissionError: clusters.toml cannot be believed.
        ValueError: both an address and a name are given.
    """
    if address and cluster:
        raise ValueError(
            f"the address {address!r} and the cluster {cluster!r} both say which cluster is meant: "
            "give one or the other"
        )
    if address:
        return Choice(address, Source.GIVEN_ADDRESS)
    if cluster:
        return _named(cluster, Source.GIVEN_NAME)
    if os.environ.get(ADDRESS):
        return Choice(os.environ[ADDRESS], Source.ADDRESS_VARIABLE)
    if os.environ.get(CLUSTER):
        return _named(os.environ[CLUSTER], Source.NAME_VARIABLE)
    other = other_launcher()
    if other:
        return Choice(other, Source.OTHER_LAUNCHER)
    known = read()
    return _named(known.in_use, Source.IN_USE, known) if known.in_use else None


def choose_for_init(
    address: Any, cluster: Any, address_of_launcher: Callable[[str | None], str]
) -> Choice:
    """Return the cluster that `init(address, cluster=)` means, as `choose` has it; the address is
    "local" or "auto" where nothing else says which.

    Raises TypeError for what is no text, and what `choose` does.
    """
    if address is not None and not isinstance(address, str):
        raise TypeError(
            f"init(address={address!r}): a string like '10.0.0.1:6400', 'auto', 'local' or None"
        )
    if cluster is not None and not isinstance(cluster, str):
        raise TypeError(f"init(cluster={cluster!r}): the name of a cluster, or None")
    if cluster == "":
        raise ValueError('init(cluster="") names no cluster; see: troupe cluster list')
    said = None if address == "auto" and not cluster else address
    return choose(said, cluster, other_launcher=lambda: address_of_launcher(address)) or Choice(
        address or "local", Source.ONLY_ONE
    )


def _named(name: str, source: Source, known: KnownClusters | None = None) -> Choice:
    entries = (known or read()).entries
    if name in entries:
        entry = entries[name]
        return Choice(entry.address, source, entry.token_file or None, name)
    running = home.clusters(running_only=True)
    found = [each for each in running if each.cluster_id.startswith(name.lower())]
    if len(found) == 1:
        return Choice(found[0].require_whole().address, source)
    said = f" ({CLUSTER})" if source is Source.NAME_VARIABLE else ""
    if found:
        raise exceptions.ConnectionError(
            f"several clusters that run here have an id that starts with {name!r}{said}: "
            + ", ".join(each.cluster_id[:16] for each in found)
        )
    raise exceptions.ConnectionError(
        f"no cluster is called {name!r}{said} in {path()}, and none that runs here has an id that "
        f"starts so{_nearest(name, entries)}\n"
        "  see: troupe cluster list; or add it: troupe cluster add NAME --address HOST:PORT"
    )


def _nearest(name: str, entries: Mapping[str, Entry]) -> str:
    near = difflib.get_close_matches(name, entries, 1)
    return f": do you mean {near[0]!r}?" if near else ""


def require(name: str, known: KnownClusters) -> Entry:
    """Return the entry of that name. Raises NotFoundError, with the nearest name."""
    if name not in known.entries:
        raise exceptions.NotFoundError(
            f"no cluster is called {name!r} in {path()}{_nearest(name, known.entries)}"
        )
    return known.entries[name]


def check_name(name: str) -> str:
    """Return a name for a cluster. Raises ValueError for one that cannot be."""
    if not _NAME.fullmatch(name) or len(name) > NAME_CHARS_MAX or name in ("auto", "local"):
        raise ValueError(
            f"{name[: NAME_CHARS_MAX + 1]!r} cannot be the name of a cluster: it begins with a "
            f"letter or digit, has letters, digits, '.', '_' and '-' ({NAME_CHARS_MAX} at most), "
            "and is neither 'auto' nor 'local'"
        )
    return name


# ---- the file ----


def read() -> KnownClusters:
    """Return what clusters.toml says; nothing where there is none.

    Raises:
        DamagedFileError: it is not what `troupe cluster` writes.
        PermissionError: others than this user may write to it.
        OSError: it cannot be read.
    """
    try:
        with open(path(), "rb") as file:
            info = os.fstat(file.fileno())
            if info.st_uid not in (os.geteuid(), 0) or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise PermissionError(
                    f"others may write to {path()}, so it is not believed\n  look at what is in "
                    f"it, then: chmod 600 {path()}"
                )
            data = file.read(_BYTES_MAX + 1)
    except (FileNotFoundError, NotADirectoryError):
        return KnownClusters()
    return parse(data)


def parse(data: bytes) -> KnownClusters:
    """Return what these bytes of a clusters.toml say. Pure. Raises DamagedFileError."""
    import tomllib

    if len(data) > _BYTES_MAX:
        raise _damaged(_BYTES_MAX, f"it is longer than {_BYTES_MAX} bytes")
    try:
        document = tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _damaged(error.start, "it is no UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise _damaged(getattr(error, "pos", 0), f"it is no TOML: {error}") from None
    in_use, tables = document.pop("use", ""), document.pop("clusters", {})
    if not isinstance(in_use, str) or not isinstance(tables, dict) or document:
        unknown = ", ".join(map(repr, document))
        raise _damaged(0, f"it has {unknown}" if unknown else "'use' is a text, 'clusters' a table")
    entries = {name: _entry(name, table) for name, table in tables.items()}
    if in_use and in_use not in entries:
        raise _damaged(0, f"it uses {in_use!r}, which it does not describe")
    return KnownClusters(entries, in_use)


def _entry(name: str, table: Any) -> Entry:
    try:
        check_name(name)
        if not isinstance(table, dict) or not all(
            isinstance(value, _KEYS.get(key, ())) for key, value in table.items()
        ):
            raise ValueError(f"cluster {name!r} has texts for {' and '.join(_KEYS)}, nothing else")
        home.host_and_port(table.get("address", ""))
    except ValueError as error:
        raise _damaged(0, str(error)) from None
    return Entry(table["address"], table.get("token_file", ""))


def _damaged(offset: int, why: str) -> exceptions.DamagedFileError:
    return exceptions.DamagedFileError(path(), offset, why, "mend it, or remove it and add anew")


@contextlib.contextmanager
def changed() -> Iterator[KnownClusters]:
    """Give what clusters.toml says, with entries that the block may change; the block ends with
    `write`. Other processes that change the file wait meanwhile."""
    folder = folders.private(path().parent, remedy=_REMEDY, keep_readable=True)
    lock = folder / ".clusters.lock"
    with open(lock, "w", encoding="utf-8", opener=folders.open_private) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield read()


def write(known: KnownClusters) -> None:
    """Write clusters.toml in one step, for this user alone. Only inside `changed`."""
    with folders.replacement(Path(os.path.realpath(path()))) as fresh:
        with open(fresh, "x", encoding="utf-8", opener=folders.open_private) as file:
            file.write(text_of(known))
            file.flush()
            os.fsync(file.fileno())


def text_of(known: KnownClusters) -> str:
    """Return the TOML of these clusters. Pure."""
    parts = [_HEADER, f"use = {_quoted(known.in_use)}\n" if known.in_use else ""]
    for name, entry in sorted(known.entries.items()):
        parts.append(f"\n[clusters.{_quoted(name)}]\naddress = {_quoted(entry.address)}\n")
        if entry.token_file:
            parts.append(f"token_file = {_quoted(entry.token_file)}\n")
    return "".join(parts)


def _quoted(text: str) -> str:
    """Return a basic string of TOML: JSON's escapes are TOML's, but JSON has DEL as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
