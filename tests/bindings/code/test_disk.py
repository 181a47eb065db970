"""Files that come whole or not at all, and what is said where they cannot be written.

Method: errors that are raised inside the block, as a file system would; real full ones are in
tests/doors/every_door.
"""

from __future__ import annotations

import errno
import os
import shutil
import types
from pathlib import Path

import pytest

from troupe import exceptions
from troupe._code import disk


def names(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*"))


def test_what_arrives_is_there_in_one_go_beside_and_over_what_was(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/a").write_text("old")
    with disk.arriving(tmp_path / "there", "the output") as made:
        (made / "a").write_text("new")
        (made / "sub").mkdir()
        (made / "sub/b").write_text("b")
        assert (tmp_path / "there/a").read_text() == "old"
    assert (
        names(tmp_path / "there") == ["a", "sub", "sub/b"]
        and (tmp_path / "there/a").read_text() == "new"
    )


def test_nothing_is_left_of_what_fails_on_its_way(tmp_path: Path) -> None:
    with pytest.raises(KeyError), disk.arriving(tmp_path / "one/two", "the output") as made:
        (made / "a").write_text("new")
        raise KeyError
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("there", "comes", "kind"), [("a/b", "a", IsADirectoryError), ("a", "a/b", NotADirectoryError)]
)
def test_a_file_in_the_place_of_a_folder_is_refused_before_anything_is_moved(
    tmp_path: Path, there: str, comes: str, kind: type[Exception]
) -> None:
    for folder in (tmp_path / there, tmp_path / "0"):
        folder.parent.mkdir(exist_ok=True)
    (tmp_path / there).write_text("")
    with (
        pytest.raises(
            kind, match="the output: .*/a is a .* here, and a .* there: remove or rename it"
        ),
        disk.arriving(tmp_path, "the output") as made,
    ):
        (made / "0").write_text("")
        (made / comes).parent.mkdir(exist_ok=True)
        (made / comes).write_text("")
    assert names(tmp_path) == sorted({there, there.split("/")[0]})


WORDS = [
    (
        OSError(errno.ENOSPC, "full"),
        exceptions.OutOfDiskError,
        r"No space left on device\n  it needs 5 bytes, and .* is free there",
    ),
    (
        OSError(errno.EDQUOT, "quota"),
        exceptions.OutOfDiskError,
        r"Disk quota exceeded\n  it needs 5 bytes, and this user's quota there is used up",
    ),
    (
        OSError(errno.EROFS, "read-only"),
        exceptions.TroupeError,
        r"Read-only file system\n  give another",
    ),
    (
        shutil.Error([("a", "b", "[Errno 28] No space left on device: 'b'")]),
        exceptions.OutOfDiskError,
        "No space left on device",
    ),
]


@pytest.mark.parametrize(
    ("raised", "kind", "words"),
    WORDS,
    ids=[kind.__name__ + str(number) for number, (_, kind, _) in enumerate(WORDS)],
)
def test_what_cannot_be_written_is_named_with_host_cause_and_what_to_do(
    tmp_path: Path, raised: OSError, kind: type[Exception], words: str
) -> None:
    with (
        pytest.raises(
            kind,
            match=rf"the output cannot be written to {tmp_path} on {os.uname().nodename}: {words}",
        ) as said,
        disk.writing("the output", tmp_path, needed=5, remedy="give another"),
    ):
        raise raised
    assert isinstance(said.value, OSError) and str(said.value).endswith("\n  give another")


def test_what_is_not_of_the_disk_goes_through(tmp_path: Path) -> None:
    """A lost connection, a source that may not be read, an error that is named already."""
    for raised in (
        ConnectionResetError(errno.ECONNRESET, "reset"),
        PermissionError(errno.EACCES, "no", "/elsewhere/source"),
        OSError("text"),
        KeyError("x"),
    ):
        with pytest.raises(type(raised)) as said, disk.writing("the output", tmp_path):
            raise raised
        assert said.value is raised
    with (
        pytest.raises(exceptions.OutOfDiskError, match="^the inner") as named,
        disk.writing("the outer", tmp_path),
        disk.writing("the inner", tmp_path),
    ):
        raise OSError(errno.ENOSPC, "full")
    assert "the outer" not in str(named.value)


def test_no_inode_is_no_room() -> None:
    system = types.SimpleNamespace(
        f_bavail=1 << 20, f_blocks=1 << 21, f_frsize=4096, f_files=9, f_favail=0
    )
    assert (
        disk.room(system)
        == "4.0 GiB of 8.0 GiB is free there, and no file more can be made: all 9 inodes are used"
    )
    assert disk.free_in("pip: it failed", "/") == ""
    assert disk.free_in("OSError: [Errno 28] No space left on device", "/tmp").startswith(
        "/tmp on "
    )


def test_a_copy_is_whole_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "from/sub").mkdir(parents=True)
    (tmp_path / "from/sub/a").write_text("a")
    (tmp_path / "from/link").symlink_to("sub/a")

    def full(source: str, target: str) -> None:
        raise OSError(errno.ENOSPC, "full", target)

    with pytest.raises(exceptions.OutOfDiskError, match="it needs .* bytes, and"):
        disk.copy_tree(tmp_path / "from", tmp_path / "to", "the code", copy=full)
    assert not (tmp_path / "to").exists()
    disk.copy_tree(tmp_path / "from", tmp_path / "to", "the code", symlinks=True)
    assert (
        names(tmp_path / "to") == ["link", "sub", "sub/a"] and (tmp_path / "to/link").is_symlink()
    )
