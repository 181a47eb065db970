"""`troupe submit` where no cluster is known: one is started for the launch; inside `troupe run` it
is the run's.

Method: the command itself in a TROUPE_HOME without a cluster; torchrun says how many threads a rank
has.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from e2e_conftest import Home
from submits import SAYS, printed, project, torchrun_in, troupe_in, two

WHERE = "import os\nprint(os.environ['RANK'])\n"
# In one go: torchrun's Pythons are unbuffered, and print() would write the end of the line by
# itself.
THREADS = "import sys, torch\nsys.stdout.write(f'{torch.get_num_threads()}\\n')\n"


@pytest.mark.long
def test_ranks_that_share_a_node_have_one_thread_and_a_lone_one_those_of_the_node_as_under_torchrun(
    home: Home, tmp_path: Path
) -> None:
    folder = project(tmp_path / "w", threads=THREADS)
    for ranks in ("1", "2"):
        torchrun = printed(
            torchrun_in(folder, "--standalone", "--nproc-per-node", ranks, "threads.py")
        )
        assert (
            printed(
                troupe_in(
                    folder, "torchrun", "--standalone", "--nproc-per-node", ranks, "threads.py"
                )
            )
            == torchrun
        )
    assert printed(troupe_in(folder, "submit", "--env", "OMP_NUM_THREADS=3", "threads.py")) == ["3"]


def test_without_a_cluster_one_is_started_and_ends_with_the_command(
    home: Home, tmp_path: Path
) -> None:
    folder = project(tmp_path / "w", says=SAYS)
    assert printed(troupe_in(folder, *two("says.py"))) == ["out 0", "out 1"]
    assert printed(
        troupe_in(
            folder,
            "torchrun",
            "--standalone",
            "--nproc_per_node=40",
            "--local-ranks-filter",
            "39",
            "says.py",
        )
    ) == ["out 39"]
    assert not home.processes()


def test_without_a_cluster_what_needs_one_says_how_to_get_it(home: Home, tmp_path: Path) -> None:
    folder = project(tmp_path / "w", says=SAYS)
    for words, said in (
        (["--detach", "says.py"], "troupe start --head"),
        (["--nnodes", "2", "--master-addr", "10.0.0.1", "says.py"], "troupe run --nodes 2"),
    ):
        done = troupe_in(folder, "submit", *words)
        assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
    broken = project(tmp_path / "v", broken="x = (\n")
    done = troupe_in(broken, *two("broken.py"))
    assert done.returncode == 1 and done.stderr.count("SyntaxError") == 1


def test_inside_troupe_run_it_finds_the_runs_cluster(home: Home, tmp_path: Path) -> None:
    folder = project(tmp_path / "w", where=WHERE)
    done = troupe_in(
        folder,
        "run",
        "--nodes",
        "1",
        "--",
        sys.executable,
        "-m",
        "troupe",
        "submit",
        "--nproc-per-node",
        "2",
        "where.py",
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["0", "1"]
