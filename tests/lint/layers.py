"""Who may include whom (design: folders). An include over an edge that is not listed is a finding."""
import re

import tree

# folder -> folders whose headers it may include, besides its own.
RUNTIME = ["runtime/base", "runtime/async", "runtime/wire", "runtime/net", "runtime/client",
           "runtime/store", "runtime/obs", "runtime/os"]
EDGES = {
    "runtime/base": [],
    "runtime/async": ["runtime/base"],
    "runtime/wire": ["runtime/base"],
    "runtime/os": ["runtime/base"],
    "runtime/net": ["runtime/base", "runtime/wire", "runtime/async"],
    "runtime/client": ["runtime/base", "runtime/wire", "runtime/async", "runtime/net"],
    "runtime/store": ["runtime/base", "runtime/os", "runtime/wire", "runtime/async", "runtime/net"],
    "runtime/obs": ["runtime/base", "runtime/async"],
    "placement": ["runtime/base"],
    "head": ["placement"] + RUNTIME,
    "worker": ["placement"] + RUNTIME,
    "actors": RUNTIME,
    "bindings": ["actors"] + RUNTIME,
}
# Pure code: decides, and touches no loop, wire format, clock or thread.
PURE = ["placement/", "head/core/", "worker/core/", "runtime/store/core/"]
IMPURE = re.compile(r"#include <(boost/|capnp/|kj/|thread|mutex|chrono_io|sys/|unistd|sqlite3|openssl/)"
                    r"|steady_clock::now|system_clock|random_device|\bgetenv\(|sleep_for")
ASIO_ALLOWED = ("runtime/async/", "runtime/net/", "runtime/client/", "runtime/obs/", "head/", "worker/",
                "actors/", "bindings/", "tests/", "benchmarks/")


def folder_of(path: str) -> str | None:
    parts = path.split("/")
    key = "/".join(parts[:2]) if parts[0] == "runtime" else parts[0]
    return key if key in EDGES else None


def main() -> None:
    findings, looked_at = [], 0
    for path in tree.files(".h", ".cc"):
        name = tree.relative(path)
        text = path.read_text()
        if "<boost/asio.hpp>" in text:
            findings.append(f"{name}: include the part of asio you use, not <boost/asio.hpp>")
        if re.search(r"#include <(capnp|kj)/", text) and not name.startswith("runtime/wire/"):
            findings.append(f"{name}: Cap'n Proto headers belong to the codec sources of runtime/wire")
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
