"""Options of actor methods through real processes: several returns, limits, Ray's special methods,
handles."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from conftest import Home, eventually, running

import troupe
from troupe import exceptions


@troupe.remote
class Tool:
    """Methods with options."""

    def __init__(self, note: str = "") -> None:
        self.note = note
        self.gate = threading.Event()

    @troupe.method(num_returns=2)
    def halves(self, items: list) -> tuple:
        middle = len(items) // 2
        return items[:middle], items[middle:]

    def several(self, count: int) -> list:
        return list(range(count))

    def half_good(self) -> tuple:
        return 1, threading.Lock()

    def fail(self) -> None:
        raise KeyError("nothing here")

    def wait_for(self, path: str) -> str:
        while not os.path.exists(path):
            self.gate.wait(0.01)
        return path

    def pid(self) -> int:
        return os.getpid()

    def __ray_shutdown__(self) -> None:
        if self.note:
            Path(self.note).write_text("bye")


@pytest.fixture
def tool(idle: Home):
    """An actor, killed after the test."""
    made = Tool.remote()
    yield made
    troupe.kill(made)


def test_a_method_with_several_returns(tool) -> None:
    first, second = tool.halves.remote([1, 2, 3, 4])
    assert troupe.get(second, timeout=20) == [3, 4] and troupe.get(first) == [1, 2]
    refs = tool.several.options(num_returns=3).remote(3)
    assert isinstance(refs, list) and troupe.get(refs, timeout=20) == [0, 1, 2]
    assert len({ref.hex() for ref in refs}) == 3 == len(set(refs))
    assert tool.several.options(num_returns=0).remote(1) is None
    assert troupe.get(tool.several.options(num_returns=1).remote(2), timeout=20) == [0, 1]
    ready, rest = troupe.wait(
        tool.several.options(num_returns=4).remote(4), num_returns=4, timeout=20
    )
    assert len(ready) == 4 and not rest
    assert troupe.get(tool.halves.options(num_returns=1).remote([1, 2]), timeout=20) == ([1], [2])


def test_a_wrong_number_of_values_is_an_error_of_each(tool) -> None:
    for ref in tool.several.options(num_returns=3).remote(2):
        with pytest.raises(ValueError, match="Task returned 2 objects, but num_returns=3"):
            troupe.get(ref, timeout=20)
    for ref in tool.pid.options(num_returns=2).remote():
        with pytest.raises(ValueError, match="Task returned a int, but num_returns=2"):
            troupe.get(ref, timeout=20)
    for ref in tool.fail.options(num_returns=2).remote():
        with pytest.raises(KeyError, match="nothing here"):
            troupe.get(ref, timeout=20)
    good, bad = tool.half_good.options(num_returns=2).remote()
    assert troupe.get(good, timeout=20) == 1
    with pytest.raises(TypeError, match="pickle"):
        troupe.get(bad, timeout=20)


def test_several_returns_of_an_actor_that_is_not_there_yet(idle: Home) -> None:
    early = Tool.remote()
    first, second = early.halves.remote([1, 2])
    assert troupe.get([first, second], timeout=20) == [[1], [2]]
    pid = troupe.get(early.pid.remote())
    os.kill(pid, 9)
    for ref in early.halves.remote([1, 2]):
        with pytest.raises(exceptions.ActorDiedError):
            troupe.get(ref, timeout=20)


def test_misuse_of_method_options(tool) -> None:
    for wrong, name in (
        ({"num_returns": -1}, "num_returns"),
        ({"num_returns": "many"}, "num_returns"),
        ({"max_task_retries": -2}, "max_task_retries"),
        ({"colour": 1}, "colour"),
        ({"concurrency_group": ""}, "concurrency_group"),
        ({"retry_exceptions": [3]}, "retry_exceptions"),
    ):
        with pytest.raises(ValueError, match=name):
            tool.pid.options(**wrong)
        with pytest.raises(ValueError, match=name):
            troupe.method(**wrong)
    with pytest.raises(TypeError, match="keyword"):
        troupe.method()
    with pytest.raises(AttributeError, match="no method '__len__'"):
        tool.__len__


def test_options_travel_with_handles_and_names(idle: Home) -> None:
    made = Tool.options(name="tool", max_pending_calls=7).remote()
    troupe.get(made.__ray_ready__.remote(), timeout=20)
    found = troupe.get_actor("tool")
    assert found == made and hash(found) == hash(made) and found != Tool
    assert len(troupe.get(found.halves.remote([1, 2]), timeout=20)) == 2

    @troupe.remote
    class User:
        def use(self, tool: object) -> list:
            return troupe.get(tool.halves.remote([1, 2]))

        def same(self, one: object, other: object) -> bool:
            return one == other

    user = User.remote()
    assert troupe.get(user.use.remote(made), timeout=20) == [[1], [2]]
    assert troupe.get(user.same.remote(made, found), timeout=20)
    for each in (made, user):
        troupe.kill(each)


def test_no_more_calls_than_max_pending_calls(idle: Home, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    tool = Tool.options(max_pending_calls=3).remote()
    waiting = [tool.wait_for.remote(str(gate)) for _ in range(3)]
    with pytest.raises(exceptions.PendingCallsLimitExceeded, match="max_pending_calls"):
        tool.pid.remote()
    gate.touch()
    assert troupe.get(waiting, timeout=20) == [str(gate)] * 3
    assert troupe.get([tool.pid.remote() for _ in range(3)], timeout=20)
    with pytest.raises(ValueError, match="max_pending_calls"):
        Tool.options(max_pending_calls=-2)
    troupe.kill(tool)


def test_special_methods(idle: Home, tmp_path: Path) -> None:
    tool = Tool.remote(str(tmp_path / "note"))
    assert troupe.get(tool.__ray_ready__.remote(), timeout=20) is True
    assert (
        troupe.get(tool.__ray_call__.remote(lambda self, extra: self.note + extra, "!"), timeout=20)
        == str(tmp_path / "note") + "!"
    )
    before = tool.pid.remote()
    ended = tool.__ray_terminate__.remote()
    assert troupe.get(before, timeout=20)  # earlier calls run first
    with pytest.raises(exceptions.ActorDiedError):
        troupe.get(ended, timeout=20)
    with pytest.raises(exceptions.ActorDiedError):
        troupe.get(tool.pid.remote(), timeout=20)
    eventually((tmp_path / "note").exists, what="__ray_shutdown__")


def test_kill_runs_no_shutdown_hook(idle: Home, tmp_path: Path) -> None:
    tool = Tool.remote(str(tmp_path / "note"))
    pid = troupe.get(tool.pid.remote(), timeout=20)
    troupe.kill(tool)
    eventually(lambda: not running(pid), what="the end of the process")
    assert not (tmp_path / "note").exists()
