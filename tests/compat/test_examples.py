"""The scripts of examples/ray are Ray programs that run here unchanged, without `ray.init()`, and
print what they say they do.

Method: each by `troupe run-as-ray` in a process of its own; the lines it is to print are in its
docstring. examples/README.md and docs/coming/ray.md name each of them.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from conftest import Home

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "examples" / "ray").glob("*.py"))
WITHIN_S = 300
STARTED = "troupe: no ray.init() before this call: started a cluster of this machine"


def docstring(script: Path) -> str:
    """Return the docstring of a script."""
    return ast.get_docstring(ast.parse(script.read_text())) or ""


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_it_prints_what_it_says(home: Home, script: Path) -> None:
    _, _, lines = docstring(script).partition("Prints:\n\n")
    expected = [line.removeprefix("    ") for line in lines.splitlines()]
    done = home.run("run-as-ray", str(script), ok=False, timeout=WITHIN_S)
    assert expected and done.returncode == 0 and done.stdout.splitlines() == expected, (
        f"{done.stdout}\n{done.stderr}"
    )
    assert done.stderr.count(STARTED) == 1 and "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_it_says_how_it_is_run(script: Path) -> None:
    text = script.read_text()
    assert f"\n    troupe run-as-ray examples/ray/{script.name}\n" in docstring(script)
    assert not re.search(
        r"^[^#\n\"]*\b(ray\.init|troupe)\b", text.partition('"""\n')[2], re.MULTILINE
    ), "it is as for Ray"
    assert len(text.partition('"""\n')[2].splitlines()) <= 80


def test_the_table_has_each_script() -> None:
    table = re.findall(
        r"^\| `(\w+\.py)` \| (.+) \|$", (ROOT / "examples" / "README.md").read_text(), re.MULTILINE
    )
    assert [name for name, _ in table] == [script.name for script in SCRIPTS]
    for name, what in table:
        said = " ".join(docstring(ROOT / "examples" / "ray" / name).split())
        pattern = said.partition(":")[0]
        assert pattern.startswith(what.partition(":")[0]), (
            f"{name} is about {pattern!r}, its row says {what!r}"
        )


def test_the_document_names_them() -> None:
    document = (ROOT / "docs" / "coming" / "ray.md").read_text()
    assert not [script.stem for script in SCRIPTS if f"`{script.stem}`" not in document]
