"""Banned calls, each with its replacement. A rule's exceptions are named with it.

A line may opt out of a rule with a reason: `lint-ok: the method under test is slow on purpose`.
"""

import re

import tree

# (pattern, suffixes, what to do instead, path prefixes where it is right)
RULES = [
    (
        r"\basio::detached\b",
        (".h", ".cc"),
        "spawn through runtime/async/scope.h: detached swallows exceptions",
        (),
    ),
    (
        r"\bsleep_for\(|\busleep\(|\bsleep\(\d",
        (".h", ".cc"),
        "wait for an event with a deadline",
        (),
    ),
    (r"\btime\.sleep\(", (".py",), "wait for an event with a deadline", ()),
    (
        r"\bsystem_clock\b|\bsteady_clock::now\b",
        (".h", ".cc"),
        "the Clock seam (runtime/base/time.h)",
        ("runtime/async/", "benchmarks/", "tests/"),
    ),
    (
        r"\bstd::rand\b|\brandom_device\b",
        (".h", ".cc"),
        "the Random seam (runtime/base/random.h)",
        ("runtime/async/",),
    ),
    (
        r"\bpickle\.loads?\(",
        (".py",),
        "troupe's own loader: pickle only from authenticated peers, in one place",
        ("bindings/python/troupe/", "tests/", "benchmarks/"),
    ),
    (
        r"\b(TODO|FIXME|XXX|HACK)\b",
        (".h", ".cc", ".py"),
        "finish it, or leave it out",
        ("tests/lint/",),
    ),
    (
        r"\bnb::gil_scoped_\w+|\bPyGILState_Ensure\b|\bPyEval_RestoreThread\b",
        (".h", ".cc"),
        "bindings/support/gil.h: these end a thread that comes back at the exit",
        ("bindings/support/gil.",),
    ),
    (
        r"#include <nanobind/",
        (".h", ".cc"),
        "bindings/support/nanobind.h: all files convert a type alike, for the linker keeps one "
        "conversion",
        ("bindings/support/nanobind.h",),
    ),
    (r"#include <boost/asio\.hpp>", (".h", ".cc"), "the part of asio that is used", ()),
    (r"^\s*except:\s*$", (".py",), "name the exception", ()),
]


def main() -> None:
    findings, paths = [], tree.files(".h", ".cc", ".py")
    for path in paths:
        name, text = tree.relative(path), path.read_text()
        if name == "tests/lint/sources.py":
            continue
        lines = text.split("\n")
        for pattern, suffixes, instead, right_in in RULES:
            if not name.endswith(suffixes) or name.startswith(tuple(right_in) or ("\0",)):
                continue
            for match in re.finditer(pattern, text, re.M):
                line = text.count("\n", 0, match.end()) + 1
                if "lint-ok:" in lines[line - 1]:
                    continue
                findings.append(f"{name}:{line}: {match.group(0).strip()!r}: use {instead}")
        if name.endswith(".h") and "#pragma once" not in text:
            findings.append(f"{name}: no #pragma once")
        if name.endswith(".h") and not text.lstrip().startswith("//"):
            findings.append(f"{name}: a header begins with what it is and how it is used")
    tree.finish(findings, len(paths))


if __name__ == "__main__":
    main()
