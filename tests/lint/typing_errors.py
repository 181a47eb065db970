"""Types: the package under mypy in strict mode, by a ratchet, and what a user's editor sees under
    mypy and basedpyright.

mypy's errors in each file of the package are at most what typing_errors.ratchet allows it; files
that are not listed have none. A list that allows more than there are is a finding: lower it, or
write it anew with `--write`. tests/typed has programs of users, which have no errors under either.
Libraries of others are not read, but for those that Troupe always has: which are installed changes
nothing here.
"""

import collections
import importlib.util
import json
import pathlib
import re
import subprocess
import sys

import tree

PACKAGE = "bindings/python/troupe"
EXAMPLES = "tests/typed"
RATCHET = "tests/lint/typing_errors.ratchet"
ERROR = re.compile(r"^([^:\n]+\.pyi?):\d+: error: ", re.M)


def run(tool: str, *arguments: str) -> str:
    """What the tool prints; what it prints to stderr too where it could not run."""
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
    found = collections.Counter(ERROR.findall(said))
    ratchet = tree.root() / RATCHET
    if "--write" in sys.argv:
        ratchet.write_text(
            json.dumps({name: found[name] for name in sorted(found)}, indent=1) + "\n"
        )
    allowed = json.loads(ratchet.read_text())
    findings = []
    for name in sorted(found):
        if found[name] > allowed.get(name, 0):
            findings += [line for line in said.splitlines() if line.startswith(f"{name}:")]
            findings.append(
                f"{name}: {found[name]} errors of types; {RATCHET} allows {allowed.get(name, 0)}"
            )
    findings += [
        f"{name}: {found[name]} errors of types, and {RATCHET} allows {most}: lower that"
        for name, most in allowed.items()
        if most > found[name]
    ]
    said = run("basedpyright", *examples)
    if not re.search(r"^0 errors", said, re.M):
        findings.append(f"basedpyright:\n{said}")
    tree.finish(findings, len(list(pathlib.Path(tree.root() / PACKAGE).rglob("*.py"))))


if __name__ == "__main__":
    main()
