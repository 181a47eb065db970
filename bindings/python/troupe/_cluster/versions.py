"""Versions of Python and of the main libraries in this process, and nodes of a cluster where they
differ.

View: any process; nothing is imported for it. A worker is started with what its interpreter has, as
one label that no view of a node shows (`selectors.VERSIONS`); a caller compares the nodes of a
launch with itself.
"""

from __future__ import annotations

import functools
import os
import platform
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from troupe._cluster import selectors, workers
from troupe._typed.per_session import PerSession

LIBRARIES = ("torch", "numpy", "cloudpickle", "troupe")
CUDA = "CUDA of torch"
_CUDA_LINE = re.compile(r"^cuda\b[^=]*=\s*['\"]([\w.]+)['\"]", re.M)
_UNKNOWN = "none"


def here() -> dict[str, str]:
    """Return this interpreter's versions, by name; packages that are not installed are left out."""
    found = {
        "Python": platform.python_version(),
        "troupe": sys.modules["troupe"].__version__,
    }  # torch loads it, where both are installed
    for folder in dict.fromkeys(sys.path):
        try:
            entries = os.listdir(folder or ".")
        except OSError:
            continue
        for name in LIBRARIES:
            if name not in found:
                version = next(filter(None, (_version_in(entry, name) for entry in entries)), "")
                if version:
                    found[name] = version
                if version and name == "torch":
                    found[CUDA] = _cuda_of(Path(folder, "torch"))
    return found


@functools.cache
def mine() -> dict[str, str]:
    """Return the cached result of `here()`."""
    return here()


def _version_in(entry: str, name: str) -> str:
    """Return the version of an installed package, from the name of its metadata folder."""
    match = re.fullmatch(rf"{name}-([^-]+)(-py[\d.]+)?\.(dist|egg)-info", entry)
    return match[1] if match else ""


def _cuda_of(torch: Path) -> str:
    try:
        match = _CUDA_LINE.search((torch / "version.py").read_text(encoding="utf-8"))
    except OSError:
        return _UNKNOWN
    return match[1] if match else _UNKNOWN


def as_label(found: Mapping[str, str]) -> str:
    """As one label's value."""
    return ";".join(f"{name}:{re.sub('[,;=]', '_', version)}" for name, version in found.items())


def of_label(value: str) -> dict[str, str]:
    """Parse a label made by `as_label`."""
    pairs = (each.partition(":") for each in value.split(";"))
    return {name: version for name, colon, version in pairs if colon}


def with_label(args: list[str]) -> list[str]:
    """A worker's options, with the label of this interpreter's versions, unless they say them
    already."""
    at = next((number for number, each in enumerate(args) if each.startswith("--labels=")), None)
    if at is not None and f"{selectors.VERSIONS}=" in args[at]:
        return args
    label = f"{selectors.VERSIONS}={as_label(here())}"
    if at is None:
        return [*args, f"--labels={label}"]
    return [*args[:at], f"{args[at]},{label}", *args[at + 1 :]]


def differences(
    mine: Mapping[str, str],
    nodes: Mapping[str, Mapping[str, str]],
    without: frozenset[str] = frozenset(),
) -> list[str]:
    """A row for each thing whose version is another on some node, with the nodes' names.

    `without`: what the launch has installed itself. A node that says nothing differs in nothing.

        >>> nodes = {"a": {"torch": "2.5"}, "b": {"torch": "2.4"}, "c": {"torch": "2.4"}}
        >>> differences({"torch": "2.5"}, nodes)
        ['torch: 2.5 here, 2.4 on b, c']
    """
    rows = []
    said = {node: found for node, found in nodes.items() if found}
    for name in dict.fromkeys(["Python", *LIBRARIES[:1], CUDA, *LIBRARIES[1:]]):
        others: dict[str, list[str]] = {}
        for node, found in sorted(said.items()):
            if found.get(name, _UNKNOWN) != mine.get(name, _UNKNOWN):
                others.setdefault(found.get(name, _UNKNOWN), []).append(node)
        if others and name not in without:
            rows.append(
                f"{name}: {mine.get(name, _UNKNOWN)} here, "
                + ", ".join(f"{version} on {', '.join(names)}" for version, names in others.items())
            )
    return rows


_versions: PerSession[dict[str, dict[str, str]]] = PerSession("versions of nodes")


def of_nodes(session: Any, ids: set[str]) -> dict[str, dict[str, str]]:
    """Return the versions that these nodes reported when they started, by id; each node is asked
    for once per session."""
    known = _versions.of(session, dict)
    if ids - set(known):
        for info in workers.node_infos(session):
            label = next(
                (each["value"] for each in info["labels"] if each["key"] == selectors.VERSIONS), ""
            )
            known[info["node"]] = of_label(label)
    return {node: known.get(node, {}) for node in ids}
