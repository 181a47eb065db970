"""Shape: a folder and a class stay small enough to be seen at once.

Folders: 30 units at most; a unit is a header with its source, or a Python module (__init__ aside).
Classes: 20 data members at most, of those with private state (names that end with `_`); plain data
is exempt. What is over is listed in shape.ratchet with its size: it may shrink, never grow, and
what has come under goes from the list.
"""

import collections
import json
import pathlib
import re

import tree

UNITS_MAX, MEMBERS_MAX = 30, 20
CLASS = re.compile(
    r"\b(?:class|struct)\s+(?:[A-Z_]+(?:\([^()]*\))?\s+)?([\w:]+)(?:\s+final)?\s*(?::[^;{(]*)?\{"
)
ANNOTATION = re.compile(r"\b(?:ABSL_\w+|alignas|__attribute__)\s*\((?:[^()]|\([^()]*\))*\)")
MEMBER = re.compile(r"\b(\w+_)\s*(?:\[[^\]]*\])?\s*(?:=.*|\{.*\})?$", re.S)
NO_MEMBER = re.compile(
    r"\s*(?:static|using|friend|typedef|return|enum|template|class \w+$|struct \w+$)\b"
)


def end_of(code: str, opened: int) -> int:
    """Return the place where the brace at `opened` closes."""
    depth = 0
    for found in re.finditer(r"[{}]", code[opened:]):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return opened + found.start()
    return len(code)


def statements(body: str) -> list[str]:
    """Return the statements in a class itself, without those in its functions and in classes inside
    it; an initialiser in braces stays."""
    body, found, start, i = ANNOTATION.sub(" ", body), [], 0, 0
    while i < len(body):
        if body[i] == "{":
            end = end_of(body, i)
            i = end + 1
            if not re.match(r"\s*[;,]", body[i:]):  # a function's body
                start = i
            continue
        if body[i] == ";":
            found.append(body[start:i])
            start = i + 1
        i += 1
    return found


def classes(text: str) -> list[tuple[str, int]]:
    """Each class with private state, and how many data members it has."""
    code, found = tree.code_only(text), []
    for match in CLASS.finditer(code):
        body = code[match.end() : end_of(code, match.end() - 1)]
        members = set()
        for statement in statements(body):
            statement = re.sub(
                r"^\s*(?:public|private|protected)\s*:", "", statement.strip()
            ).strip()
            name = MEMBER.search(statement)
            if name and not NO_MEMBER.match(statement) and not CLASS.match(statement + "{"):
                members.add(name[1])
        found.append((match[1], len(members)))
    return found


def sizes(paths: list[pathlib.Path]) -> dict[str, tuple[int, int, str]]:
    """Name -> size, limit, what is counted."""
    folders: dict[str, set[str]] = collections.defaultdict(set)
    found = {}
    for path in paths:
        name = tree.relative(path)
        if path.stem != "__init__":
            folders[str(path.parent.relative_to(tree.root()))].add(path.stem)
        if path.suffix in (".h", ".cc"):
            for each, members in classes(path.read_text()):
                found[f"{name}:{each}"] = (members, MEMBERS_MAX, "data members")
    return found | {name: (len(units), UNITS_MAX, "units") for name, units in folders.items()}


def main() -> None:
    paths = tree.files(".h", ".cc", ".py")
    allowed = json.loads((tree.root() / "tests/lint/shape.ratchet").read_text())
    found, findings = sizes(paths), []
    for name, (size, most, what) in found.items():
        if size > max(most, allowed.get(name, 0)):
            findings.append(
                f"{name}: {size} {what}; the limit is {max(most, allowed.get(name, 0))}: split it"
            )
    for name, size in allowed.items():
        now, most, what = found.get(name, (0, 0, "anything"))
        if now < size:
            findings.append(
                f"{name}: {now} {what}, and shape.ratchet says {size}: "
                f"{'take it out' if now <= most else 'lower that'}"
            )
    tree.finish(findings, len(paths))


if __name__ == "__main__":
    main()
