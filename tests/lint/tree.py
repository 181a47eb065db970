"""Helpers of the lint rules: the files of the tree and the printing of findings."""

import pathlib
import re
import subprocess
import sys

CPP_ROOTS = ("runtime", "placement", "head", "worker", "actors", "bindings", "tests", "benchmarks")

NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])*\'', re.S
)


def code_only(text: str) -> str:
    """C++ with comments and literals blanked, positions kept."""
    return NOT_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def root() -> pathlib.Path:
    return pathlib.Path(sys.argv[1]).resolve()


def files(*suffixes: str) -> list[pathlib.Path]:
    """Files git tracks or would track, with one of these suffixes, sorted."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=root(),
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\n")
    return sorted(
        root() / name for name in listed if name.endswith(suffixes) and (root() / name).is_file()
    )


def relative(path: pathlib.Path) -> str:
    return str(path.relative_to(root()))


def finish(findings: list[str], looked_at: int) -> None:
    """Prints the findings and exits; a rule that looked at nothing fails."""
    for finding in findings:
        print(finding)
    print(f"{looked_at} files, {len(findings)} findings")
    sys.exit(1 if findings or looked_at == 0 else 0)
