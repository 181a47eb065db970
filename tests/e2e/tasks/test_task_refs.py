"""Refs and large values of tasks: inside arguments, results and functions; arguments that are still
to come."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import Home, eventually, running
from objects import nothing_held

import troupe
from troupe import exceptions
from troupe._base.bridge import native

np = pytest.importorskip("numpy")

MIB = 1 << 20
WAIT_S = 30


@troupe.remote
def get_all(refs: Any) -> list:
    return troupe.get(list(refs), timeout=WAIT_S)


@troupe.remote
def total(array: Any) -> int:
    return int(array.astype(np.uint64).sum())


@troupe.remote
def full(size: int, value: int) -> Any:
    return np.full(size, value, dtype=np.uint8)


@troupe.remote
def put_in(value: Any) -> list:
    return [troupe.put(value)]


@troupe.remote
def plus(*values: int) -> int:
    return sum(values)


@troupe.remote
def when(path: str, value: Any) -> Any:
    """The value, once there is a file."""
    while not os.path.exists(path):
        threading.Event().wait(0.01)
    if isinstance(value, Exception):
        raise value
    return value


@troupe.remote
def dies_once(mark: str, refs: dict) -> list:
    if not os.path.exists(mark):
        with open(mark, "w"):
            os.kill(os.getpid(), signal.SIGKILL)
    return troupe.get(list(refs.values()), timeout=WAIT_S)


class Keeper:
    """Keeps what it is made with, and what it is given."""

    def __init__(self, kept: Any = None, **more: Any) -> None:
        self.kept, self.more = kept, more

    def keep(self, value: Any) -> None:
        self.kept = value

    def give(self) -> Any:
        return self.kept

    def got(self) -> Any:
        return troupe.get(self.kept, timeout=WAIT_S)

    def both(self) -> tuple:
        return self.kept, self.more

    def pid(self) -> int:
        return os.getpid()


def another_process_went() -> None:
    """A process that ran a task came later and is given back by now."""
    pid = troupe.get(troupe.remote(num_cpus=2)(lambda: os.getpid()).remote(), timeout=WAIT_S)
    eventually(lambda: not running(pid), timeout=WAIT_S, what="the end of an idle process")


def nothing_left() -> None:
    eventually(
        nothing_held(native._object_figures), timeout=WAIT_S, what="the end of all objects here"
    )


def test_large_arguments_and_results_are_not_copied(idle: Home) -> None:
    array = np.full(40 * MIB, 3, dtype=np.uint8)  # more than a frame takes
    assert troupe.get(total.remote(array), timeout=WAIT_S) == 120 * MIB
    ref = full.remote(40 * MIB, 2)
    got = troupe.get(ref, timeout=WAIT_S)
    assert got.nbytes == 40 * MIB and not got.flags.writeable and int(got[-1]) == 2
    assert troupe.get(ref).__array_interface__["data"][0] == got.__array_interface__["data"][0]
    assert troupe.get(total.remote(ref), timeout=WAIT_S) == 80 * MIB
    assert troupe.get(total.remote(full.remote(20 * MIB, 1)), timeout=WAIT_S) == 20 * MIB
    del ref, got
    nothing_left()


def test_large_results_outlive_processes_that_end_at_once(idle: Home) -> None:
    once = full.options(max_calls=1)
    for _ in range(3):
        refs = [once.remote(2 * MIB, value) for value in range(8)]
        assert [int(troupe.get(ref, timeout=WAIT_S)[-1]) for ref in refs] == list(range(8))
    del refs
    nothing_left()


def test_several_values_and_streams(idle: Home) -> None:
    @troupe.remote(num_returns=2, max_calls=1)
    def pair() -> tuple:
        return np.full(20 * MIB, 1, dtype=np.uint8), "small"

    @troupe.remote
    def stream(count: int) -> Any:
        for i in range(count):
            yield np.full(20 * MIB, i, dtype=np.uint8)

    first, second = pair.remote()
    assert (
        int(troupe.get(first, timeout=WAIT_S)[-1]) == 1
        and troupe.get(second, timeout=WAIT_S) == "small"
    )
    assert [int(troupe.get(ref, timeout=WAIT_S)[0]) for ref in stream.remote(5)] == list(range(5))
    del first, second
    nothing_left()


def test_refs_in_arguments_are_refs_there(idle: Home, tmp_path: Path) -> None:
    refs = [troupe.put("small"), troupe.put(np.full(MIB, 1, dtype=np.uint8)), plus.remote(1, 2)]
    small, array, three = troupe.get(get_all.remote(refs), timeout=WAIT_S)
    assert small == "small" and int(array[0]) == 1 and three == 3
    pending = when.remote(str(tmp_path / "go"), 5)
    waiting = get_all.remote([pending])
    assert troupe.wait([waiting], timeout=0.2)[0] == []
    (tmp_path / "go").touch()
    assert troupe.get(waiting, timeout=WAIT_S) == [5]
    given = {"a": refs[0], "b": refs[1]}
    again = dies_once.remote(str(tmp_path / "mark"), given)
    del refs, given, array
    assert troupe.get(again, timeout=WAIT_S)[0] == "small" and (tmp_path / "mark").exists()
    del pending, waiting, again
    nothing_left()


def test_refs_in_results(idle: Home) -> None:
    (ref,) = troupe.get(put_in.remote(np.full(MIB, 4, dtype=np.uint8)), timeout=WAIT_S)
    assert int(troupe.get(ref, timeout=WAIT_S)[0]) == 4
    own = troupe.put("own")
    echo = troupe.remote(lambda value: value)
    assert troupe.get(echo.remote([own]), timeout=WAIT_S) == [own], "the caller's own comes back"
    given = put_in.remote("inside")
    assert troupe.get(get_all.remote(given), timeout=WAIT_S) == ["inside"], (
        "a result that holds refs, resolved"
    )
    keeper = troupe.remote(Keeper).remote()
    troupe.get(
        troupe.remote(lambda other: troupe.get(other.keep.remote([troupe.put("passed")]))).remote(
            keeper
        ),
        timeout=WAIT_S,
    )
    assert troupe.get(keeper.give.remote(), timeout=WAIT_S)
    del own, given
    another_process_went()
    assert int(troupe.get(ref, timeout=WAIT_S)[0]) == 4
    assert (
        troupe.get(troupe.get(keeper.give.remote(), timeout=WAIT_S)[0], timeout=WAIT_S) == "passed"
    )
    del ref
    troupe.kill(keeper)
    nothing_left()
    eventually(
        lambda: troupe.available_resources().get("CPU") == 8,
        timeout=WAIT_S,
        what="the end of the processes",
    )


def test_tasks_that_a_task_started_are_refs_in_its_result(idle: Home, tmp_path: Path) -> None:
    tree = troupe.remote(lambda path: [when.remote(path, i) for i in range(3)])
    refs = troupe.get(tree.remote(str(tmp_path / "go")), timeout=WAIT_S)
    another_process_went()
    (tmp_path / "go").touch()
    assert troupe.get(refs, timeout=WAIT_S) == [0, 1, 2]
    del refs
    nothing_left()


def test_functions_hold_the_refs_that_they_capture(idle: Home) -> None:
    large, small = troupe.put(np.full(MIB, 6, dtype=np.uint8)), troupe.put("small")
    both = troupe.remote(lambda: (int(troupe.get(large)[3]), troupe.get(small)))
    assert troupe.get([both.remote() for _ in range(20)], timeout=WAIT_S) == [(6, "small")] * 20
    (other,) = troupe.get(
        troupe.remote(lambda: [both]).remote(), timeout=WAIT_S
    )  # travels with its refs
    assert troupe.get(other.remote(), timeout=WAIT_S) == (6, "small")
    del large, small, both, other
    nothing_left()


def test_arguments_that_are_to_come_are_not_waited_for(idle: Home, tmp_path: Path) -> None:
    go = str(tmp_path / "go")
    first, large = when.remote(go, 1), when.remote(go, np.full(MIB, 1, dtype=np.uint8))
    second = plus.remote(first, 10, first, troupe.put(100))
    third = plus.remote(second, total.remote(large))
    keyword = troupe.remote(lambda *, a, b: [a, b]).remote(a=1, b=third)
    assert troupe.wait([first, second, third, keyword], num_returns=4, timeout=0)[0] == []
    cancelled = plus.remote(first)
    troupe.cancel(cancelled)
    with pytest.raises(exceptions.TaskCancelledError):
        troupe.get(cancelled, timeout=WAIT_S)
    (tmp_path / "go").touch()
    assert troupe.get([second, third], timeout=WAIT_S) == [112, 112 + MIB]
    assert troupe.get(keyword, timeout=WAIT_S) == [1, 112 + MIB]
    del first, second, third, large, keyword, cancelled
    nothing_left()


def test_a_task_whose_argument_failed_fails_with_that(idle: Home, tmp_path: Path) -> None:
    go = str(tmp_path / "go")
    failing = when.remote(go, KeyError("why"))
    endless = when.remote("/nowhere", 1)
    refs = [
        plus.remote(1, failing),
        plus.remote(endless, failing),
        plus.remote(plus.remote(failing)),
    ]
    (tmp_path / "go").touch()
    refs.append(plus.options(max_retries=0).remote(failing))  # pending or not: the task's error
    with pytest.raises(KeyError, match="why"):
        troupe.get(failing, timeout=WAIT_S)
    refs.append(plus.remote(failing))
    first, rest = plus.options(num_returns=2).remote(failing)
    for ref in (*refs, first, rest):
        with pytest.raises(KeyError, match="why"):
            troupe.get(ref, timeout=WAIT_S)
    troupe.cancel(endless)


def test_constructors(idle: Home, tmp_path: Path) -> None:
    refs = [troupe.put("small"), troupe.put(np.full(MIB, 2, dtype=np.uint8))]
    keeper = troupe.remote(max_restarts=1)(Keeper).remote(refs, more={"ref": refs[0]})
    del refs
    small, array = troupe.get(keeper.got.remote(), timeout=WAIT_S)
    assert small == "small" and int(array[5]) == 2
    pid = troupe.get(keeper.pid.remote(), timeout=WAIT_S)
    os.kill(pid, signal.SIGKILL)  # run once more, with the same arguments
    eventually(lambda: _answer(keeper.pid) not in (pid, None), timeout=WAIT_S, what="the restart")
    assert troupe.get(keeper.got.remote(), timeout=WAIT_S)[0] == "small"
    troupe.kill(keeper)
    del array
    nothing_left()
    captured = troupe.put("captured")
    by_class = troupe.remote(
        type("Captures", (), {"read": lambda self: troupe.get(captured)})
    ).remote()
    assert troupe.get(by_class.read.remote(), timeout=WAIT_S) == "captured"
    troupe.kill(by_class)
    del captured


def _answer(method: Any) -> Any:
    try:
        return troupe.get(method.remote(), timeout=WAIT_S)
    except exceptions.ActorUnavailableError:
        return None


def test_constructors_whose_arguments_are_to_come(idle: Home, tmp_path: Path) -> None:
    go = str(tmp_path / "go")
    first, second = when.remote(go, [1]), when.remote(go, "two")
    mutable = [0]
    keeper = troupe.remote(Keeper).remote(first, x=second, y=mutable, z=troupe.put(3))
    mutable.append(1)
    asked = keeper.both.remote()
    assert troupe.wait([asked], timeout=0.2)[0] == []
    other = troupe.remote(Keeper).remote(first)
    troupe.kill(other)
    with pytest.raises(exceptions.ActorDiedError, match="killed"):
        troupe.get(other.give.remote(), timeout=WAIT_S)
    (tmp_path / "go").touch()
    assert troupe.get(asked, timeout=WAIT_S) == ([1], {"x": "two", "y": [0], "z": 3})
    assert troupe.get(
        troupe.remote(lambda k: troupe.get(k.give.remote())).remote(keeper), timeout=WAIT_S
    ) == [1]
    troupe.kill(keeper)
    failing = when.remote(go, KeyError("why"))
    with pytest.raises(KeyError, match="why") as caught:
        troupe.get(troupe.remote(Keeper).remote(failing).give.remote(), timeout=WAIT_S)
    assert isinstance(caught.value, exceptions.ActorDiedError)
