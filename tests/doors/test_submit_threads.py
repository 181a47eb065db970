"""How many threads torch has in a rank of `troupe submit`: as many as under torchrun.

Method: both commands itself. Each has a cluster of its own (`--standalone`), so that these are apart from tests that share one.
"""
from __future__ import annotations

from pathlib import Path

from e2e_conftest import Home
from submits import printed, project, torchrun_in, troupe_in

THREADS = "import torch\nprint(torch.get_num_threads())\n"


def test_ranks_that_share_a_node_have_one_thread_and_a_lone_one_those_of_the_node_as_under_torchrun(home: Home, tmp_path: Path) -> None:
    folder = project(tmp_path / "w", threads=THREADS)
    for ranks in ("1", "2"):
        torchrun = printed(torchrun_in(folder, "--standalone", "--nproc-per-node", ranks, "threads.py"))
        assert printed(troupe_in(folder, "torchrun", "--standalone", "--nproc-per-node", ranks, "threads.py")) == torchrun
    assert printed(troupe_in(folder, "submit", "--env", "OMP_NUM_THREADS=3", "threads.py")) == ["3"]
