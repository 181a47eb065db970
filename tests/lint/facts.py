"""Facts that cross languages: each stands once, and no code reads it back from a text.

The wire schema's enums have their Python values in troupe/_wire, written by `generate.py --names`.
Why something failed is `kind` of the schema's Failure. `cause` says it to people: no code tests it
for words. C++ without Python in it (the rooms called core) names no Python exceptions: what Python
raises for a kind is in `troupe._code.failures.BY_KIND`.
"""

import ast
import re
import sys

import tree

PACKAGE = "bindings/python/troupe"
NAMES = f"{PACKAGE}/_wire/__init__.py"
EXCEPTION = re.compile(
    r'"(?:[a-z_]+(?:\.[a-z_]+)*\.)?[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Iteration)"'
)
CPP_TEST = re.compile(
    r'\bcause\.(?:r?find|starts_with|ends_with|compare|contains)\(\s*"|\bcause\s*[!=]=\s*"[^"]'
)
METHODS = {"startswith", "endswith", "find", "rfind", "index", "removeprefix", "removesuffix"}
SEARCHES = {"search", "match", "fullmatch", "findall", "finditer"}


def is_cause(node: ast.expr) -> bool:
    """Return whether the expression is a cause: `each["cause"]`, `error.cause`, `cause`, any of
    them with a default (`... or ""`)."""
    if isinstance(node, ast.BoolOp):
        return any(is_cause(each) for each in node.values)
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == "cause"
    if isinstance(node, ast.Attribute):
        return node.attr == "cause"
    return isinstance(node, ast.Name) and node.id == "cause"


def compares(node: ast.Compare) -> bool:
    """Return whether the comparison looks for words in a cause, or at the whole of it."""
    sides = [node.left, *node.comparators]
    for left, operator, right in zip(sides, node.ops, sides[1:]):
        if isinstance(operator, ast.In | ast.NotIn) and is_cause(right):
            return True
        text = left if is_cause(right) else right if is_cause(left) else None
        if isinstance(operator, ast.Eq | ast.NotEq) and isinstance(
            text, ast.Constant | ast.JoinedStr
        ):
            return True
    return False


def tests_of_cause(text: str) -> list[int]:
    """Return the lines that test the text of a cause."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            tested = compares(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            on_it = node.func.attr in METHODS and is_cause(node.func.value)
            tested = on_it or (node.func.attr in SEARCHES and any(map(is_cause, node.args)))
        else:
            continue
        if tested:
            found.append(node.lineno)
    return found


def is_pure(name: str) -> bool:
    """Return whether the C++ file is in a room without threads, clocks and Python."""
    return "/core/" in name and not name.startswith(("tests/", "bindings/"))


def lines_with(pattern: re.Pattern[str], text: str) -> list[tuple[int, str]]:
    return [
        (number, found[0])
        for number, line in enumerate(text.split("\n"), 1)
        if (found := pattern.search(line.partition("//")[0]))
    ]


def names_of_schema() -> str:
    sys.path.insert(0, str(tree.root() / "runtime/wire"))
    import emit_names
    from schema import load

    return emit_names.source(load(tree.root() / "runtime/wire/schema"))


def main() -> None:
    findings, paths = [], tree.files(".h", ".cc", ".py")
    for path in paths:
        name, text = tree.relative(path), path.read_text()
        if path.suffix == ".py":
            if name.startswith(PACKAGE):
                findings += [
                    f"{name}:{line}: tests the text of a cause: switch on its `kind`"
                    for line in tests_of_cause(text)
                ]
            continue
        if not name.startswith("tests/") or name.startswith("tests/sim/"):
            findings += [
                f"{name}:{line}: tests the text of a cause: switch on its `kind`"
                for line, _ in lines_with(CPP_TEST, text)
            ]
        if is_pure(name):
            findings += [
                f"{name}:{line}: {found} is Python's: say a FailureKind, which BY_KIND of "
                "troupe._code.failures gives a class"
                for line, found in lines_with(EXCEPTION, text)
            ]
    if (tree.root() / NAMES).read_text() != names_of_schema():
        findings.append(
            f"{NAMES}: the schema says otherwise: python runtime/wire/generate.py "
            f"runtime/wire/schema --names {NAMES}"
        )
    tree.finish(findings, len(paths))


if __name__ == "__main__":
    main()
