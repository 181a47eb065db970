"""`.gitignore` files of a directory that travels: what stays is what git itself leaves out.

Method: trees and lines drawn at random, and git's own answer for the same tree.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from troupe._code import ignore_files, listing

needs_git = pytest.mark.skipif(
    shutil.which("git") is None, reason="needs git, whose answer is compared"
)
NAMES = ("a.py", "b.log", "c.ckpt", "data", "keep", "wandb", "x y", "#d", "e.log")
LINES = (
    "*.log",
    "data",
    "data/",
    "/data",
    "/keep/",
    "wandb/",
    "!keep",
    "!b.log",
    "*",
    "!*/",
    "!*.py",
    "data/*",
    "!data/keep",
    "**/keep",
    "keep/**",
    "a?.py",
    "[ab].*",
    "#comment",
    r"\#d",
    "x y",
    r"x\ y",
    "*.ckpt ",
    "",
    "!",
    "sub/data",
    "/*.py",
    "**",
    "d*/k*",
    r"\!x",
    "*.l[o]g",
    "!/a.py",
    "#d",
    "*.log\r",
)


def git(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """git with no configuration but the folder's own."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    return subprocess.run(
        ["git", "-C", str(folder), *args],
        env=env,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


def of_git(folder: Path) -> set[str]:
    """Paths of the files that git would take."""
    return set(
        git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard").stdout.split(
            "\0"
        )
    ) - {""}


def ours(folder: Path, kept: tuple[str, ...] = ()) -> set[str]:
    return set(
        listing.files_of(
            str(folder),
            (),
            what="it",
            ignored=ignore_files.Ignored(str(folder), listing.matcher(kept)),
        )
    )


def a_tree(folder: Path, draw: random.Random) -> None:
    """Folders in folders, some with ignore files."""

    def fill(at: Path, depth: int) -> None:
        at.mkdir(parents=True, exist_ok=True)
        for name in draw.sample(NAMES, draw.randint(1, 6)):
            if depth < 3 and draw.random() < 0.45:
                fill(at / name, depth + 1)
            else:
                (at / name).write_text("x")
        if depth == 0 or draw.random() < 0.3:
            (at / ".gitignore").write_text(
                "\n".join(draw.sample(LINES, draw.randint(1, 5))) + draw.choice(["", "\n"])
            )

    fill(folder, 0)


@needs_git
@pytest.mark.parametrize("seed", range(6))
def test_what_stays_is_what_git_leaves_out(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    for number in range(12):
        folder = tmp_path / str(number)
        a_tree(folder, draw)
        assert git(folder, "init", "-q").returncode == 0
        lines = {
            str(path.relative_to(folder)): path.read_text() for path in folder.rglob(".gitignore")
        }
        taken = of_git(folder)
        assert ours(folder) == taken, lines
        for part in (path for path in folder.iterdir() if path.is_dir() and path.name != ".git"):
            if git(folder, "check-ignore", "-q", f"{part.name}/").returncode != 0:
                assert ours(part) == {
                    path.removeprefix(f"{part.name}/")
                    for path in taken
                    if path.startswith(f"{part.name}/")
                }, (part.name, lines)


def test_what_is_wanted_nevertheless_comes_with_all_that_is_in_it(tmp_path: Path) -> None:
    for path in ("data/deep/a.log", "data/b", "logs/c.log", "d.py", "e.log"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")
    (tmp_path / ".gitignore").write_text("data/\n*.log\nlogs\n")
    assert ours(tmp_path) == {".gitignore", "d.py"}
    assert ours(tmp_path, ("data",)) == {".gitignore", "d.py", "data/deep/a.log", "data/b"}
    assert ours(tmp_path, ("*.log",)) == {".gitignore", "d.py", "e.log"}, (
        "the folder that is left out is not looked into"
    )
    assert ours(tmp_path, ("*",)) == {
        ".gitignore",
        "d.py",
        "e.log",
        "data/deep/a.log",
        "data/b",
        "logs/c.log",
    }


def test_a_pattern_that_cannot_bring_back_what_is_in_a_folder_left_out_is_named_with_what_would(
    tmp_path: Path,
) -> None:
    for path in ("data/keep.csv", "data/other.csv", "logs/a/b.txt", "part/data/keep.csv", "d.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")

    def without_effect(lines: str, *wanted: str) -> dict[str, str]:
        (tmp_path / ".gitignore").write_text(lines)
        ignored = ignore_files.Ignored(str(tmp_path), listing.matcher(wanted), wanted=wanted)
        listing.files_of(str(tmp_path), (), what="it", ignored=ignored)
        return ignored.without_effect

    assert without_effect("data/\n!data/keep.csv\n") == {
        "!data/keep.csv": "data/"
    } and "data/keep.csv" not in ours(tmp_path)
    assert without_effect("logs\n!logs/*/b.txt\n!d.py\n") == {"!logs/*/b.txt": "logs/"}
    assert without_effect("data/\n", "data/keep.csv", "d.py") == {"!data/keep.csv": "data/"}
    assert (
        without_effect("data/*\n!data/keep.csv\n")
        == without_effect("data/\n", "data")
        == without_effect("data/\n!keep.csv\n")
        == {}
    )
    for lines in ("data/\n", "*\n"):
        assert without_effect(
            f"{lines}!/data/\n/data/*\n!data/keep.csv\n"
        ) == {} and "data/keep.csv" in ours(tmp_path), "what the warning says"


def test_without_a_repository_folders_above_do_not_count(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*\n")
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "a.py").write_text("x")
    assert ours(tmp_path / "part") == {"a.py"}


def test_the_first_that_are_left_out_are_named(tmp_path: Path) -> None:
    for name in ("data", "wandb"):
        (tmp_path / name).mkdir()
    (tmp_path / ".gitignore").write_text("data/\nwandb/\n*.log\n")
    for number in range(9):
        (tmp_path / f"{number}.log").write_text("x")
    ignored = ignore_files.Ignored(str(tmp_path))
    assert set(listing.files_of(str(tmp_path), (), what="it", ignored=ignored)) == {".gitignore"}
    assert len(ignored.left) == 6 and ignore_files.shown(ignored.left).endswith(", ...")
    assert ignore_files.shown(["data/", "a.log"]) == "data/, a.log"
