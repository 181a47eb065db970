"""A run of TorchDistributor that loses a node: it fails and names the node, and what is left of it
elsewhere ends.

Method: two workers in a home of their own; that of the second node is killed while both ranks wait.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import cloudpickle
import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually

import troupe
from troupe.spark import DeepspeedTorchDistributor, DistributorError

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def test_row_a_node_is_lost(home: Home, tmp_path: Path) -> None:
    head = home.json("start", "--head", "--no-worker", "--port", "0")
    for name in ("a", "b"):
        home.run(
            "start",
            "--address",
            head["address"],
            "--token-file",
            home.token(),
            "--node-name",
            name,
            "--num-cpus",
            "2",
            "--force-tcp",
        )
    troupe.init(head["address"])

    def train(folder: str) -> None:
        with open(f"{folder}/{os.environ['RANK']}", "w") as file:
            file.write(str(os.getpid()))
        threading.Event().wait()

    def lose() -> None:
        eventually(
            lambda: len(list(tmp_path.glob("[01]"))) == 2, what="both ranks", timeout=2 * TIMEOUT_S
        )
        (pid,) = [each["pid"] for each in troupe.state.list_nodes() if each["name"] == "b"]
        os.kill(pid, signal.SIGKILL)

    loses = threading.Thread(target=lose)
    loses.start()
    with pytest.raises(
        RuntimeError,
        match=r"^rank 1 was lost with its node on b[\s\S]*Command .* failed with return code ",
    ) as failed:
        DeepspeedTorchDistributor(numGpus=1, nnodes=2, localMode=False, useGpu=False).run(
            train, str(tmp_path)
        )
    loses.join()
    assert isinstance(failed.value, DistributorError) and failed.value.rank == 1
    pids = [int(each.read_text()) for each in tmp_path.glob("[01]")]
    eventually(
        lambda: not [pid for pid in pids if pid in home.processes()], what="the end of both ranks"
    )
