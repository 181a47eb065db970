"""Checks the pages for users and the built site.

    check.py HTML             exits with 1 and a list of what is wrong
    check.py HTML --write     lowers the figures in pages.ratchet to those of today

Of the site: every link and picture leads to a file, and to an anchor that exists. Of each page: at
most 3 % of its sentences have more than 30 words, its Flesch reading ease is 50 or more, a test
runs each of its code blocks, it names no test file. What is not yet so stands in pages.ratchet with
its figures, which may only get better. The tables of errors and variables have what the code has.
"""

from __future__ import annotations

import html.parser
import json
import re
import sys
import urllib.parse
from pathlib import Path

import blocks
import tables
import textstat

WORDS_MAX, LONG_MAX, EASE_MIN, SENTENCES_MIN = 30, 0.03, 50.0, 5


class Links(html.parser.HTMLParser):
    """The links and the anchors of a built page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.targets.append(value)
            elif value and name in ("id", "name"):
                self.anchors.add(value)


def dead_links(site: Path) -> list[str]:
    """Return the links inside the site that lead nowhere."""
    read = {path: Links(path.read_text()) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, links in read.items():
        for target in links.targets:
            parts = urllib.parse.urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            name = urllib.parse.unquote(parts.path)
            there = (path.parent / name).resolve() if name else path
            anchor = urllib.parse.unquote(parts.fragment)
            if not there.exists():
                found.append(f"{path.relative_to(site)}: {target} does not exist")
            elif anchor and there in read and anchor not in read[there].anchors:
                found.append(f"{path.relative_to(site)}: {target} has no such anchor")
    return found


def prose(text: str) -> str:
    """Return the sentences of a page: no code, tables, headings or directives."""
    text = re.sub(r"^(```+|:::+)[^\n]*\n.*?^\1$", "\n", text, flags=re.M | re.S)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r"^(?:#|\||:::).*$", "\n", text, flags=re.M)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"[*_]", "", text)
    blocks_of_text = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text)
    ended = (" ".join(each.split()) for each in blocks_of_text)
    return "\n".join(each if each[-1] in ".!?" else f"{each}." for each in ended if each)


def figures(page: str, skipped: bool) -> dict[str, float]:
    """Return what of a page is not as it should be, as figures of which less is better."""
    text = (blocks.DOCS / page).read_text()
    said = prose(text)
    sentences = [each for each in re.split(r"(?<=[.!?])\s+", said) if len(each.split()) > 1]
    long = sum(len(each.split()) > WORDS_MAX for each in sentences)
    found: dict[str, float] = {}
    if sentences and long > max(1, LONG_MAX * len(sentences)):
        found["long_sentences"] = long
    if len(sentences) >= SENTENCES_MIN:
        ease = textstat.flesch_reading_ease(said)
        if ease < EASE_MIN:
            found["below_50"] = round(EASE_MIN - ease, 1)
    missing = blocks.not_run(page, skipped)
    if missing:
        found["not_run"] = missing
    tests = len(re.findall(r"`(?:tests/)?[\w/]*\btest_\w+(?:\.py)?\b", text))
    if tests:
        found["names_tests"] = tests
    return found


def pages_worse(write: bool) -> list[str]:
    """Return what is worse than pages.ratchet allows; with `write`, lower its figures."""
    kept, found, lower = blocks.ratchet(), [], {}
    for page in blocks.pages():
        allowed = kept.get(page, {})
        skipped = bool(allowed.get("skipped"))
        now = figures(page, skipped)
        for name, figure in now.items():
            if figure > allowed.get(name, 0):
                found.append(f"{page}: {name} is {figure}, and may be {allowed.get(name, 0)}")
        better = {name: min(now[name], allowed[name]) for name in now if name in allowed}
        if skipped and "not_run" in better:
            better["skipped"] = 1
        if better:
            lower[page] = better
    if write:
        lines = [f'  "{page}": {json.dumps(lower[page], sort_keys=True)}' for page in sorted(lower)]
        blocks.RATCHET.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return found


def main() -> None:
    site = Path(sys.argv[1])
    found = dead_links(site) + pages_worse("--write" in sys.argv)
    found += tables.variables() + tables.errors()
    print("\n".join(found))
    print(f"{len(list(site.rglob('*.html')))} pages, {len(found)} findings")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
