"""The code of a workload on its way to the nodes: a folder, a part of it, or what git has of it."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

from troupe._code import ignore_files, trees
from troupe.air._workload import Code

_REMEDY = "name what is not needed in .gitignore, or what is in code_source.include_paths"
_GIT_S = 300.0  # a fetch from a remote included


class Included:
    """Decide which paths of a folder stay behind: all outside of `include`, and what `.gitignore`
    names. Has the form of `ignore_files.Ignored`."""

    def __init__(self, root: str, include: tuple[str, ...]) -> None:
        self._ignored = ignore_files.Ignored(root)
        self._include = tuple(each.strip("/").removeprefix("./") for each in include)

    @property
    def left(self) -> list[str]:
        """The first few paths that `.gitignore` left behind."""
        return self._ignored.left

    @property
    def without_effect(self) -> dict[str, str]:
        """Lines of `.gitignore` that cannot bring back what they name, as of
        `ignore_files.Ignored`."""
        return self._ignored.without_effect

    def __call__(self, path: str) -> bool:
        """Return True if the path stays behind. Folders end with "/"."""
        bare = path.rstrip("/")
        inside = any(bare == each or bare.startswith(f"{each}/") for each in self._include)
        above = path.endswith("/") and any(each.startswith(f"{bare}/") for each in self._include)
        return not (inside or above) or self._ignored(path)


def package(code: Code, session: Any) -> dict[str, Any]:
    """Send the code to a worker of this host, and return where nodes find it.

    Only files that changed since the last time are sent.

    Raises:
        TooLargeError: with the largest files.
        ValueError: if git does not have what `code_source.git` names, with git's own words.
    """
    with _folder(code) as folder:
        include = code.include if folder == code.root else ()
        ignored: Any = Included(folder, include) if include else ignore_files.Ignored(folder)
        return trees.sent(
            folder,
            (),
            inside="",
            what="code_source",
            session=session,
            ignored=ignored,
            remedy=_REMEDY,
        )


@contextlib.contextmanager
def _folder(code: Code) -> Iterator[str]:
    """Give the folder that is sent: the workload's own, or a temporary one with what git has."""
    if not code.branch and not code.commit:
        yield code.root
        return
    commit = code.commit
    if code.remote:
        _git(code.root, "fetch", "--quiet", code.remote, code.branch)
        commit = "FETCH_HEAD"
    elif code.branch:
        commit = f"refs/heads/{code.branch}"
    found = _git(
        code.root,
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        f"{commit}^{{commit}}",
        what=code.commit or code.branch,
    )
    archive = _git(
        code.root,
        "archive",
        "--format=tar",
        found.decode().strip(),
        "--",
        *(code.include or (".",)),
    )
    with tempfile.TemporaryDirectory(prefix="troupe-air-") as folder:
        # tar keeps modes and links, and takes no path that leaves the folder. Python's own can
        # refuse such paths only from 3.11.4 on.
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        yield folder


def _git(root: str, *words: str, what: str = "") -> bytes:
    line = ["git", "-C", root, *words]
    try:
        done = subprocess.run(
            line, capture_output=True, timeout=_GIT_S, stdin=subprocess.DEVNULL, check=False
        )
    except FileNotFoundError:
        raise ValueError(
            "code_source.git needs the command git, which is not installed here"
        ) from None
    except subprocess.TimeoutExpired:
        raise ValueError(
            f"code_source.git: git {words[0]} gave no answer within {_GIT_S:.0f} s"
        ) from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip() or f"{root} has no {what!r}"
        raise ValueError(f"code_source.git: git {words[0]}: {said}")
    return done.stdout
