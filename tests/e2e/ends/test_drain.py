"""A node that is told to leave: the code of its ranks has time for a last word, and its caller is
told why.

Method: a head and one worker, which gets SIGTERM while two ranks wait there; the ranks' code is
that of test_stopping.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from conftest import Home
from test_stopping import caught, runs


def test_ranks_of_a_node_that_leaves_have_time_for_a_last_word(home: Home, tmp_path: Path) -> None:
    head = home.json("start", "--head", "--no-worker", "--port", "0")
    node = home.json(
        "start",
        "--address",
        head["address"],
        "--token-file",
        home.token(),
        "--node-name",
        "leaves",
        "--num-cpus",
        "2",
    )
    code = f"""
import sys
sys.path[:0] = {[str(each) for each in Path(__file__).parents[:2]]!r}
import cloudpickle, test_stopping, troupe
from troupe.launch import distributed
cloudpickle.register_pickle_by_value(test_stopping)
troupe.init({head["address"]!r})
try:
    distributed(processes=2, remote=True)(test_stopping.wait).submit({str(tmp_path)!r}).result(120)
except Exception as error:
    print("failed:", str(error).splitlines()[0], flush=True)
"""
    driver = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    runs(tmp_path, 2)
    os.kill(node["pid"], signal.SIGTERM)
    out, _ = driver.communicate(timeout=120)
    assert "failed:" in out and "leaves" in out, out
    assert caught(tmp_path) == ["SystemExit(143)"] * 2
    assert len(list(tmp_path.glob("*.checkpoint"))) == 2
