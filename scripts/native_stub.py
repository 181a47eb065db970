"""The types of troupe._native as mypy and editors read them: bindings/python/troupe/_native.pyi.

    PYTHONPATH=build/dev/python .venv/bin/python scripts/native_stub.py

writes it anew from what is built; do so after each change of what the extension offers. nanobind's
stubgen reads the extension; bindings/native_stub.pat has what it cannot see.
"""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
STUB = ROOT / "bindings" / "python" / "troupe" / "_native.pyi"
HEADER = "# Made by scripts/native_stub.py; do not edit.\n"
PATTERNS = ROOT / "bindings" / "native_stub.pat"


def made() -> str:
    """Return the text that belongs into STUB, of the extension that Python imports here.

    Raises:
        RuntimeError: with what stubgen or ruff says, also where a pattern fits nothing any more.
    """
    with tempfile.TemporaryDirectory() as folder:
        stub = pathlib.Path(folder) / "_native.pyi"
        stubgen = ["nanobind.stubgen", "-m", "troupe._native", "--include-private"]
        said = _run(*stubgen, "--exclude-docstrings", "-p", str(PATTERNS), "-o", str(stub))
        unused = [line for line in said.splitlines() if "warning" in line]
        if unused:
            raise RuntimeError("\n".join(unused))
        config = ["--config", str(ROOT / "pyproject.toml")]
        _run("ruff", "check", "--select", "I,F401", "--fix", "--quiet", *config, str(stub))
        _run("ruff", "format", "--quiet", *config, str(stub))
        return HEADER + stub.read_text()


def _run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{arguments[0]}: {done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    STUB.write_text(made())
