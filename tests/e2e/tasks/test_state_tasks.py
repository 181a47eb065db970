"""Tasks of a program that are under way: troupe.state.list_tasks, and Ray's list_tasks, get_task
and summarize_tasks."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from conftest import TIMEOUT_S, Home, eventually

import troupe
from troupe.util import state


@troupe.remote(num_cpus=4)
def hold(go: str, begun: str) -> int:
    Path(begun).write_text(str(os.getpid()))
    pause = threading.Event()
    while not os.path.exists(go):
        pause.wait(0.01)
    return os.getpid()


@troupe.remote(num_cpus=4)
def after(value: int) -> int:
    return value


@troupe.remote
def its_own(go: str, begun: str) -> list[str]:
    refs = [hold.remote(go, begun)]
    return [each["name"] for each in troupe.state.list_tasks()] if refs else []


def states() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in state.list_tasks():
        found.setdefault(each.name, []).append(each.state)
    return {name: sorted(each) for name, each in found.items()}


def test_tasks_are_listed_while_they_are_under_way(idle: Home, tmp_path: Path) -> None:
    assert state.list_tasks() == []
    go, begun = tmp_path / "go", [tmp_path / str(number) for number in range(3)]
    held = [hold.remote(str(go), str(each)) for each in begun]  # two have room on 8 CPUs
    behind = after.remote(held[0])
    pids = eventually(
        lambda: (
            [int(each.read_text()) for each in begun if each.exists() and each.read_text()][1:]
            and [int(each.read_text()) for each in begun if each.exists()]
        ),
        what="two that run",
    )
    assert states() == {
        "hold": ["PENDING_NODE_ASSIGNMENT", "RUNNING", "RUNNING"],
        "after": ["PENDING_ARGS_AVAIL"],
    }
    (node,) = state.list_nodes()
    running = state.list_tasks(filters=[("state", "=", "RUNNING")])
    assert {each.worker_pid for each in running} == set(pids) and {
        each.node_id for each in running
    } == {node.node_id}
    assert {each.worker_id for each in running} <= {
        each.worker_id for each in state.list_workers(limit=10_000)
    }
    assert running[0].required_resources == {"CPU": 4}
    assert (
        state.get_task(behind).state == "PENDING_ARGS_AVAIL"
        and state.get_task(behind.hex()).worker_pid is None
    )
    assert [each.task_id for each in state.list_tasks(limit=2)] == [each.hex() for each in held[:2]]
    assert state.summarize_tasks()["cluster"] == {
        "summary_by": "func_name",
        "total_tasks": 4,
        "summary": {
            "hold": {
                "func_or_class_name": "hold",
                "state_counts": {"RUNNING": 2, "PENDING_NODE_ASSIGNMENT": 1},
            },
            "after": {"func_or_class_name": "after", "state_counts": {"PENDING_ARGS_AVAIL": 1}},
        },
    }
    go.touch()
    assert troupe.get([*held, behind], timeout=TIMEOUT_S)[3] in pids
    assert state.list_tasks() == [] and state.get_task(behind) is None
    assert state.summarize_tasks()["cluster"]["total_tasks"] == 0


def test_many_quick_tasks_are_queued_with_their_process(idle: Home) -> None:
    quick = troupe.remote(num_cpus=8)(lambda: None)
    troupe.get([quick.remote() for _ in range(2000)], timeout=TIMEOUT_S)
    seen: set[str] = set()

    def both() -> bool:
        refs = [quick.remote() for _ in range(3000)]
        seen.update(each["state"] for each in troupe.state.list_tasks(limit=4000))
        del refs
        return {"running", "queued"} <= seen

    eventually(both, what="tasks behind others in their process")
    eventually(lambda: not state.list_tasks(), what="their end")


def test_a_task_has_tasks_of_its_own(idle: Home, tmp_path: Path) -> None:
    go = tmp_path / "go"
    assert troupe.get(its_own.remote(str(go), str(tmp_path / "begun")), timeout=TIMEOUT_S) == [
        "hold"
    ]
    go.touch()


def test_a_cancelled_task_is_not_listed(idle: Home, tmp_path: Path) -> None:
    refs = [
        hold.remote(str(tmp_path / "never"), str(tmp_path / str(number))) for number in range(4)
    ]
    for ref in refs:
        troupe.cancel(ref)
        with pytest.raises(troupe.exceptions.TaskCancelledError):
            troupe.get(ref, timeout=TIMEOUT_S)
    assert state.list_tasks() == []
