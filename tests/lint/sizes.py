"""Sizes: files, functions and lines stay small.

Files: 450 lines at most (tests 800); 400 is the aim. Functions: 70 lines at most. Lines of C++: 100
columns, by clang-format with .clang-format. What is already larger is listed in sizes.ratchet with
its size: it may shrink, never grow.
"""

import ast
import json
import re

import tree

FILE_LINES_MAX, TEST_LINES_MAX, FUNCTION_LINES_MAX, COLUMNS_MAX = 450, 800, 70, 100


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


def main() -> None:
    ratchet_file = tree.root() / "tests/lint/sizes.ratchet"
    allowed = json.loads(ratchet_file.read_text()) if ratchet_file.exists() else {}
    findings, paths = [], tree.files(".h", ".cc", ".py")
    for path in paths:
        name, text = tree.relative(path), path.read_text()
        lines = text.count("\n")
        limit = TEST_LINES_MAX if name.startswith("tests/") else FILE_LINES_MAX
        if lines > max(limit, allowed.get(name, 0)):
            findings.append(f"{name}: {lines} lines; the limit is {limit}: split it")
        if not name.endswith(".py"):
            findings += [
                f"{name}:{number}: {len(line)} columns; the limit is {COLUMNS_MAX}"
                for number, line in enumerate(text.split("\n"), 1)
                if len(line) > COLUMNS_MAX
            ]
        functions = python_functions(text) if name.endswith(".py") else cpp_functions(text)
        for start, length in functions:
            if length > max(FUNCTION_LINES_MAX, allowed.get(f"{name}:{start}", 0)):
                findings.append(
                    f"{name}: {start} ... is {length} lines; the limit is {FUNCTION_LINES_MAX}"
                )
    tree.finish(findings, len(paths))


if __name__ == "__main__":
    main()
