"""Collects the site's source: pages of docs/, READMEs of folders, generated reference pages.

    stage.py OUT        writes OUT, ready for sphinx-build; exits with 1 and a list where a link
                        leads to a file that does not exist

Links between pages are kept. A link to a README becomes a link to its page. A link to any other
file of the repository becomes plain text, because the site does not contain that file.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import cli_reference
import cpp_reference
import python_reference

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\]\([^)]*\))*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
FENCE = re.compile(r"^(```+|~~~+).*?^\1", re.M | re.S)
ELSEWHERE = {"README.md": "index.md", "SECURITY.md": "explanations/security.md"}
"""Files of the repository that a page of the site stands for."""
TITLES = {"CONTRIBUTING.md": "contributing/rules.md"}


def pages() -> dict[str, str]:
    """Return the page in the site of each Markdown file, both as paths."""
    found = dict(TITLES) | {"SECURITY.md": ELSEWHERE["SECURITY.md"]}
    for path in sorted((ROOT / "docs").rglob("*.md")):
        name = str(path.relative_to(ROOT))
        if not name.startswith("docs/site/"):
            found[name] = name.removeprefix("docs/")
    for path in _readmes():
        found[str(path.relative_to(ROOT))] = f"contributing/tree/{path.relative_to(ROOT)}"
    return found


def _readmes() -> list[Path]:
    """Return the READMEs of folders, the repository's own aside."""
    found = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [
            each
            for each in folders
            if not each.startswith(".") and each not in ("build", "docs", "dist", "node_modules")
        ]
        if "README.md" in files and Path(folder) != ROOT:
            found.append(Path(folder) / "README.md")
    return sorted(found)


def rewrite(text: str, source: str, target: str, known: dict[str, str]) -> tuple[str, list[str]]:
    """Return the text with its links changed for the site, and the links that lead nowhere."""
    missing: list[str] = []

    def link(found: re.Match[str]) -> str:
        label, path, anchor = found[1], found[2], found[3] or ""
        if not path or re.match(r"[a-z]+:", path):
            return found[0]
        there = os.path.normpath(os.path.join(os.path.dirname(source), path))
        if not (ROOT / there).exists():
            missing.append(f"{source}: {path} does not exist")
            return label
        if (ROOT / there / "README.md").is_file() and there != ".":
            there = f"{there}/README.md"
        page = known.get(there)
        if page is None and there in ELSEWHERE:
            page, anchor = ELSEWHERE[there], ""
        if page is None and there.startswith("docs/") and (ROOT / there).is_file():
            page = there.removeprefix("docs/")
        if page is None:
            return label
        return f"[{label}]({os.path.relpath(page, os.path.dirname(target) or '.')}{anchor})"

    kept, end = [], 0
    for fence in FENCE.finditer(text):
        kept += [LINK.sub(link, text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*kept, LINK.sub(link, text[end:])]), missing


def fill_index(text: str, page: str, known: dict[str, str]) -> str:
    """Return an index page; the entry `*` becomes the pages of its folder that it does not list."""
    folder = os.path.dirname(page)
    blocks = re.findall(r"^```\{toctree\}\n.*?^```$", text, re.M | re.S)
    listed = {line.strip() for block in blocks for line in block.splitlines()}
    rest = sorted(
        Path(each).stem
        for each in known.values()
        if os.path.dirname(each) == folder and Path(each).stem not in {*listed, "index"}
    )
    for block in blocks:
        if "\n*\n" in block:
            filled = block.replace(":glob:\n", "").replace("\n*\n", "\n" + "\n".join(rest) + "\n")
            has_entries = re.search(r"^[^:`\s]", filled.partition("\n")[2], re.M)
            text = text.replace(block, filled if has_entries else "")
    return text


def tree_page(known: dict[str, str]) -> str:
    """Return the page that lists the READMEs of folders."""
    names = [page for page in known.values() if page.startswith("contributing/tree/")]
    entries = "\n".join(
        f"{page.removeprefix('contributing/tree/').removesuffix('/README.md')} "
        f"<{page.removeprefix('contributing/')}>"
        for page in sorted(names)
    )
    return (
        "# The source tree, folder by folder\n\nEach folder of the repository has a README. "
        "These pages are those files.\n\n"
        f"```{{toctree}}\n:maxdepth: 1\n\n{entries}\n```\n"
    )


def main() -> None:
    out = Path(sys.argv[1])
    shutil.rmtree(out, ignore_errors=True)
    known, missing = pages(), []
    for source, page in known.items():
        text, lost = rewrite((ROOT / source).read_text(), source, page, known)
        missing += lost
        if page.endswith("/index.md"):
            text = fill_index(text, page, known)
        (out / page).parent.mkdir(parents=True, exist_ok=True)
        (out / page).write_text(text)
    for path in sorted((ROOT / "docs").rglob("*")):
        name = path.relative_to(ROOT / "docs")
        if path.is_file() and path.suffix in (".png", ".svg", ".json") and name.parts[0] != "site":
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, out / name)
    (out / "contributing" / "tree.md").write_text(tree_page(known))
    top = sorted(page.removesuffix(".md") for page in known.values() if "/" not in page)
    with open(out / "reference" / "index.md", "a") as index:
        entries = "\n".join(f"/{each}" for each in top if each != "index")
        index.write(f"\n```{{toctree}}\n:maxdepth: 1\n\n{entries}\n```\n" if entries else "")
    shutil.copy(ROOT / "docs/site/conf.py", out / "conf.py")
    shutil.copytree(ROOT / "docs/site/_static", out / "_static")
    python_reference.write(out / "reference" / "python")
    cli_reference.write(out / "reference" / "cli")
    cpp_reference.write(out / "reference" / "cpp", ROOT / "actors/api/include/troupe")
    if missing:
        sys.exit("\n".join(missing))


if __name__ == "__main__":
    main()
