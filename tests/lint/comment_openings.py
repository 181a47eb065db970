"""A header's comment stands alone: none begins with "The same", "Of" or "Likewise", which only make sense beside the comment before.

A comment begins after code, and on a line whose neighbour above is no comment; a line of a longer one begins a sentence where it is
capitalised. What still begins so is listed in comment_openings.ratchet with how many of them a header has: fewer may be, never more.
"""
import json
import re

import tree

LEANING = re.compile(r"(?<!:)//+[!<]*\s*(the same|of|likewise)\b", re.I)


def openings(text: str) -> list[tuple[int, str]]:
    """(line, opening) of every comment that leans on another one."""
    found, in_comment = [], False
    for number, line in enumerate(text.split("\n"), 1):
        match = LEANING.search(line)
        goes_on = in_comment and match and match.group(1)[0].islower() and line.lstrip().startswith("//")
        if match and not goes_on:
            found.append((number, match.group(1)))
        in_comment = line.lstrip().startswith("//")
    return found


def main() -> None:
    ratchet_file = tree.root() / "tests/lint/comment_openings.ratchet"
    allowed = json.loads(ratchet_file.read_text()) if ratchet_file.exists() else {}
    findings, paths = [], tree.files(".h")
    for path in paths:
        name, found = tree.relative(path), openings(path.read_text())
        if len(found) > allowed.get(name, 0):
            findings += [f"{name}:{number}: begins with \"{opening}\": say what this is, as if nothing stood beside it"
                         for number, opening in found]
    tree.finish(findings, len(paths))


if __name__ == "__main__":
    main()
