"""Remote functions through real processes: processes used again, values, options, errors,
deaths."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import Home, eventually

import troupe
from troupe import exceptions
from troupe._cluster import session
from troupe._tasks import lease_policy
from troupe._tasks.of_session import LEASES
from troupe.util.placement_group import placement_group, remove_placement_group
from troupe.util.scheduling_strategies import (
    NodeAffinitySchedulingStrategy,
    PlacementGroupSchedulingStrategy,
)

WAIT_S = 30


@troupe.remote
def echo(*args: object, **kwargs: object) -> object:
    """Return the arguments."""
    return (args, kwargs) if kwargs or len(args) != 1 else args[0]


@troupe.remote
def pid() -> int:
    """The process it runs in."""
    return os.getpid()


@troupe.remote
def mark_and_wait(path: str, until: str) -> int:
    """Says in a file who runs it, then waits for another file."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    while not os.path.exists(until):
        threading.Event().wait(0.01)
    return os.getpid()


@troupe.remote
def die_until(path: str, times: int, how: int = signal.SIGKILL) -> int:
    """Ends its own process the first `times` times."""
    with open(path, "a", encoding="utf-8") as file:
        file.write("x")
    runs = os.path.getsize(path)
    if runs <= times:
        print("the last words of a task", file=sys.stderr, flush=True)
        os.kill(os.getpid(), how)
    return runs


def lines(path: Path) -> list[str]:
    """Return the lines of a file that may not be there yet."""
    return path.read_text().split() if path.exists() else []


def test_processes_are_used_again(idle: Home) -> None:
    first = troupe.get(pid.remote(), timeout=WAIT_S)
    assert first != os.getpid()
    assert {troupe.get(pid.remote(), timeout=WAIT_S) for _ in range(50)} == {first}
    assert troupe.get(echo.remote(1), timeout=WAIT_S) == 1  # another function, the same process
    assert len(set(troupe.get([pid.remote() for _ in range(500)], timeout=WAIT_S))) <= 8


def test_values_travel(idle: Home) -> None:
    for value in (None, 1, 2.5, "text", b"bytes", [1, {"a": (2,)}], {"k": b"x" * 100_000}):
        assert troupe.get(echo.remote(value), timeout=WAIT_S) == value
    assert troupe.get(echo.remote(1, x=2), timeout=WAIT_S) == ((1,), {"x": 2})
    assert troupe.get(echo.remote(lambda: 5), timeout=WAIT_S)() == 5
    chained = echo.remote(7)
    for _ in range(20):
        chained = echo.remote(chained)
    assert troupe.get(echo.remote(chained, x=troupe.put(3)), timeout=WAIT_S) == ((7,), {"x": 3})
    with pytest.raises(TypeError, match="lock"):
        echo.remote(threading.Lock())
    captured = threading.Lock()
    with pytest.raises(exceptions.LaunchError, match="captured"):
        troupe.remote(lambda: captured).remote()
    assert troupe.get([echo.remote(i) for i in range(2000)], timeout=WAIT_S) == list(range(2000))


def test_a_function_that_is_large_travels_once(idle: Home) -> None:
    for size in (1 << 20, 6 << 20):
        data = b"x" * size
        length = troupe.remote(lambda: len(data))  # noqa: B023  (it is called before the next one)
        assert troupe.get([length.remote() for _ in range(100)], timeout=WAIT_S) == [size] * 100


def test_functions_that_come_and_go_are_not_taken_for_each_other(idle: Home) -> None:
    for number in range(200):
        assert troupe.get(troupe.remote(lambda: number).remote(), timeout=WAIT_S) == number  # noqa: B023


def test_tasks_that_wait_for_each_other_run_beside_each_other(idle: Home, tmp_path: Path) -> None:
    until, marks = tmp_path / "until", tmp_path / "marks"
    troupe.get([echo.remote(i) for i in range(100)], timeout=WAIT_S)  # a quick function before it
    refs = [mark_and_wait.remote(str(marks), str(until)) for _ in range(8)]
    eventually(lambda: len(lines(marks)) == 8, timeout=WAIT_S, what="8 tasks beside each other")
    assert troupe.available_resources().get("CPU", 0) == 0
    late = [pid.remote() for _ in range(3)]
    assert troupe.wait(late, timeout=0.2) == ([], late)
    until.touch()
    assert len(set(troupe.get(refs, timeout=WAIT_S))) == 8
    troupe.get(late, timeout=WAIT_S)


def test_the_next_kind_of_task_gets_its_room_from_the_one_before(idle: Home) -> None:
    many = [pid.options(num_cpus=1).remote() for _ in range(8)]
    troupe.get(many, timeout=WAIT_S)
    assert troupe.get(pid.options(num_cpus=8).remote(), timeout=WAIT_S) != os.getpid()


def test_several_values(idle: Home) -> None:
    pair = troupe.remote(num_returns=2)(lambda: (1, [2]))
    first, second = pair.remote()
    assert troupe.get([first, second], timeout=WAIT_S) == [1, [2]]
    assert pair.options(num_returns=0).remote() is None
    with pytest.raises(ValueError, match="num_returns=3"):
        troupe.get(pair.options(num_returns=3).remote()[2], timeout=WAIT_S)


def test_functions_that_yield(idle: Home) -> None:
    @troupe.remote
    def count(n: int):
        yield from range(n)
        if n == 5:
            raise KeyError("five")

    for n in (0, 3, 3000):
        assert [troupe.get(ref, timeout=WAIT_S) for ref in count.remote(n)] == list(range(n))
    refs = list(count.remote(5))
    assert troupe.get(refs[:5], timeout=WAIT_S) == [0, 1, 2, 3, 4]
    with pytest.raises(KeyError, match="five"):
        troupe.get(refs[5], timeout=WAIT_S)
    paced = count.options(_generator_backpressure_num_objects=2).remote(50)
    assert [troupe.get(ref, timeout=WAIT_S) for ref in paced] == list(range(50))
    assert isinstance(paced, troupe.ObjectRefGenerator)


def test_an_exception_keeps_its_type(idle: Home) -> None:
    class Own(Exception):
        """With a field."""

    @troupe.remote
    def fail() -> None:
        error = Own("words")
        error.field = 4
        raise error

    with pytest.raises(exceptions.RayTaskError, match="words") as caught:
        troupe.get(fail.remote(), timeout=WAIT_S)
    assert (
        "fail()" in str(caught.value) and "in fail" in str(caught.value) and caught.value.field == 4
    )
    with pytest.raises(ZeroDivisionError):
        troupe.get(troupe.remote(lambda: 1 / 0).remote(), timeout=WAIT_S)


def test_a_process_that_dies_is_named_and_its_task_made_again(idle: Home, tmp_path: Path) -> None:
    path = str(tmp_path / "runs")
    assert troupe.get(die_until.remote(path, 3), timeout=WAIT_S) == 4
    os.unlink(path)
    with pytest.raises(exceptions.WorkerCrashedError, match="SIGKILL") as caught:
        troupe.get(die_until.options(max_retries=1).remote(path, 9), timeout=WAIT_S)
    assert "on one" in str(caught.value) and "the last words of a task" in str(caught.value)
    assert os.path.getsize(path) == 2
    os.unlink(path)
    with pytest.raises(exceptions.WorkerCrashedError, match="SIGTERM"):
        troupe.get(die_until.options(max_retries=0).remote(path, 9, signal.SIGTERM), timeout=WAIT_S)
    assert os.path.getsize(path) == 1
    with pytest.raises(exceptions.WorkerCrashedError, match="3"):
        troupe.get(troupe.remote(max_retries=0)(lambda: os._exit(3)).remote(), timeout=WAIT_S)


def test_a_crash_says_where_it_was(idle: Home) -> None:
    def crash() -> None:
        ctypes.string_at(0)

    with pytest.raises(
        exceptions.WorkerCrashedError,
        match=r"(?s)SIGSEGV.*\n    Current thread 0x.*test_tasks.py.* in crash(?:\n|$)",
    ):
        troupe.get(troupe.remote(max_retries=0)(crash).remote(), timeout=WAIT_S)


def test_a_function_in_an_argument_keeps_its_file(idle: Home) -> None:
    file_of = troupe.remote(lambda function: function.__code__.co_filename)
    assert troupe.get(file_of.remote(lambda: 0), timeout=WAIT_S) == __file__


def test_quick_tasks_beside_one_that_kills_its_process_all_come_back(
    idle: Home, tmp_path: Path
) -> None:
    troupe.get([echo.remote(i) for i in range(200)], timeout=WAIT_S)
    good = [echo.remote(i) for i in range(300)]
    bad = die_until.options(max_retries=0).remote(str(tmp_path / "runs"), 9)
    good += [echo.remote(i) for i in range(300, 600)]
    assert troupe.get(good, timeout=WAIT_S) == list(range(600))
    with pytest.raises(exceptions.WorkerCrashedError):
        troupe.get(bad, timeout=WAIT_S)


def test_exceptions_may_be_a_reason_to_go_again(idle: Home, tmp_path: Path) -> None:
    def fail_until(path: str, times: int) -> int:
        with open(path, "a", encoding="utf-8") as file:
            file.write("x")
        if os.path.getsize(path) <= times:
            raise LookupError(f"run {os.path.getsize(path)}")
        return os.path.getsize(path)

    def run(name: str, **options: object) -> int:
        path = str(tmp_path / name)
        try:
            return troupe.get(troupe.remote(**options)(fail_until).remote(path, 2), timeout=WAIT_S)
        except LookupError:
            return -os.path.getsize(path)

    assert run("none", max_retries=3) == -1
    assert run("all", retry_exceptions=True) == 3
    assert run("too few", retry_exceptions=True, max_retries=1) == -2
    assert run("listed", retry_exceptions=[ZeroDivisionError, LookupError]) == 3
    assert run("not listed", retry_exceptions=[ZeroDivisionError]) == -1


def test_max_calls_ends_a_process(idle: Home) -> None:
    limited = pid.options(max_calls=2)
    pids = [troupe.get(limited.remote(), timeout=WAIT_S) for _ in range(6)]
    assert len(set(pids)) == 3 and pids[0] == pids[1] and pids[4] == pids[5]
    assert len(set(troupe.get([limited.remote() for _ in range(6)], timeout=WAIT_S))) >= 3


def test_what_can_never_be_placed(idle: Home) -> None:
    with pytest.raises(exceptions.TaskUnschedulableError, match="GPU"):
        troupe.get(pid.options(num_gpus=3).remote(), timeout=WAIT_S)
    with pytest.raises(exceptions.PlacementError, match="CPU"):
        troupe.get(pid.options(num_cpus=100).remote(), timeout=WAIT_S)
    assert troupe.get(pid.remote(), timeout=WAIT_S)


def test_environment_and_place(idle: Home) -> None:
    variable = troupe.remote(lambda: os.environ.get("TASK_WORD"))
    assert (
        troupe.get(
            variable.options(runtime_env={"env_vars": {"TASK_WORD": "a"}}).remote(), timeout=WAIT_S
        )
        == "a"
    )
    assert troupe.get(variable.remote(), timeout=WAIT_S) is None
    (node,) = troupe.nodes()
    there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
    assert troupe.get(pid.options(scheduling_strategy=there).remote(), timeout=WAIT_S)
    group = troupe.util.placement_group([{"CPU": 2}])
    troupe.get(group.ready(), timeout=WAIT_S)
    inside = pid.options(num_cpus=2, scheduling_strategy=PlacementGroupSchedulingStrategy(group))
    assert troupe.get(inside.remote(), timeout=WAIT_S)
    troupe.util.remove_placement_group(group)
    with pytest.raises(ValueError, match="scheduling_strategy"):
        pid.options(scheduling_strategy="NOWHERE").remote()


def test_misuse(idle: Home) -> None:
    with pytest.raises(TypeError, match="remote"):
        pid()
    with pytest.raises(ValueError, match="a task has no nonsense="):
        pid.options(nonsense=1)
    with pytest.raises(TypeError, match="argument"):
        troupe.get(pid.remote(1), timeout=WAIT_S)


def test_a_caller_that_is_never_idle_makes_room_for_others(idle: Home) -> None:
    @troupe.remote
    def short() -> None:
        threading.Event().wait(0.05)

    @troupe.remote
    class Other:
        def ping(self) -> int:
            return 1

    refs = [short.remote() for _ in range(100)]
    troupe.get(refs[0], timeout=WAIT_S)
    other = Other.options(num_cpus=1).remote()
    answer = other.ping.remote()

    def one_more() -> bool:
        done = len(troupe.wait(refs[-40:], num_returns=40, timeout=0)[0])
        refs.extend(short.remote() for _ in range(done))
        return bool(troupe.wait([answer], timeout=0.01)[0])

    eventually(one_more, timeout=WAIT_S, what="the actor, while tasks wait all the time")
    troupe.kill(other)
    troupe.get(refs, timeout=WAIT_S)


def test_idle_processes_make_room_for_the_tasks_of_others(
    idle: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_policy, "IDLE_S", 3600)

    @troupe.remote(num_cpus=0)
    class Other:
        def run(self, count: int) -> int:
            return len({*troupe.get([pid.remote() for _ in range(count)])})

    def waiting() -> bool:
        return any(
            each["state"] == "pending"
            for each in session.current().request("ListActors", {})[1]["actors"]
        )

    other = Other.remote()
    until = tmp_path / "until"
    refs = [mark_and_wait.remote(str(tmp_path / "marks"), str(until)) for _ in range(8)]
    eventually(
        lambda: len(lines(tmp_path / "marks")) == 8, timeout=WAIT_S, what="a task on each CPU"
    )
    answer = other.run.remote(2)
    eventually(waiting, timeout=WAIT_S, what="tasks of another one that wait")
    until.touch()
    assert troupe.get(answer, timeout=WAIT_S) >= 1, "the processes here have nothing to do"
    troupe.get(refs, timeout=WAIT_S)
    troupe.kill(other)
    monkeypatch.undo()
    LEASES.known(session.current()).wake()  # the one that was kept


def test_nothing_is_left_after_the_caller_is_killed(idle: Home, tmp_path: Path) -> None:
    code = f"""
import sys, threading, troupe
sys.path[:0] = {[str(each) for each in Path(__file__).parents[:2]]!r}
troupe.init("auto")
from test_tasks import mark_and_wait
refs = [mark_and_wait.remote({str(tmp_path / "marks")!r}, "/nowhere") for _ in range(3)]
threading.Event().wait()
"""
    caller = subprocess.Popen([sys.executable, "-c", code])
    marks = tmp_path / "marks"
    eventually(lambda: len(lines(marks)) == 3, timeout=WAIT_S, what="three tasks")
    caller.kill()
    caller.wait()
    pids = {int(each) for each in lines(marks)}
    eventually(
        lambda: not pids & set(idle.processes()),
        timeout=WAIT_S,
        what="the end of the tasks' processes",
    )


def test_nothing_is_kept_of_options_that_are_used_no_more(idle: Home) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    def one(number: int) -> int:
        group = placement_group([{"CPU": 1}])
        function = pid.options(
            scheduling_strategy=PlacementGroupSchedulingStrategy(group), name=f"in group {number}"
        )
        found = troupe.get(function.remote(), timeout=WAIT_S)
        remove_placement_group(group)
        return found

    one(0)
    before = descriptors()
    assert len({one(number) for number in range(1, 13)}) == 12
    eventually(lambda: descriptors() <= before + 3, what="the end of the connections")
    leases = LEASES.known(session.current())

    def pools() -> int:
        leases.wake()
        return len(leases.pools())

    eventually(lambda: pools() <= 2, what="the end of the pools")
    assert troupe.get(echo.remote(1), timeout=WAIT_S) == 1
