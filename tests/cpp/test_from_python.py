"""Actors of a C++ program, created and called by a program in Python."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from e2e_conftest import Home, eventually

import troupe
from troupe.cross_language import CppActorClass, cpp_actor_class


@pytest.fixture
def counters(idle: Home, programs: Path) -> CppActorClass:
    return cpp_actor_class(programs / "actors", "Counter")


@pytest.fixture
def echo(idle: Home, programs: Path):
    return cpp_actor_class(programs / "actors", "Echo").remote()


def test_calls_are_answered_in_their_order(counters: CppActorClass) -> None:
    counter = counters.options(num_cpus=1).remote(5)
    assert troupe.get([counter.Add.remote(1) for _ in range(200)], timeout=60) == list(
        range(6, 206)
    )
    assert troupe.get(counter.Pid.remote(), timeout=60) != os.getpid()


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -1,
        255,
        256,
        70000,
        -(2**63),
        2**63 - 1,
        1.5,
        float("inf"),
        "",
        "café",
        "x" * 300,
        b"",
        b"\x00\xff",
        b"y" * 70000,
        [],
        [1, [2, [3]]],
        (),
        (1, "a"),
        {},
        {"a": [1, {"b": None}], 2: (3.5,), b"k": True},
    ],
    ids=repr,
)
def test_a_plain_value_comes_back_equal(echo, value) -> None:
    came = troupe.get(echo.Same.remote(value), timeout=60)
    assert came == value and type(came) is type(value)


def test_a_value_that_is_there_twice_is_copied(echo) -> None:
    row = [1, 2]
    assert troupe.get(echo.Same.remote([row, row, "name", "name"]), timeout=60) == [
        [1, 2],
        [1, 2],
        "name",
        "name",
    ]


def test_large_values_go_both_ways(echo) -> None:
    size = 20_000_000  # more than a frame takes: in shared memory
    assert troupe.get(echo.SizeOf.remote(b"z" * size), timeout=60) == size
    assert troupe.get(echo.Large.remote(size), timeout=60) == b"x" * size
    rows = {"a": [0.5] * 100_000}
    assert troupe.get(echo.Sums.remote(rows), timeout=60) == {"a": 50_000.0}


def test_a_struct_is_a_dict_of_its_fields(echo) -> None:
    assert troupe.get(echo.Moved.remote({"x": 1, "y": 2.5}, 1), timeout=60) == {"x": 2.0, "y": 3.5}


def test_a_ref_as_an_argument_becomes_its_value(echo) -> None:
    assert troupe.get(echo.Same.remote(troupe.put([1, "a"])), timeout=60) == [1, "a"]


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        ("invalid_argument", ValueError),
        ("out_of_range", IndexError),
        ("bad_alloc", MemoryError),
        ("runtime_error", RuntimeError),
        ("an int", RuntimeError),
    ],
)
def test_what_a_method_throws_is_raised(counters: CppActorClass, what: str, kind: type) -> None:
    counter = counters.remote(1)
    with pytest.raises(kind) as caught:
        troupe.get(counter.Throw.remote(what), timeout=60)
    assert isinstance(caught.value, troupe.exceptions.TaskError)
    assert "Counter.Throw()" in str(caught.value) + caught.value.remote_traceback
    assert troupe.get(counter.Total.remote(), timeout=60) == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: c.Ad.remote(1), ["no method Ad()", "Add", "Total"]),
        (lambda c: c.Add.remote(), ["Counter.Add()", "1 argument, 0 were given"]),
        (lambda c: c.Add.remote("two"), ["argument 1 of Counter.Add()", "str", "an int"]),
        (lambda c: c.Add.remote(2**40), ["argument 1 of Counter.Add()", str(2**40)]),
        (lambda c: c.Add.remote({1, 2}), ["argument 1", "a set"]),
        (lambda c: c.Add.remote(2**70), ["argument 1", "more than 64 bits"]),
        (lambda c: c.Add.remote(Path("/tmp")), ["argument 1", "pathlib"]),
        (lambda c: c.Add.remote([troupe.put(1)]), ["argument 1", "ObjectRef"]),
        (lambda c: c.Add.remote(amount=2), ["no keywords"]),
        (lambda c: c.Add.options(num_returns=2).remote(1)[0], ["one value"]),
    ],
    ids=range(10),
)
def test_a_wrong_call_says_what_is_wrong(counters: CppActorClass, call, words: list[str]) -> None:
    counter = counters.remote(0)
    with pytest.raises(TypeError) as caught:
        troupe.get(call(counter), timeout=60)
    for each in words:
        assert each in str(caught.value)
    assert troupe.get(counter.Total.remote(), timeout=60) == 0


def test_a_wrong_creation_says_what_is_wrong(idle: Home, programs: Path, tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match="nowhere of the C\\+\\+ class Counter does not exist"
    ):
        cpp_actor_class(tmp_path / "nowhere", "Counter").remote(1)
    (tmp_path / "text").write_text("no program")
    with pytest.raises(FileNotFoundError, match="may execute"):
        cpp_actor_class(tmp_path / "text", "Counter").remote(1)
    with pytest.raises(TypeError, match="argument 1 of Counter\\(\\) holds a builtins.set"):
        cpp_actor_class(programs / "actors", "Counter").remote({1})
    with pytest.raises(ValueError, match="max_concurrency=4"):
        cpp_actor_class(programs / "actors", "Counter").options(max_concurrency=4)
    with pytest.raises(ValueError, match="working_dir"):
        cpp_actor_class(programs / "actors", "Counter").options(runtime_env={"working_dir": "."})
    wrong = cpp_actor_class(programs / "actors", "Countr").remote(1)
    with pytest.raises(
        troupe.exceptions.ActorDiedError,
        match="registers no actor class Countr; it registers: Broken, Counter, Echo, Member, Nest",
    ):
        troupe.get(wrong.Add.remote(1), timeout=60)
    few = cpp_actor_class(programs / "actors", "Counter").remote()
    with pytest.raises(
        TypeError, match="the constructor Counter\\(\\) takes 1 argument, 0 were given"
    ):
        troupe.get(few.Add.remote(1), timeout=60)


@pytest.mark.parametrize(
    ("how", "words"),
    [("throw", "it cannot be made"), ("abort", "SIGABRT"), ("exit", "ended: exit 3")],
)
def test_a_constructor_that_fails_is_told(idle: Home, programs: Path, how: str, words: str) -> None:
    broken = cpp_actor_class(programs / "actors", "Broken").remote(how)
    with pytest.raises(troupe.exceptions.ActorDiedError, match=words) as caught:
        troupe.get(broken.Never.remote(), timeout=60)
    assert isinstance(caught.value, ValueError) == (how == "throw")


def test_a_program_that_serves_no_actor_is_told(idle: Home) -> None:
    other = cpp_actor_class("/bin/true", "Counter").remote(1)
    with pytest.raises(troupe.exceptions.ActorDiedError, match="ended: exit 0"):
        troupe.get(other.Add.remote(1), timeout=60)


def test_a_killed_process_has_its_cause_and_its_last_lines(counters: CppActorClass) -> None:
    counter = counters.remote(1)
    os.kill(troupe.get(counter.Pid.remote(), timeout=60), signal.SIGKILL)
    with pytest.raises(troupe.exceptions.ActorDiedError, match="SIGKILL"):
        for _ in range(1000):
            try:
                troupe.get(counter.Total.remote(), timeout=60)
            except troupe.exceptions.ActorUnavailableError:
                continue
    crashed = counters.remote(1)
    with pytest.raises(troupe.exceptions.ActorDiedError, match="the counter is about to abort"):
        troupe.get(crashed.Crash.remote(), timeout=60)


def test_it_is_started_again_as_often_as_it_may(counters: CppActorClass) -> None:
    counter = counters.options(max_restarts=1, max_task_retries=-1).remote(7)
    first = troupe.get(counter.Pid.remote(), timeout=60)
    os.kill(first, signal.SIGKILL)
    assert troupe.get(counter.Total.remote(), timeout=60) == 7
    second = troupe.get(counter.Pid.remote(), timeout=60)
    assert second != first
    os.kill(second, signal.SIGKILL)
    with pytest.raises(troupe.exceptions.ActorDiedError):
        troupe.get(counter.Total.remote(), timeout=60)


def test_it_ends_with_its_last_handle_by_kill_and_by_its_own_word(counters: CppActorClass) -> None:
    dropped = counters.options(num_cpus=8).remote(1)
    assert troupe.get(dropped.Total.remote(), timeout=60) == 1
    del dropped
    counter = counters.options(num_cpus=8).remote(2)  # has room once that is gone
    assert troupe.get(counter.Total.remote(), timeout=60) == 2
    troupe.kill(counter)
    left = counters.options(num_cpus=8, max_restarts=-1).remote(3)
    troupe.get(left.Leave.remote(), timeout=60)
    with pytest.raises(troupe.exceptions.ActorDiedError):
        for _ in range(1000):
            try:
                troupe.get(left.Total.remote(), timeout=60)
            except troupe.exceptions.ActorUnavailableError:
                continue


def test_names_directory_environment_and_output(counters: CppActorClass, tmp_path: Path) -> None:
    made = counters.options(name="of_cpp", runtime_env={"env_vars": {"SHELF": "oak"}}).remote(1)
    found = troupe.get_actor("of_cpp")
    assert troupe.get(found.Add.remote(1), timeout=60) == 2
    assert troupe.get(found.Variable.remote("SHELF"), timeout=60) == "oak"
    assert troupe.get(found.Where.remote(), timeout=60) == os.getcwd()
    rows = [
        row
        for row in troupe.util.state.list_actors()
        if row.name == "of_cpp"  # actors of earlier tests may be about to end
    ]
    assert [(row.class_name, row.state) for row in rows] == [("Counter", "ALIVE")]
    assert troupe.get(made.Total.remote(), timeout=60) == 2


def test_actors_of_both_languages_call_each_other(echo, programs: Path) -> None:
    @troupe.remote
    class Doubling:
        def double(self, value: list) -> list:
            return value * 2

        def through(self, other, value: int) -> int:
            return troupe.get(other.Add.remote(value))

    doubling = Doubling.options(name="doubling").remote()
    assert troupe.get(echo.Relay.remote("doubling", "double", [1, "a"]), timeout=60) == [
        1,
        "a",
        1,
        "a",
    ]
    counter = cpp_actor_class(programs / "actors", "Counter").remote(1)
    assert troupe.get(doubling.through.remote(counter, 4), timeout=60) == 5


def test_it_lives_in_a_bundle_of_a_placement_group(counters: CppActorClass) -> None:
    group = troupe.util.placement_group([{"CPU": 3}])
    counter = counters.options(
        num_cpus=3, placement_group=group, placement_group_bundle_index=0
    ).remote(4)
    assert troupe.get(counter.Total.remote(), timeout=60) == 4
    troupe.util.remove_placement_group(group)
    with pytest.raises(troupe.exceptions.ActorDiedError):
        for _ in range(1000):
            try:
                troupe.get(counter.Total.remote(), timeout=60)
            except troupe.exceptions.ActorUnavailableError:
                continue
    eventually(
        lambda: troupe.available_resources() == troupe.cluster_resources(),
        what="the bundle's return",
    )
