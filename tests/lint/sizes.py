"""Sizes: files, functions and lines stay small.

Files: 450 lines at most (tests 800); 400 is the aim. Functions: 70 lines at most. Lines: 100
columns at most, in C++, Python, CMake, shell and YAML. What is already larger is listed in
sizes.ratchet with its size, files with longer lines as NAME:columns with how many these are: it may
shrink, never grow. A list that allows more long lines than there are is a finding: lower it, or
write the longer lines' part anew with `--write`.
"""

import ast
import json
import re
import sys

import tree

FILE_LINES_MAX, TEST_LINES_MAX, FUNCTION_LINES_MAX, COLUMNS_MAX = 450, 800, 70, 100
RATCHET = "tests/lint/sizes.ratchet"
LINE_SUFFIXES = (".h", ".cc", ".py", ".pyi", ".cmake", "CMakeLists.txt", ".sh", ".yaml", ".yml")
SCRIPTS = (".ci/run", "quickstart", "scripts/fuzz", "scripts/stress", "test")


def cpp_functions(text: str) -> list[tuple[str, int]]:
    """(first line, length) of every function body that starts in column 0 or 2, by indentation."""
    found, lines, i = [], text.split("\n"), 0
    while i < len(lines):
        line = lines[i]
        indent = len(line) - len(line.lstrip())
        starts = (
            indent in (0, 2)
            and line.rstrip().endswith("{")
            and "(" in line
            and not re.match(
                r"\s*(class|struct|enum|namespace|if|for|while|switch|do|else|extern|#)", line
            )
        )
        if not starts:
            i += 1
            continue
        closing = " " * indent + "}"
        end = next(
            (
                j
                for j in range(i + 1, len(lines))
                if lines[j].startswith(closing) and len(lines[j]) - len(lines[j].lstrip()) == indent
            ),
            i,
        )
        found.append((line.strip()[:60], end - i + 1))
        i = end + 1
    return found


def python_functions(text: str) -> list[tuple[str, int]]:
    """(name, lines of the body) of every function.

    Parameters and docstring are not counted, as in C++, where the text stands above.
    """
    nodes = [
        n
        for n in ast.walk(ast.parse(text))
        if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    starts = [n.body[1:] if ast.get_docstring(n) else n.body for n in nodes]
    return [
        (n.name, n.end_lineno - body[0].lineno + 1)
        for n, body in zip(nodes, starts, strict=True)
        if body
    ]


AS_VENDORS_WRITE = re.compile(r"tests/guides/\w+/")  # programs of guides, word for word


def long_lines(allowed: dict[str, int]) -> tuple[list[str], dict[str, int]]:
    """Return the findings about lines over COLUMNS_MAX, and their number for each file."""
    findings, counts = [], {}
    scripts = [tree.root() / name for name in SCRIPTS]
    for path in [*tree.files(*LINE_SUFFIXES), *(each for each in scripts if each.exists())]:
        name = f"{tree.relative(path)}:columns"
        if AS_VENDORS_WRITE.match(name):
            continue
        longer = [
            (number, len(line))
            for number, line in enumerate(path.read_text().split("\n"), 1)
            if len(line) > COLUMNS_MAX
        ]
        if longer:
            counts[name] = len(longer)
        if len(longer) > allowed.get(name, 0):
            findings += [
                f"{tree.relative(path)}:{number}: {columns} columns; the limit is {COLUMNS_MAX}"
                for number, columns in longer
            ]
    findings += [
        f"{name}: {counts.get(name, 0)} lines, and {RATCHET} allows {most}: lower that"
        for name, most in allowed.items()
        if name.endswith(":columns") and most > counts.get(name, 0)
    ]
    return findings, counts


def main() -> None:
    ratchet = tree.root() / RATCHET
    allowed = json.loads(ratchet.read_text()) if ratchet.exists() else {}
    findings, counts = long_lines(allowed)
    if "--write" in sys.argv:
        sizes = {name: size for name, size in allowed.items() if not name.endswith(":columns")}
        ratchet.write_text(json.dumps(sizes | counts, indent=1, sort_keys=True) + "\n")
        findings = []
    paths = tree.files(".h", ".cc", ".py")
    for path in paths:
        name, text = tree.relative(path), path.read_text()
        lines = text.count("\n")
        limit = TEST_LINES_MAX if name.startswith("tests/") else FILE_LINES_MAX
        if lines > max(limit, allowed.get(name, 0)):
            findings.append(f"{name}: {lines} lines; the limit is {limit}: split it")
        functions = python_functions(text) if name.endswith(".py") else cpp_functions(text)
        for start, length in functions:
            if length > max(FUNCTION_LINES_MAX, allowed.get(f"{name}:{start}", 0)):
                findings.append(
                    f"{name}: {start} ... is {length} lines; the limit is {FUNCTION_LINES_MAX}"
                )
    tree.finish(findings, len(paths))


if __name__ == "__main__":
    main()
