"""Folders that others could have put something into are not used; what is made is this user's
alone; packages are what they were.

Method: folders are prepared as another user, or a careless umask, would leave them, with a record
of a cluster planted whose socket leads to this test: real commands must say what is wrong and what
to do, and never come to that socket. Another user's is made by chown, which only root may.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import TIMEOUT_S, Home
from test_runtime_env import Look, get

import troupe

OTHER = 12345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make folders of another user")


@pytest.fixture
def place() -> Iterator[Path]:
    """A short folder that others may look into, as /srv would be."""
    folder = Path(tempfile.mkdtemp(prefix="tt-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def planted(root: Path, trap: Path) -> None:
    """Create the files a head would have left in this home, had it listened at `trap`; it seems to
    run."""
    cluster = root / "clusters" / ("a" * 32)
    cluster.mkdir(parents=True)
    (cluster / "head.json").write_text(
        json.dumps(
            {"cluster_id": "a" * 32, "address": "127.0.0.1:6400", "pid": 1, "socket": str(trap)}
        )
    )


def refused(home: Home, path: Path, *command: str) -> str:
    """Return the text of the command, which must refuse, as all the others would."""
    done = home.run(*command, ok=False, env={"TROUPE_HOME": str(path)})
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    return done.stderr


def test_PF1_a_home_that_others_may_write_to_is_refused_with_what_to_do(
    home: Home, place: Path
) -> None:
    trap = place / "trap.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(trap))
        listener.listen()
        listener.setblocking(False)
        mine = place / "home"
        planted(mine, trap)
        mine.chmod(0o777)
        for command in (
            ("status",),
            ("start", "--head", "--port", "0"),
            ("stop", "--all"),
            ("list", "nodes"),
        ):
            said = refused(home, mine, *command)
            assert (
                f"others may write to {mine} (mode 0777)" in said and f"chmod 700 {mine}" in said
            ), said
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert stat.S_IMODE(mine.stat().st_mode) == 0o777, "it stays as it was"


def test_PF2_an_empty_folder_and_one_that_others_may_read_are_used(home: Home, place: Path) -> None:
    empty = place / "empty"
    empty.mkdir()
    empty.chmod(0o777)
    home.run("status", ok=False, env={"TROUPE_HOME": str(empty)})
    assert stat.S_IMODE(empty.stat().st_mode) == 0o700, (
        "nothing can have been put there: it is closed"
    )
    kept = place / "kept"
    kept.mkdir()
    kept.chmod(0o755)
    (kept / "of-mine").touch()
    home.run("start", "--head", "--no-worker", "--port", "0", env={"TROUPE_HOME": str(kept)})
    try:
        assert stat.S_IMODE(kept.stat().st_mode) == 0o755, "it is kept for other things too"
        assert stat.S_IMODE((kept / "clusters").stat().st_mode) == 0o700
    finally:
        home.run("stop", "--all", env={"TROUPE_HOME": str(kept)})


def test_PF3_a_parent_that_everybody_may_write_to_needs_the_sticky_bit(
    home: Home, place: Path
) -> None:
    parent = place / "open"
    parent.mkdir()
    parent.chmod(0o777)
    said = refused(home, parent / "home", "start", "--head", "--port", "0")
    assert f"everybody may write to {parent}" in said and f"chmod +t {parent}" in said, said
    assert not (parent / "home").exists()
    (place / "link").symlink_to(parent / "home")
    assert f"everybody may write to {parent}" in refused(home, place / "link", "status"), (
        "a link leads there"
    )
    parent.chmod(0o1777)
    home.run("status", ok=False, env={"TROUPE_HOME": str(parent / "home")})
    assert stat.S_IMODE((parent / "home").stat().st_mode) == 0o700


@as_root
def test_PF4_folders_and_links_of_another_user_are_refused(home: Home, place: Path) -> None:
    theirs = place / "theirs"
    planted(theirs, place / "trap")
    theirs.chmod(0o700)
    os.chown(theirs, OTHER, OTHER)
    said = refused(home, theirs, "status")
    assert (
        f"{theirs} belongs to another user (uid {OTHER})" in said and "set TROUPE_HOME" in said
    ), said
    (place / "mine").mkdir(mode=0o700)
    link = place / "link"
    link.symlink_to(place / "mine")
    # A link of the user's own is followed
    home.run("status", ok=False, env={"TROUPE_HOME": str(link)})
    os.chown(link, OTHER, OTHER, follow_symlinks=False)
    said = refused(home, link, "status")
    assert f"{link} is a symbolic link of another user (uid {OTHER})" in said, said


@as_root
@pytest.mark.parametrize("program", ["head", "worker"])
def test_PF5_the_programs_look_at_the_folders_they_are_given(
    home: Home, place: Path, program: str
) -> None:
    sockets = place / "runtime" / "troupe"
    sockets.mkdir(parents=True)
    os.chown(sockets, OTHER, OTHER)
    env = {"XDG_RUNTIME_DIR": str(sockets.parent)}
    if program == "head":
        done = home.run("start", "--head", "--port", "0", ok=False, env=env)
    else:
        address = home.json("start", "--head", "--no-worker", "--port", "0")["address"]
        done = home.run(
            "start", "--address", address, "--token-file", home.token(), ok=False, env=env
        )
    assert (
        done.returncode == 1 and f"{sockets} belongs to another user (uid {OTHER})" in done.stderr
    ), done.stderr
    assert "XDG_RUNTIME_DIR" in done.stderr


def test_PF6_what_is_made_is_private_whatever_the_umask(home: Home, place: Path) -> None:
    for mask in (0o000, 0o077):
        root = place / f"home-{mask:o}"
        (place / f"run-{mask:o}").mkdir(mode=0o700)
        env = {
            **os.environ,
            "TROUPE_HOME": str(root),
            "XDG_RUNTIME_DIR": str(place / f"run-{mask:o}"),
        }
        shell = ["sh", "-c", f'umask {mask:o}; exec "$@"', "sh", sys.executable, "-m", "troupe"]
        started = subprocess.run(
            [*shell, "start", "--head", "--port", "0", "--num-cpus", "1"],
            env=env,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        try:
            assert started.returncode == 0, started.stderr
            for top in (root, Path(env["XDG_RUNTIME_DIR"])):
                folders = [top, *(each for each in top.rglob("*") if each.is_dir())]
                modes = {str(each): oct(stat.S_IMODE(each.stat().st_mode)) for each in folders}
                assert set(modes.values()) == {"0o700"}, modes
                files = {
                    str(each): stat.S_IMODE(each.stat().st_mode)
                    for each in top.rglob("*")
                    if each.is_file()
                }
                assert not [name for name, mode in files.items() if mode & 0o022], files
                for kind in ("journal.db", "journal.db-wal", "head.log", "worker.log"):
                    assert {mode for name, mode in files.items() if name.endswith(kind)} <= {
                        0o600
                    }, files
            assert list(root.rglob("journal.db")) and list(root.rglob("head.log"))
        finally:
            home.run(
                "stop",
                "--all",
                env={"TROUPE_HOME": str(root), "XDG_RUNTIME_DIR": env["XDG_RUNTIME_DIR"]},
            )


def test_PF7_a_package_that_was_changed_is_made_anew_and_who_uses_it_goes_on(
    home: Home, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "my_module.py").write_text("VALUE = 'of the project'")
    (project / "text.txt").write_text("as it was")
    address = home.json("start", "--head", "--no-worker", "--port", "0")["address"]
    home.run(
        "start",
        "--address",
        address,
        "--token-file",
        home.token(),
        "--num-cpus",
        "4",
        "--force-tcp",
    )
    with troupe.init(
        address,
        token_file=home.token("--role", "client"),
        runtime_env={"working_dir": str(project)},
    ):
        first = Look.remote()
        there = Path(get(first.cwd.remote()))
        (there / "my_module.py").write_text(
            "VALUE = 'of somebody'"
        )  # as long as the right one, nearly
        (there / "added.txt").write_text("by a program")
        second = Look.remote()
        assert get(second.value_of.remote("my_module")) == "of the project"
        assert get(second.cwd.remote()) == str(there)
        assert [each for each in get(second.listing.remote()) if "__pycache__" not in each] == [
            "my_module.py",
            "text.txt",
        ]
        assert get(first.read.remote("added.txt")) == "by a program", "it is still where it was"
        os.utime(there / "text.txt", (1, 1))  # touched, not changed
        (there / "added.txt").write_text("again")
        third = Look.remote()
        assert get(third.read.remote("added.txt")) == "again", "what is added is no reason"
