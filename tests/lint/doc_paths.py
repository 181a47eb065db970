"""Paths in documents exist: a path in backquotes is a file or folder of the tree.

A path is looked for from the root, from the document's folder and the one above it, and in the
Python package. A name without its ending stands for a unit (`actors/net/call_door`), `core/actors*`
for all that begin so.
"""

import fnmatch
import os
import re

import tree

# Paths that exist at run time or once installed, or are no paths.
ELSEWHERE = {
    "troupe/lib",
    "head/ca.key",
    "ray.io/node-id",
    "TROUPE_HOME/cache",
    "runtime/wire/messages.h",
}
PACKAGE = "bindings/python/troupe"


def candidates(document: str, path: str) -> list[str]:
    """Return the places a document may mean by `path`."""
    base = os.path.dirname(document)
    places = ("", base, os.path.dirname(base), PACKAGE, os.path.dirname(PACKAGE))
    return [os.path.normpath(os.path.join(place, path)) for place in places]


def main() -> None:
    names = [tree.relative(path) for path in tree.files("")]
    starts = {
        name[:end]
        for name in names
        for end in range(1, len(name) + 1)
        if end == len(name) or name[end] in "/._*"
    }
    documents = [name for name in names if name.endswith(".md")]
    findings = []
    for document in documents:
        text = (tree.root() / document).read_text()
        for path in re.findall(r"`([A-Za-z_.][\w.-]*/[\w./*-]*)`", text):
            sought = candidates(document, path.rstrip("/"))
            found = (
                any(fnmatch.filter(names, each) for each in sought)
                if "*" in path
                else any(each in starts for each in sought)
            )
            if path not in ELSEWHERE and not found:
                findings.append(f"{document}: `{path}` is not there")
    tree.finish(findings, len(documents))


if __name__ == "__main__":
    main()
