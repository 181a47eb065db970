"""Types: the package has no errors under mypy in strict mode, and the programs of users in
tests/typed have none under mypy and basedpyright.

A line that mypy cannot know (a private name of Python's own, a base class in another project's
library) has `# type: ignore[code]` with the error's code. Libraries of others are not read, except
those that Troupe always has: which libraries are installed changes nothing here.
"""

import importlib.util
import pathlib
import re
import subprocess
import sys

import tree

PACKAGE = "bindings/python/troupe"
EXAMPLES = "tests/typed"
ERROR = re.compile(r"^[^:\n]+\.pyi?:\d+: error: .*$", re.M)


def run(tool: str, *arguments: str) -> str:
    """Return the tool's output; its stderr too where it could not run."""
    done = subprocess.run(
        [sys.executable, "-m", tool, *arguments], cwd=tree.root(), capture_output=True, text=True
    )
    return done.stdout + (done.stderr if done.returncode not in (0, 1) else "")


def main() -> None:
    examples = [
        tree.relative(path)
        for path in tree.files(".py")
        if tree.relative(path).startswith(EXAMPLES + "/")
    ]
    missing = [tool for tool in ("mypy", "basedpyright") if importlib.util.find_spec(tool) is None]
    if missing:
        tree.finish(
            [
                f"{' and '.join(missing)}: not installed; pyproject.toml names the version, among "
                "the extra `test`"
            ],
            1,
        )
    said = run("mypy", PACKAGE, *examples)
    if not re.search(r"^(Found \d+ error|Success)", said, re.M):
        tree.finish([f"mypy could not run:\n{said}"], 1)
    findings = ERROR.findall(said)
    said = run("basedpyright", *examples)
    if not re.search(r"^0 errors", said, re.M):
        findings.append(f"basedpyright:\n{said}")
    tree.finish(findings, len(list(pathlib.Path(tree.root() / PACKAGE).rglob("*.py"))))


if __name__ == "__main__":
    main()
