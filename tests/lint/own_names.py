"""Names in unnamed namespaces: one file of a folder has each.

Sanitizer and clang builds compile several files of a library as one (UNITY in CMakePresets.json),
in which two files' private names are one name. What two files need is shared; what only looks alike
is named apart.

Modules of tests likewise: a folder of tests is no package, so to a pytest that collects two of
them, files of one name are one module.
"""

import collections
import pathlib
import re
import typing

import tree

FOLDERS_LEFT_OUT = ("bindings", "benchmarks")  # not of those builds


def statements(text: str) -> typing.Iterator[str]:
    """Yield the text that starts in column 0 inside an unnamed namespace, up to its first `;` or
    `{`."""
    inside, lines, i = False, text.split("\n"), 0
    while i < len(lines):
        line = lines[i]
        if line.startswith("namespace {"):
            inside = True
        elif re.match(r"\}\s*// namespace\s*$", line):
            inside = False
        elif inside and line and line[0] not in " }#/":
            while not re.search(r"[;{]", line) and i + 1 < len(lines):
                i += 1
                line += " " + lines[i].strip()
            yield line
        i += 1


def declared(statement: str) -> str | None:
    """The name a statement declares; a function's with its parameters' types, since overloads are
    different."""
    if statement.startswith(
        ("using ", "namespace ", "template", "TEST", "static_assert")
    ) and not re.match(r"using \w+ =", statement):
        return None
    for pattern in (
        r"(?:class|struct|enum class|enum|using)\s+(\w+)\s*(?:[:{=;]|final)",
        r"[^=({]*?\b(\w+)\s*(?:\[[^\]]*\])?\s*(?:=|\{|;)",
    ):
        if found := re.match(pattern, statement):
            return found.group(1)
    if found := re.match(r"[^=({]*?\b(\w+)\s*(\(.*?\))\s*(?:const|noexcept)*\s*[{;:]", statement):
        return found.group(1) + re.sub(r"\b\w+\s*(?=[,)])", "", found.group(2))
    return None


def library_of(path: pathlib.Path) -> pathlib.Path:
    """The folder that is compiled as one: actors/core and head/core are libraries of several."""
    for core in (tree.root() / "actors/core", tree.root() / "head/core"):
        if path.is_relative_to(core):
            return core
    return path.parent


def alike_modules() -> list[str]:
    """Modules of tests that pytest takes for one another."""
    folders = collections.defaultdict(list)
    for path in tree.files(".py"):
        if path.name.startswith("test_") and not (path.parent / "__init__.py").exists():
            folders[path.name].append(tree.relative(path.parent))
    return [
        f"{name} is in {', '.join(sorted(where))}: pytest takes them for one module, name them "
        "apart"
        for name, where in sorted(folders.items())
        if len(where) > 1
    ]


def main() -> None:
    paths = [
        path for path in tree.files(".cc") if not tree.relative(path).startswith(FOLDERS_LEFT_OUT)
    ]
    holders = collections.defaultdict(set)
    for path in paths:
        for statement in statements(path.read_text()):
            if name := declared(statement):
                holders[library_of(path), name].add(path.name)
    findings = [
        f"{tree.relative(folder)}: {name} is in the unnamed namespaces of "
        f"{', '.join(sorted(files))}: "
        "share it, or name them apart"
        for (folder, name), files in sorted(holders.items())
        if len(files) > 1
    ] + alike_modules()
    tree.finish(findings, len(paths))


if __name__ == "__main__":
    main()
