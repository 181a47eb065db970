"""Directories as they travel: what is looked at, what is read again, what another host makes of it.

Method: a worker's blobs in a dictionary, and a TROUPE_HOME of the test's own; what real nodes do
with it is in tests/doors/test_working_directory.py.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from troupe import exceptions
from troupe._cluster import workers
from troupe._code import ignore_files, listing, manifests, packages, trees
from troupe._code.listing import Look
from troupe.air import _code
from troupe.azure import _code_folder


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
        return None, {"found": data is not None}, (data or b"")[offset : offset + (4 << 20)]


@pytest.fixture
def blobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Blobs:
    found = Blobs()
    monkeypatch.setenv("TROUPE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(workers, "nearest", lambda session: {"node": "a" * 32})
    monkeypatch.setattr(workers, "link", lambda session, node: found)
    return found


@pytest.fixture
def home_folder(tmp_path: Path) -> Path:
    """The TROUPE_HOME, there."""
    (tmp_path / "home").mkdir(mode=0o700, exist_ok=True)
    return tmp_path / "home"


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
    return trees.sent(
        str(folder), excludes, inside="", what="runtime_env['working_dir']", session=None
    )


def settled_now(folder: Path) -> None:
    """Returns when the clock of the file system has gone on since the last change."""
    looks = listing.files_of(str(folder), (), what="it").values()
    while not all(trees.settled(look, time.time_ns()) for look in looks):
        time.sleep(0.01)  # lint-ok: the passing of this time is what is waited for


def made(package: dict[str, Any]) -> dict[str, bytes]:
    folder = Path(trees.made(package, "it", object()))
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


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
    data = blobs.kept.pop(
        large
    )  # the other host does not fetch files that it has from an earlier directory
    assert made(second) == contents(project)
    assert sent(project)["tree"] == second["tree"], "a worker that has lost a pack is sent it again"
    assert any(len(each) >= len(data) // 2 for each in blobs.kept.values())


def test_an_edit_of_the_same_size_with_its_time_put_back_is_noticed(
    blobs: Blobs, project: Path
) -> None:
    settled_now(project)
    first, before = sent(project), (project / "a.py").stat()
    (project / "a.py").write_text("A = 9\n")
    os.utime(project / "a.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    after = (project / "a.py").stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (
        before.st_size,
        before.st_mtime_ns,
        before.st_ino,
    )
    second = sent(project)
    assert second["tree"] != first["tree"] and made(second)["a.py"] == b"A = 9\n"


def test_what_is_known_is_not_read_again(blobs: Blobs, project: Path) -> None:
    settled_now(project)
    first = sent(project)
    for path in project.rglob("*"):
        if path.is_file():
            path.chmod(path.stat().st_mode & 0o777)  # the time of the last change is another
    sent(project)
    settled_now(project)
    sent(project)
    known = trees._read(trees._remembered_in(str(project), (), "", "a" * 32))
    assert trees.changed(listing.files_of(str(project), (), what="it"), known) == []
    assert first["tree"] == sent(project)["tree"]


@pytest.mark.parametrize(
    ("ctime_ns", "read_ns", "trusted"),
    [
        (1_000_000_001, 1_000_000_002, False),
        (1_000_000_001, 1_200_000_000, True),
        (5_000_000_000, 6_000_000_000, False),
        (5_000_000_000, 7_500_000_000, True),
        (9_000_000_001, 1_000_000_000, False),
    ],
)
def test_a_file_changed_just_before_it_was_read_is_read_again(
    ctime_ns: int, read_ns: int, trusted: bool
) -> None:
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


@pytest.mark.parametrize(
    "pattern",
    [
        "*.py",
        "data",
        "data/",
        "data/deep",
        "data*b.bin",
        "d?ta",
        "[ad]*",
        "*",
        "empty",
        "*p*y",
        "deep/b.bin",
        "x",
        "*deep*",
    ],
)
def test_what_is_left_out_is_what_fnmatch_says(pattern: str) -> None:
    from fnmatch import fnmatch

    excluded = listing.matcher((pattern,))
    for path in (
        "a.py",
        "data",
        "data/deep",
        "data/deep/b.bin",
        "data/1b.bin",
        "empty",
        "x/a.py",
        "xpay",
    ):
        name = path.rpartition("/")[2]
        assert excluded(path, name) == (
            fnmatch(path, pattern.strip("/")) or fnmatch(name, pattern.strip("/"))
        ), path


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
    assert (
        "checkpoints/step0.pt (3.0 GiB)" in text
        and "checkpoints/ (5.0 GiB in 3 files)" in text
        and "'excludes': ['checkpoints']" in text
    )
    sent(project, "checkpoints")


def hostile(
    blobs: Blobs, change: Callable[[dict[str, Any]], None], *, renamed: bool = True
) -> dict[str, Any]:
    """Return the package of a caller that changes the list of files; `renamed`: under the name of
    the changed list."""
    package = sent_of({"a.py": b"A = 1\n"}, blobs)
    manifest = json.loads(blobs.kept[bytes.fromhex(package["sha256"])])
    change(manifest)
    data = json.dumps(manifest).encode()
    digest = hashlib.sha256(data).digest()
    blobs.kept[digest] = data
    tree = manifests.name_of(manifest["files"]) if renamed else package["tree"]
    return {**package, "sha256": digest.hex(), "size_bytes": len(data), "tree": tree}


def sent_of(files: dict[str, bytes], blobs: Blobs) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(dir=os.environ["TROUPE_HOME"]))
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return sent(folder)


def row(number: int, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(manifest: dict[str, Any]) -> None:
        manifest["files"][0][number] = value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (row(0, "../outside"), "no path inside"),
        (row(0, "/etc/outside"), "no path inside"),
        (row(0, "a//b"), "no path inside"),
        (row(0, "a/../../b"), "no path inside"),
        (row(0, "."), "no path inside"),
        (row(0, 5), "a row that is none"),
        (row(1, "x"), "a row that is none"),
        (row(2, 1 << 40), "more than may travel"),
        (row(3, "../a"), "where its content is"),
        (row(4, 1), "where its content is"),
        (row(4, -1), "a row that is none"),
        (lambda manifest: manifest["files"].append(manifest["files"][0]), "a path twice"),
        (lambda manifest: manifest.pop("packs"), "cannot be read"),
        (row(3, "0" * 64), "no item named"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_nothing_of_a_list_of_files_is_believed_unchecked(
    blobs: Blobs, home_folder: Path, change: Any, words: str
) -> None:
    """A row of a pack that is not there was never written, and yet its path's mode was set: outside
    of the folder, too."""
    outside = home_folder / "outside"
    outside.write_text("mine")
    outside.chmod(0o400)
    with pytest.raises(ValueError, match=words):
        made(hostile(blobs, change))
    assert outside.stat().st_mode & 0o777 == 0o400


def test_a_content_that_is_not_its_digest_reaches_no_other_directory(
    blobs: Blobs, home_folder: Path
) -> None:
    """The digest is by which other directories of the host take a content from this one."""
    wanted = sent_of({"model.py": b"right\n"}, blobs)
    rows = json.loads(blobs.kept[bytes.fromhex(wanted["sha256"])])["files"]
    with pytest.raises(ValueError, match="not what the list of files says"):
        pack = io.BytesIO()
        with zipfile.ZipFile(pack, "w") as opened:
            opened.writestr(rows[0][3], b"wrong\n")
        digest = hashlib.sha256(pack.getvalue()).digest()
        blobs.kept[digest] = pack.getvalue()
        made(
            hostile(
                blobs,
                lambda manifest: manifest.update(
                    files=rows, packs=[[digest.hex(), len(pack.getvalue())]]
                ),
            )
        )
    assert made(wanted) == {"model.py": b"right\n"}
    with pytest.raises(ValueError, match="not that of"):
        made(hostile(blobs, row(0, "b.py"), renamed=False))
    with pytest.raises(ValueError, match="no name of a directory"):
        made({**wanted, "tree": "../" * 20})


def test_a_file_that_is_written_to_while_it_is_sent_arrives_whole_as_it_was_read(
    blobs: Blobs, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at a file and its reading a log grows, another file is written anew, a third
    is gone, a fourth has become a FIFO."""
    (project / "run.log").write_text("one\n")
    (project / "gone").write_text("x")
    (project / "pipe").write_text("x")
    (project / "left").mkdir()
    (project / "left" / "x").write_text("x")
    looked = listing.files_of

    def look_then_write(*args: Any, **more: Any) -> dict[str, Look]:
        found = looked(*args, **more)
        with (project / "run.log").open("a") as log:
            log.write("two\n")
        (project / "a.py").write_text("A = 22222\n")
        (project / "gone").unlink()
        (project / "pipe").unlink()
        os.mkfifo(project / "pipe")
        shutil.rmtree(project / "left")
        return found

    monkeypatch.setattr(listing, "files_of", look_then_write)
    package = sent(project)
    monkeypatch.setattr(listing, "files_of", looked)
    arrived = made(package)
    assert {
        name: data
        for name, data in arrived.items()
        if name in ("run.log", "a.py", "gone", "pipe", "left/x")
    } == {"run.log": b"one\ntwo\n", "a.py": b"A = 22222\n"}
    assert (package["files"], package["bytes"]) == (len(arrived), sum(map(len, arrived.values())))
    (project / "pipe").unlink()
    assert made(sent(project)) == contents(project)


def test_a_file_that_grows_over_the_limit_while_it_is_read_is_named(
    blobs: Blobs, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = listing.files_of

    def look_then_limit(*args: Any, **more: Any) -> dict[str, Look]:
        found = looked(*args, **more)
        monkeypatch.setattr(listing, "BYTES_MAX", 100_000)
        return found

    monkeypatch.setattr(listing, "files_of", look_then_limit)
    with pytest.raises(exceptions.TooLargeError, match=r"while it was read: data/deep/b\.bin"):
        sent(project)


def test_left_overs_and_what_is_over_the_limit_go_and_what_is_used_stays(
    blobs: Blobs, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_pattern_without_effect_is_a_warning_of_what_is_sent(blobs: Blobs, project: Path) -> None:
    (project / ".gitignore").write_text("data/\n!data/deep/b.bin\n")
    with pytest.warns(
        UserWarning,
        match=r"!data/deep/b\.bin has no effect: .* leaves out the folder data/(.|\n)*the lines !/data/ and /data/\*",
    ):
        package = trees.sent(
            str(project),
            (),
            inside="",
            what="it",
            session=None,
            ignored=ignore_files.Ignored(str(project)),
        )
    assert set(made(package)) == {".gitignore", "a.py", "empty"}


DOORS = {
    "runtime_env": (lambda folder: sent(Path(folder)), "excludes"),
    "azure": (lambda folder: _code_folder.package(folder, None), ".amlignore"),
    "air": (lambda folder: _code.package(_code.Code(root=folder), None), ".gitignore"),
}


def too_much(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "BYTES_MAX", 1000)


def a_folder_that_cannot_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scandir = os.scandir

    def refused(path: str) -> Any:
        if path.endswith("deep"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)


def a_file_that_cannot_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def refused(path: Any, *rest: Any, **more: Any) -> int:
        if str(path).endswith("b.bin"):
            raise PermissionError(13, "Permission denied", path)
        return opened(path, *rest, **more)

    monkeypatch.setattr(os, "open", refused)


def a_file_that_grows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "BYTES_MAX", 301_000)
    read = trees.contents

    def grown(path: str, *rest: Any) -> Any:
        with open(path, "ab") as file:
            file.write(b"x" * 300_000)
        return read(path, *rest)

    monkeypatch.setattr(trees, "contents", grown)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "wrong",
    [too_much, a_folder_that_cannot_be_read, a_file_that_cannot_be_read, a_file_that_grows],
    ids=lambda each: each.__name__,
)
def test_each_refusal_names_what_its_own_door_takes(
    blobs: Blobs, project: Path, monkeypatch: pytest.MonkeyPatch, door: str, wrong: Callable
) -> None:
    package, takes = DOORS[door]
    wrong(project, monkeypatch)
    with pytest.raises((exceptions.TooLargeError, PermissionError)) as refused:
        package(str(project))
    said = str(refused.value)
    assert {each for _, each in DOORS.values() if each in said} == {takes}, said
