"""The code of the documentation's pages runs, and prints what the pages say.

Method: the blocks of each page in order, in a folder of their own (page_runner.py).
"""

from __future__ import annotations

from pathlib import Path

import page_runner
import pytest
from page_runner import blocks


@pytest.mark.parametrize("page", blocks.run_pages())
def test_the_code_of_a_page_runs(page: str, tmp_path: Path) -> None:
    page_runner.run_page(page, tmp_path)


def test_a_page_that_is_wrong_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    monkeypatch.setattr(blocks, "DOCS", page.parent)
    texts = {
        "python": "```python\nprint(1 + 1)  # 3\n```\n",
        "output": "```\n$ echo one 2.5; echo two\none 3.1\nthree\n```\n",
        "exit": "```sh\nfalse\n```\n",
        "right": "```\n$ echo one 2.5; echo two\none 3.1\ntwo\n```\n"
        "```python\n# a.py\nprint(2)\n```\n```\nnode-b$ python a.py\n2\n```\n"
        "<!-- not run: it ends with 1 -->\n```sh\nfalse\n```\n",
    }
    for name, text in texts.items():
        page.write_text(text)
        folder = tmp_path / name
        folder.mkdir()
        if name == "right":
            page_runner.run_page("page.md", folder)
            assert blocks.not_run("page.md", False) == 1
        else:
            with pytest.raises(AssertionError, match="docs/page.md, line"):
                page_runner.run_page("page.md", folder)


def test_each_other_test_that_is_named_exists() -> None:
    root = page_runner.ROOT
    named = list(blocks.ELSEWHERE.values())
    for page in blocks.pages():
        for block in blocks.blocks(page):
            if block.note.startswith("run by "):
                named.append(block.note.removeprefix("run by ").split("::")[0])
    for each in named:
        assert (root / each).exists(), each
