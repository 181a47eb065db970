"""A zygote that ends between its answer, which names a parked process, and giving that process its
request.

The window is made wide by a `sitecustomize` of the node's interpreters: the first request that a
zygote is about to give ends it instead, by SIGKILL, as somebody may. A rank, an actor and a store
are started so; nobody sees it but the log.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import Home, eventually, parked

import troupe
from troupe.launch import distributed

KILLED_WHILE_GIVING = """
import os, signal, sys
if "troupe._process.zygote" in sys.orig_argv:
    from troupe._process import prefork as _parked
    give = _parked.Child.give
    def kill_once(child, data, fds):
        try:
            os.close(os.open(os.environ["KILLED"], os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return give(child, data, fds)
        os.kill(os.getpid(), signal.SIGKILL)
    _parked.Child.give = kill_once
"""


@pytest.fixture
def killed(home: Home, tmp_path: Path) -> Path:
    """A cluster of one node; the file that a zygote makes when it ends at its first request."""
    (tmp_path / "sitecustomize.py").write_text(KILLED_WHILE_GIVING)
    (
        tmp_path / "hook-1.dist-info"
    ).mkdir()  # installed: the node's own interpreters have no other folder of PYTHONPATH
    file = tmp_path / "killed"
    os.environ["KILLED"] = str(file)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    troupe.init(home.json("start", "--head", "--port", "0", "--num-cpus", "4")["address"])
    eventually(lambda: len(parked(home)) >= 2, what="parked processes")
    return file


def test_ranks_whose_zygote_was_killed_before_it_gave_them_their_request_start_all_the_same(
    killed: Path,
) -> None:
    """The first that is given is the store's: nobody is started twice, so both ranks meet in one
    group."""

    def meet() -> tuple[int, int]:
        rank = int(os.environ["RANK"])
        return rank, int(os.environ["TROUPE_EPOCH"])

    assert distributed(processes=2, remote=True)(meet).distributed() == [(0, 1), (1, 1)]
    assert killed.exists()


def test_an_actor_whose_zygote_was_killed_before_it_gave_it_its_request_starts_all_the_same(
    killed: Path,
) -> None:
    class Counter:
        """Counts its calls; no restarts are left to it."""

        def count(self) -> int:
            self.calls = getattr(self, "calls", 0) + 1
            return self.calls

    actor = troupe.remote(Counter).remote()
    assert [troupe.get(actor.count.remote(), timeout=60) for _ in range(2)] == [1, 2]
    assert killed.exists()


def test_a_constructor_that_leaves_by_the_same_code_runs_once(home: Home, tmp_path: Path) -> None:
    """The exit code is the child's only where no user code has run in it: a constructor that has
    begun is not run again."""
    runs = tmp_path / "runs"

    class Leaves:
        """Leaves while it is made."""

        def __init__(self) -> None:
            from troupe._process import prefork

            with runs.open("a") as file:
                file.write("x")
            os._exit(prefork.NEVER_GIVEN)

    troupe.init(home.json("start", "--head", "--port", "0", "--num-cpus", "4")["address"])
    eventually(lambda: len(parked(home)) >= 2, what="parked processes")
    actor = troupe.remote(Leaves).remote()
    with pytest.raises(troupe.exceptions.ActorDiedError, match="79"):
        troupe.get(actor.__ray_ready__.remote(), timeout=60)
    assert runs.read_text() == "x"
