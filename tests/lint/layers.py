"""Permitted includes between folders (design: folders).

An include over an edge that is not listed is a finding.
"""

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
    "head": ["placement"] + RUNTIME,
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


def main() -> None:
    findings, looked_at = [], 0
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
