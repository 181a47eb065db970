"""Directories as they travel: what is looked at, what is read again, what another host makes of it.

Method: a worker's blobs in a dictionary, and a TROUPE_HOME of the test's own; what real nodes do with it is in
tests/doors/test_working_directory.py.
"""
from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from troupe import exceptions
from troupe._cluster import workers
from troupe._code import listing, packages, trees
from troupe._code.listing import Look


class Blobs:
    """The link to a worker that keeps what it is given."""

    def __init__(self) -> None:
        self.name = "node-a"
        self.kept: dict[bytes, bytes] = {}

    def request(self, kind: str, fields: dict, attachment: bytes = b"") -> tuple:
        digest, offset = fields["sha256"], fields["offset"]
        if kind == "PutBlob":
            self.kept[digest] = (self.kept.get(digest, b"") if offset else b"") + attachment
            return None, {}, b""
        data = self.kept.get(digest)
        return None, {"found": data is not None}, (data or b"")[offset:offset + (4 << 20)]


@pytest.fixture
def blobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Blobs:
    found = Blobs()
    monkeypatch.setenv("TROUPE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(workers, "nearest", lambda session: {"node": "a" * 32})
    monkeypatch.setattr(workers, "link", lambda session, node: found)
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Three files, of which none was changed just now as far as their times say."""
    folder = tmp_path / "project"
    (folder / "data" / "deep").mkdir(parents=True)
    (folder / "a.py").write_text("A = 1\n")
    (folder / "data" / "deep" / "b.bin").write_bytes(os.urandom(300_000))
    (folder / "empty").write_text("")
    return folder


def sent(folder: Path, *excludes: str) -> dict[str, Any]:
    return trees.sent(str(folder), excludes, inside="", what="runtime_env['working_dir']", session=None)


def settled_now(folder: Path) -> None:
    """Returns when the clock of the file system has gone on since the last change."""
    looks = listing.files_of(str(folder), (), what="it").values()
    while not all(trees.settled(look, time.time_ns()) for look in looks):
        time.sleep(0.01)  # lint-ok: the passing of this time is what is waited for


def made(package: dict[str, Any]) -> dict[str, bytes]:
    folder = Path(trees.made(package, "it", object()))
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_directory_arrives_as_it_is_and_is_not_sent_again(blobs: Blobs, project: Path) -> None:
    (project / "a.py").chmod(0o755)
    first = sent(project)
    assert made(first) == contents(project) and (first["files"], first["bytes"]) == (3, 300_006)
    assert os.access(Path(trees.made(first, "it", object()), "a.py"), os.X_OK)
    kept = dict(blobs.kept)
    assert sent(project) == first and blobs.kept == kept


def test_only_what_changed_travels_and_is_fetched(blobs: Blobs, project: Path) -> None:
    made(sent(project))
    before = set(blobs.kept)
    (project / "a.py").write_text("A = 2\n")
    second = sent(project)
    new = {digest: data for digest, data in blobs.kept.items() if digest not in before}
    assert sum(len(data) for data in new.values()) < 5_000
    large = max(blobs.kept, key=lambda digest: len(blobs.kept[digest]))
    data = blobs.kept.pop(large)  # what the other host has of an earlier directory it does not fetch
    assert made(second) == contents(project)
    assert sent(project)["tree"] == second["tree"], "a worker that has lost a pack is sent it again"
    assert any(len(each) >= len(data) // 2 for each in blobs.kept.values())


def test_an_edit_of_the_same_size_with_its_time_put_back_is_noticed(blobs: Blobs, project: Path) -> None:
    settled_now(project)
    first, before = sent(project), (project / "a.py").stat()
    (project / "a.py").write_text("A = 9\n")
    os.utime(project / "a.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    after = (project / "a.py").stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)
    second = sent(project)
    assert second["tree"] != first["tree"] and made(second)["a.py"] == b"A = 9\n"


def test_what_is_known_is_not_read_again(blobs: Blobs, project: Path) -> None:
    settled_now(project)
    first = sent(project)
    for path in project.rglob("*"):
        if path.is_file():
            path.chmod(0o644 if path.stat().st_mode & 0o777 == 0o644 else 0o640)  # the time of the last change is another
    sent(project)
    settled_now(project)
    sent(project)
    known = trees._read(trees._remembered_in(str(project), (), "", "a" * 32))
    assert trees.changed(listing.files_of(str(project), (), what="it"), known) == []
    assert first["tree"] == sent(project)["tree"]


@pytest.mark.parametrize(("ctime_ns", "read_ns", "trusted"), [
    (1_000_000_001, 1_000_000_002, False), (1_000_000_001, 1_200_000_000, True),
    (5_000_000_000, 6_000_000_000, False), (5_000_000_000, 7_500_000_000, True), (9_000_000_001, 1_000_000_000, False)])
def test_a_file_changed_just_before_it_was_read_is_read_again(ctime_ns: int, read_ns: int, trusted: bool) -> None:
    assert trees.settled(Look(1, 2, 3, ctime_ns, 0o644), read_ns) is trusted


def test_links_and_what_is_left_out(blobs: Blobs, project: Path) -> None:
    (project / "link.py").symlink_to(project / "a.py")
    (project / "to_folder").symlink_to(project / "data")
    (project / "nowhere").symlink_to(project / "no_such")
    os.mkfifo(project / "pipe")
    (project / "__pycache__").mkdir()
    (project / "__pycache__" / "a.pyc").write_text("")
    assert set(made(sent(project, "data/deep"))) == {"a.py", "empty", "link.py"}
    assert set(made(sent(project, "*.py", "deep/"))) == {"empty"}


@pytest.mark.parametrize("pattern", ["*.py", "data", "data/", "data/deep", "data*b.bin", "d?ta", "[ad]*", "*", "empty", "*p*y", "deep/b.bin", "x", "*deep*"])
def test_what_is_left_out_is_what_fnmatch_says(pattern: str) -> None:
    from fnmatch import fnmatch

    excluded = listing.matcher((pattern,))
    for path in ("a.py", "data", "data/deep", "data/deep/b.bin", "data/1b.bin", "empty", "x/a.py", "xpay"):
        name = path.rpartition("/")[2]
        assert excluded(path, name) == (fnmatch(path, pattern.strip("/")) or fnmatch(name, pattern.strip("/"))), path


def test_many_edits_make_no_endless_chain_of_packs(blobs: Blobs, project: Path) -> None:
    for number in range(trees.PACKS_MAX + 3):
        (project / f"file{number}").write_text(str(number))
        package = sent(project)
    known = trees._read(trees._remembered_in(str(project), (), "", "a" * 32))
    assert len(known["packs"]) <= trees.PACKS_MAX and made(package) == contents(project)


def test_what_is_too_large_is_refused_before_anything_is_read(blobs: Blobs, project: Path) -> None:
    (project / "checkpoints").mkdir()
    for number, size in enumerate((3 << 30, 1 << 30, 1 << 30)):
        with open(project / "checkpoints" / f"step{number}.pt", "wb") as file:
            file.truncate(size)
    with pytest.raises(exceptions.TooLargeError) as caught:
        sent(project)
    text = str(caught.value)
    assert "has over 256 MiB" in text and "5.0 GiB in 6 files" in text and not blobs.kept
    assert "checkpoints/step0.pt (3.0 GiB)" in text and "checkpoints/ (5.0 GiB in 3 files)" in text and "'excludes': ['checkpoints']" in text
    sent(project, "checkpoints")


@pytest.mark.parametrize("path", ["../outside", "/etc/outside", "a//b", "a/../../b"])
def test_no_path_leads_out_of_the_folder(blobs: Blobs, tmp_path: Path, path: str) -> None:
    with pytest.raises(ValueError, match="no path inside"):
        trees._Row(path, 0o644, 1, "digest", 0).place(tmp_path / "inner")


def test_left_overs_and_what_is_over_the_limit_go_and_what_is_used_stays(blobs: Blobs, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(folder: Path) -> None:
        (folder / "file").write_bytes(b"x" * 1000)

    left = packages.cache() / "pip-killed"
    left.mkdir()
    (left / "half").write_text("")
    used = packages.made_once("a-used", make, "it")
    assert not left.exists() and used.exists(), "one that was never finished, and that nobody makes"
    packages.made_once("b-unused", make, "it")
    packages._in_use.pop()  # as at the end of the process that used it
    _close_last(packages.cache() / "b-unused.use")
    monkeypatch.setenv("TROUPE_CACHE_GIB", str(1500 / 2**30))
    latest = packages.made_once("c-latest", make, "it")
    assert used.exists() and latest.exists() and not (packages.cache() / "b-unused").exists()


def _close_last(file: Path) -> None:
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{descriptor}") == str(file):
                os.close(int(descriptor))
        except OSError:
            continue
