"""Permitted includes between folders (design: folders).

An include over an edge that is not listed is a finding, and so is a circle of units (a header with
its source) that include each other, but for those that CIRCLES lists.
"""

import pathlib
import re

import tree

# folder -> folders whose headers it may include, besides its own.
RUNTIME = [
    "runtime/base",
    "runtime/async",
    "runtime/wire",
    "runtime/net",
    "runtime/client",
    "runtime/store",
    "runtime/obs",
    "runtime/os",
]
HEAD_ROOMS = ["head/core/machine", "head/core/nodes", "head/core/placed", "head/core/launched"]
EDGES = {
    "runtime/base": [],
    "runtime/async": ["runtime/base"],
    "runtime/wire": ["runtime/base"],
    "runtime/os": ["runtime/base"],
    "runtime/net": ["runtime/base", "runtime/wire", "runtime/async"],
    "runtime/client": ["runtime/base", "runtime/wire", "runtime/async", "runtime/net"],
    "runtime/store": ["runtime/base", "runtime/os", "runtime/wire", "runtime/async", "runtime/net"],
    "runtime/obs": ["runtime/base"],
    "placement": ["runtime/base"],
    # head/core: four rooms, one above the other, and the step function above them.
    "head/core/machine": ["placement"] + RUNTIME,
    "head/core/nodes": HEAD_ROOMS[:1] + ["placement"] + RUNTIME,
    "head/core/placed": HEAD_ROOMS[:2] + ["placement"] + RUNTIME,
    "head/core/launched": HEAD_ROOMS[:3] + ["placement"] + RUNTIME,
    "head/core": HEAD_ROOMS + ["placement"] + RUNTIME,
    "head": ["head/core"] + HEAD_ROOMS + ["placement"] + RUNTIME,
    "worker": ["placement"] + RUNTIME,
    # actors: the floors, from below.
    "actors/core": RUNTIME,
    "actors/slots": ["actors/core"] + RUNTIME,
    "actors/net": ["actors/core"] + RUNTIME,
    "actors/objects": ["actors/core", "actors/slots", "actors/net"] + RUNTIME,
    "actors/bulk": ["actors/core", "actors/slots", "actors/net", "actors/objects"] + RUNTIME,
    "actors/caller": ["actors/core", "actors/slots", "actors/net", "actors/objects", "actors/bulk"]
    + RUNTIME,
    "actors/server": ["actors/core", "actors/slots", "actors/net", "actors/objects", "actors/bulk"]
    + RUNTIME,
    "actors/tasks": [
        "actors/core",
        "actors/slots",
        "actors/net",
        "actors/objects",
        "actors/bulk",
        "actors/caller",
    ]
    + RUNTIME,
    "actors/train": ["actors/core"] + RUNTIME,
    "actors/api": [
        "actors/core",
        "actors/slots",
        "actors/net",
        "actors/objects",
        "actors/bulk",
        "actors/caller",
        "actors/server",
        "actors/train",
    ]
    + RUNTIME,
}
ACTORS = [folder for folder in EDGES if folder.startswith("actors/")]
EDGES |= {
    "bindings/support": ACTORS + RUNTIME,
    "bindings/values": ["bindings/support"] + ACTORS + RUNTIME,
    "bindings/control": ["bindings/support", "bindings/values"] + ACTORS + RUNTIME,
    "bindings/caller": ["bindings/support", "bindings/values", "bindings/control"]
    + ACTORS
    + RUNTIME,
    "bindings/python": [],  # a header of plain C that the package carries
    "bindings/train": ["bindings/support", "bindings/control", "bindings/python"]
    + ACTORS
    + RUNTIME,
    "bindings/actor": ["bindings/support", "bindings/values", "bindings/control"]
    + ACTORS
    + RUNTIME,
}
EDGES["bindings"] = list(EDGES)  # registers all of them
# Folders in which units include each other in a circle -> the units of the largest one. The numbers
# shrink only; a folder that is not here has none, and no circle goes over folders.
CIRCLES = {
    "actors/caller": 5,
    "actors/net": 2,
    "actors/objects": 4,
    "actors/server": 3,
    "actors/train": 2,
    "bindings/actor": 2,
    "bindings/caller": 3,
    "bindings/values": 8,
    "runtime/base": 2,
    "runtime/net": 2,
    "runtime/store/core": 5,
    "tests/fakes/cuda": 2,
    "tests/fakes/nccl": 2,
    "tests/sim/objects": 2,
    "worker": 2,
}
# Pure code: decides, and touches no loop, wire format, clock or thread.
PURE = [
    "placement/",
    "head/core/",
    "worker/core/",
    "runtime/store/core/",
    "actors/core/",
    "actors/train/core/",
    "actors/api/core/",
]
IMPURE = re.compile(
    r"#include <(boost/|capnp/|kj/|thread|mutex|chrono_io|sys/|unistd|sqlite3|openssl/)"
    r"|steady_clock::now|system_clock|random_device|\bgetenv\(|sleep_for"
)
ASIO_ALLOWED = (
    "runtime/async/",
    "runtime/net/",
    "runtime/client/",
    "runtime/obs/",
    "head/",
    "worker/",
    "actors/",
    "bindings/",
    "tests/",
    "benchmarks/",
)


def folder_of(path: str) -> str | None:
    """The room of a file: the longest folder above it that EDGES lists."""
    parts = path.split("/")[:-1]
    return next(
        (key for end in range(len(parts), 0, -1) if (key := "/".join(parts[:end])) in EDGES), None
    )


def units_of(paths: list[pathlib.Path]) -> dict[str, set[str]]:
    """Each unit, and the units whose headers it includes."""
    units: dict[str, set[str]] = {tree.relative(path.with_suffix("")): set() for path in paths}
    for path in paths:
        unit = tree.relative(path.with_suffix(""))
        for target in re.findall(r'#include "([^"]+)\.h"', path.read_text()):
            if target in units and target != unit:
                units[unit].add(target)
    return units


def circles(units: dict[str, set[str]]) -> list[list[str]]:
    """Sets of units that all reach each other over includes (Tarjan's algorithm, without a stack of
    calls)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found = []
    for start in sorted(units):
        walk = [] if start in number else [(start, iter(sorted(units[start])))]
        while walk:
            unit, targets = walk[-1]
            if unit not in number:
                number[unit] = lowest[unit] = len(number)
                path.append(unit)
            for target in targets:
                if target not in number:
                    walk.append((target, iter(sorted(units[target]))))
                    break
                if target in path:
                    lowest[unit] = min(lowest[unit], number[target])
            else:
                walk.pop()
                if walk:
                    lowest[walk[-1][0]] = min(lowest[walk[-1][0]], lowest[unit])
                if lowest[unit] == number[unit]:
                    at = path.index(unit)
                    found.append(sorted(path[at:]))
                    del path[at:]
    return [circle for circle in found if len(circle) > 1]


def circle_findings(paths: list[pathlib.Path]) -> list[str]:
    """Circles that are not in CIRCLES, and what is in CIRCLES and shrank."""
    findings, largest = [], dict.fromkeys(CIRCLES, 0)
    for circle in circles(units_of(paths)):
        folders = {unit.rsplit("/", 1)[0] for unit in circle}
        folder = min(folders)
        if len(folders) > 1 or len(circle) > CIRCLES.get(folder, 0):
            findings.append(
                f"{', '.join(circle)} include each other in a circle: turn an include (hand down "
                "what the lower one needs, or move it there)"
            )
        else:
            largest[folder] = max(largest[folder], len(circle))
    for folder, size in largest.items():
        if size < CIRCLES[folder]:
            findings.append(f"{folder}: its largest circle has {size} units: write that in CIRCLES")
    return findings


def main() -> None:
    findings, looked_at = circle_findings(tree.files(".h", ".cc")), 0
    for path in tree.files(".h", ".cc"):
        name = tree.relative(path)
        text = path.read_text()
        if "<boost/asio.hpp>" in text:
            findings.append(f"{name}: include the part of asio you use, not <boost/asio.hpp>")
        if re.search(r"#include <(capnp|kj)/", text) and not name.startswith("runtime/wire/"):
            findings.append(
                f"{name}: Cap'n Proto headers belong to the codec sources of runtime/wire"
            )
        folder = folder_of(name)
        if folder is None:
            continue
        looked_at += 1
        for target in re.findall(r'#include "([^"]+)"', text):
            to = folder_of(target)
            if to is not None and to != folder and to not in EDGES[folder]:
                findings.append(f"{name}: {folder} may not include {to} ({target})")
        if any(name.startswith(p) for p in PURE):
            for match in IMPURE.finditer(text):
                findings.append(f"{name}: pure code must not use {match.group(0)!r}")
        if "boost/asio" in text and not name.startswith(ASIO_ALLOWED):
            findings.append(f"{name}: asio does not belong here")
    tree.finish(findings, looked_at)


if __name__ == "__main__":
    main()
