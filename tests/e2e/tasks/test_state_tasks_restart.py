"""Tasks are listed by a head that was started again: it remembers nothing of them, and those who
have some say so once more."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from conftest import TIMEOUT_S, Home, eventually

import troupe


@troupe.remote(num_cpus=1)
def hold(go: str) -> str:
    import threading

    pause = threading.Event()
    while not os.path.exists(go):
        pause.wait(0.01)
    return "held"


def test_a_head_that_was_started_again_asks_whoever_has_tasks(home: Home, tmp_path: Path) -> None:
    started = home.json("start", "--head", "--port", "0", "--num-cpus", "4")
    troupe.init(started["address"])
    refs = [hold.remote(str(tmp_path / "go"))]
    eventually(
        lambda: [each["name"] for each in troupe.state.list_tasks(everywhere=True)] == ["hold"],
        what="the task",
    )
    os.kill(home.json("status")["pid"], signal.SIGKILL)
    home.run("start", "--head")
    lists = (
        f"import troupe; troupe.init({started['address']!r}); print([each['name'] for each in "
        "troupe.state.list_tasks(everywhere=True)])"
    )
    eventually(
        lambda: home.python(lists).stdout.strip() == "['hold']",
        what="the task, as the new head's asker sees it",
    )
    (tmp_path / "go").touch()
    assert troupe.get(refs, timeout=TIMEOUT_S) == ["held"]
    troupe.shutdown()
