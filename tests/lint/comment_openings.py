"""A header's comment stands alone: none begins with "The same", "Of" or "Likewise", which only make
sense beside the comment before.

A comment begins after code, and on a line whose neighbour above is no comment; a line of a longer
one begins a sentence where it is capitalised.
"""

import re

import tree

LEANING = re.compile(r"(?<!:)//+[!<]*\s*(the same|of|likewise)\b", re.I)


def openings(text: str) -> list[tuple[int, str]]:
    """(line, opening) of every comment that leans on another one."""
    found, in_comment = [], False
    for number, line in enumerate(text.split("\n"), 1):
        match = LEANING.search(line)
        goes_on = (
            in_comment and match and match.group(1)[0].islower() and line.lstrip().startswith("//")
        )
        if match and not goes_on:
            found.append((number, match.group(1)))
        in_comment = line.lstrip().startswith("//")
    return found


def main() -> None:
    paths = tree.files(".h")
    findings = [
        f'{tree.relative(path)}:{number}: begins with "{opening}": say what this is, as if nothing '
        "stood beside it"
        for path in paths
        for number, opening in openings(path.read_text())
    ]
    tree.finish(findings, len(paths))


if __name__ == "__main__":
    main()
