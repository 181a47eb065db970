"""Python's format and ruff's rules, over all Python of the tree.

`ruff format` changes nothing, and `ruff check` finds nothing; pyproject.toml has the rules and what
they leave out. Lines over 100 columns are counted by sizes.py. pre-commit's ruff is the same.
"""

import importlib.util
import re
import subprocess
import sys

import tree

FORMAT, CHECK = ("format", "--check"), ("check", "--output-format=concise")
MEND = {FORMAT: "ruff format", CHECK: "ruff check --fix"}


def findings_of(*arguments: str) -> list[str]:
    """Return what ruff prints where it finds something or could not run."""
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *arguments, "."],
        cwd=tree.root(),
        capture_output=True,
        text=True,
    )
    if done.returncode == 0:
        return []
    return [*done.stdout.splitlines(), *done.stderr.splitlines()]


def main() -> None:
    if importlib.util.find_spec("ruff") is None:
        tree.finish(["ruff: not installed; pyproject.toml names the version, in extra `test`"], 1)
    findings = []
    for arguments in (FORMAT, CHECK):
        found = findings_of(*arguments)
        findings += found
        if found:
            findings.append(f"to mend what can be mended without you: {MEND[arguments]}")
    pinned = re.search(r'"ruff==([\d.]+)"', (tree.root() / "pyproject.toml").read_text())
    hooks = re.search(r"rev: v([\d.]+)", (tree.root() / ".pre-commit-config.yaml").read_text())
    if pinned is None or hooks is None or pinned[1] != hooks[1]:
        findings.append(
            "pyproject.toml and .pre-commit-config.yaml name different versions of ruff"
        )
    tree.finish(findings, len(tree.files(".py")))


if __name__ == "__main__":
    main()
