"""The code blocks of the documentation's pages, and which of them a test runs.

A block of Python, of a shell, or with lines that begin with a prompt is code. Tests run all code of
a page, in order (tests/pages), except where a comment stands above a block:

    <!-- run by tests/package/test_wheel.py -->     another test runs it
    <!-- not run: needs two machines -->            no test does; pages.ratchet counts it
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
RATCHET = Path(__file__).with_name("pages.ratchet")
FOLDERS = ("start", "guides", "coming", "reference", "explanations")
"""Folders of pages for users; their order is that of the site."""
ELSEWHERE = {"guides/day_with_a_cluster.md": "tests/jobs/test_sessions.py"}
"""Pages that a test of its own runs whole."""

PROMPT = re.compile(r"^(?P<host>[a-z][\w-]*)?\$ (?P<command>.*)$")
_FENCE = re.compile(
    r"(?:<!-- (?P<note>[^>]*) -->\n)?^(?P<ticks>```+)(?P<language>[\w+-]*)\n"
    r"(?P<text>.*?)^(?P=ticks)$",
    re.M | re.S,
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, its line, and the comment above it."""

    language: str
    text: str
    line: int
    note: str

    @property
    def file(self) -> str:
        """The name of the file that the block is the text of, from its first line; or "" ."""
        found = re.match(r"# ([\w./-]+\.\w+)\n", self.text)
        return found[1] if found else ""

    @property
    def is_code(self) -> bool:
        """True for what a reader would run, or save and run."""
        prompts = any(PROMPT.match(line) for line in self.text.splitlines())
        return self.language in ("python", "sh", "bash", "console") or prompts

    @property
    def is_run(self) -> bool:
        """True unless a comment says that no test runs it."""
        return not self.note.startswith("not run:")


def pages() -> list[str]:
    """Return the pages for users, as paths in docs/."""
    return [
        str(path.relative_to(DOCS))
        for folder in FOLDERS
        for path in sorted((DOCS / folder).rglob("*.md"))
    ]


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    text = (DOCS / page).read_text()
    return [
        Block(
            found["language"],
            found["text"],
            text[: found.start("ticks")].count("\n") + 1,
            found["note"] or "",
        )
        for found in _FENCE.finditer(text)
    ]


def ratchet() -> dict[str, dict[str, float]]:
    """Return the figures of each page that is not yet as pages should be."""
    kept: dict[str, dict[str, float]] = json.loads(RATCHET.read_text())
    return kept


def run_pages() -> list[str]:
    """Return the pages whose code tests/pages runs."""
    listed = ratchet()
    return [
        page
        for page in pages()
        if page not in ELSEWHERE
        and any(each.is_code and each.is_run for each in blocks(page))
        and not listed.get(page, {}).get("skipped")
    ]


def not_run(page: str, skipped: bool) -> int:
    """Return how many blocks of a page no test runs; `skipped`: tests/pages leaves it out."""
    if page in ELSEWHERE:
        return 0
    code = [each for each in blocks(page) if each.is_code]
    return sum(1 for each in code if not each.is_run or (skipped and "run by" not in each.note))
