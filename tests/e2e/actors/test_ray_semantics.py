"""Semantics that examples of Ray's documentation rely on beside the names: who failed, a
generator's values, where things may be made."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from typing import Any

import cloudpickle
import pytest
from conftest import TIMEOUT_S, Home

import troupe
from troupe import exceptions
from troupe.launch import distributed
from troupe.runtime_env import RuntimeEnv
from troupe.util.scheduling_strategies import PlacementGroupSchedulingStrategy

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@troupe.remote(num_cpus=0)
def fails() -> None:
    raise ValueError("the real error")


@troupe.remote(num_cpus=0)
def echo(value: Any) -> Any:
    return value


@troupe.remote(num_cpus=0)
class Echo:
    def echo(self, value: Any) -> Any:
        return value

    def yields(self, count: int, fails: bool = False) -> Iterator[int]:
        yield from range(count)
        if fails:
            raise KeyError("after them")

    def leaves(self) -> Iterator[int]:
        yield 0
        sys.exit(3)


@pytest.mark.parametrize("of", ["task", "actor"])
def test_an_argument_that_failed_is_told_from_the_call_that_did_not_run(
    idle: Home, of: str
) -> None:
    call = echo if of == "task" else Echo.remote().echo
    with pytest.raises(
        ValueError,
        match=r"echo\(\).* did not run: what makes one of its arguments raised ValueError: the real error",
    ):
        troupe.get(call.remote(fails.remote()), timeout=TIMEOUT_S)
    failed = fails.remote()
    troupe.wait([failed], timeout=TIMEOUT_S)
    with pytest.raises(ValueError, match=r"(?s)did not run.*in fails"):
        troupe.get(call.remote(call.remote(failed)), timeout=TIMEOUT_S)


def test_an_error_that_is_exactly_exception_says_where_it_was(idle: Home) -> None:
    @troupe.remote(num_cpus=0)
    def plain() -> None:
        raise Exception("no class of its own")

    with pytest.raises(
        exceptions.TaskError,
        match=r"(?s)plain\(\).* raised Exception: no class of its own.*in plain",
    ):
        troupe.get(plain.remote(), timeout=TIMEOUT_S)


def test_values_that_a_generator_gave_before_it_failed_are_kept(idle: Home) -> None:
    refs = Echo.remote().yields.options(num_returns=4).remote(2, fails=True)
    assert troupe.get(refs[:2], timeout=TIMEOUT_S) == [0, 1]
    for ref in refs[2:]:
        with pytest.raises(KeyError, match="after them"):
            troupe.get(ref, timeout=TIMEOUT_S)


def test_a_generator_that_gives_too_few_fails_the_others(idle: Home) -> None:
    refs = Echo.remote().yields.options(num_returns=3).remote(2)
    assert troupe.get(refs[:2], timeout=TIMEOUT_S) == [0, 1]
    with pytest.raises(ValueError, match="Task returned 2 objects, but num_returns=3"):
        troupe.get(refs[2], timeout=TIMEOUT_S)


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_generator_does_after_its_values_is_only_said(idle: Home, fails: bool) -> None:
    actor = Echo.remote()
    assert troupe.get(
        actor.yields.options(num_returns=2).remote(2 if fails else 5, fails), timeout=TIMEOUT_S
    ) == [0, 1]
    assert troupe.get(actor.echo.remote(7), timeout=TIMEOUT_S) == 7


def test_sys_exit_in_a_generator_of_a_fixed_number_is_an_error(idle: Home) -> None:
    actor = Echo.remote()
    first, second = actor.leaves.options(num_returns=2).remote()
    assert troupe.get(first, timeout=TIMEOUT_S) == 0
    with pytest.raises(RuntimeError, match=r"leaves.*sys.exit"):
        troupe.get(second, timeout=TIMEOUT_S)
    assert troupe.get(actor.echo.remote(7), timeout=TIMEOUT_S) == 7


@troupe.remote(num_cpus=0)
class MadeAsync:
    """An actor whose constructor is a coroutine."""

    async def __init__(self, value: int, fails: bool = False) -> None:
        await asyncio.sleep(0)
        if fails:
            raise ValueError("made badly")
        self.value = 0
        self._task = asyncio.create_task(self._later(value))

    async def _later(self, value: int) -> None:
        self.value = value

    async def get(self) -> int:
        await self._task
        return self.value


def test_a_constructor_that_is_a_coroutine_is_awaited(idle: Home) -> None:
    assert troupe.get(MadeAsync.remote(42).get.remote(), timeout=TIMEOUT_S) == 42
    with pytest.raises(ValueError, match="made badly"):
        troupe.get(MadeAsync.remote(42, fails=True).get.remote(), timeout=TIMEOUT_S)
    with pytest.raises(TypeError, match="value"):
        MadeAsync.remote()


@troupe.remote(num_cpus=0)
class Captured:
    """In a group that captures what is made in it."""

    def group_of_child(self, outside: bool) -> str | None:
        strategy = PlacementGroupSchedulingStrategy(None) if outside else None
        return troupe.get(
            group_here.options(scheduling_strategy=strategy).remote(), timeout=TIMEOUT_S
        )


@troupe.remote(num_cpus=0)
def group_here() -> str | None:
    return troupe.get_runtime_context().get_placement_group_id()


def test_a_strategy_without_a_group_is_outside_of_the_one_that_captures(idle: Home) -> None:
    group = troupe.util.placement_group([{"CPU": 1}])
    inside = PlacementGroupSchedulingStrategy(group, placement_group_capture_child_tasks=True)
    actor = Captured.options(scheduling_strategy=inside).remote()
    assert troupe.get(actor.group_of_child.remote(outside=False), timeout=TIMEOUT_S) == group.id
    assert troupe.get(actor.group_of_child.remote(outside=True), timeout=TIMEOUT_S) is None
    troupe.util.remove_placement_group(group)
    with pytest.raises(ValueError, match="the value of bundle index must be -1, not 1"):
        PlacementGroupSchedulingStrategy(None, 1)


def test_arguments_for_a_class_without_a_constructor_are_refused_here(idle: Home) -> None:
    with pytest.raises(TypeError, match=r"Captured\(\) takes no arguments"):
        Captured.remote(1)


def test_an_actor_that_nobody_can_ever_hold_is_unschedulable(idle: Home) -> None:
    with pytest.raises(exceptions.ActorUnschedulableError, match="can never be placed"):
        Captured.options(num_cpus=10_000).remote()


def test_types_for_annotations(idle: Home) -> None:
    from troupe.actor import ActorClass, ActorHandle, ActorProxy

    for kind in (troupe.ObjectRef, troupe.ObjectRefGenerator, ActorHandle, ActorClass, ActorProxy):
        assert kind[int].__args__ == (int,)


def test_the_context_by_its_older_names(idle: Home) -> None:
    here = troupe.get_runtime_context()
    assert here.get() == {
        "job_id": here.get_job_id(),
        "node_id": here.get_node_id(),
        "namespace": here.namespace,
    }
    with pytest.warns(DeprecationWarning, match=r"Use get_actor_id\(\) instead"):
        assert (here.actor_id, here.task_id, here.current_placement_group_id) == (None, None, None)
    assert here.get_runtime_env_string() == "{}"


def test_a_runtime_env_with_a_class_of_its_own(idle: Home) -> None:
    @troupe.remote(num_cpus=0, runtime_env=RuntimeEnv(env_vars={"TROUPE_TEST_MODE": "eval"}))
    def mode() -> str | None:
        import os

        return os.environ.get("TROUPE_TEST_MODE")

    assert troupe.get(mode.remote(), timeout=TIMEOUT_S) == "eval"
    with pytest.raises(ValueError, match="no key 'conda'"):
        RuntimeEnv(conda="base")


@pytest.mark.parametrize("option", ["local_mode", "enable_resource_isolation", "job_config"])
def test_options_of_init_that_mean_nothing_are_taken_unless_they_ask_for_something(
    idle: Home, option: str
) -> None:
    troupe.init(ignore_reinit_error=True, **{option: None})
    with pytest.raises(ValueError, match=f"{option}=...\\) is not supported"):
        troupe.init(ignore_reinit_error=True, **{option: True})


def test_a_ref_prints_its_id(idle: Home) -> None:
    ref, answer = troupe.put(1), Echo.options(name="printed").remote().echo.remote(2)
    assert repr(ref) == f"ObjectRef({ref.hex()}, done)"
    assert repr(answer).startswith(f"ObjectRef({answer.hex()}, echo() of actor Echo")
    passed = troupe.get(echo.remote([answer]), timeout=TIMEOUT_S)[0]
    assert passed == answer and passed.hex() in repr(answer)


def test_what_is_no_ref_is_said_as_in_ray(idle: Home) -> None:
    with pytest.raises(ValueError, match="Invalid type of object refs, <class 'int'>, is given"):
        troupe.get(5)
    for wrong in (troupe.get, troupe.wait):
        with pytest.raises(TypeError, match="item 1 is of type int"):
            wrong([troupe.put(1), 5])
    with pytest.raises(
        TypeError, match=r"wait\(\) takes a list of ObjectRefs; this is of type int"
    ):
        troupe.wait(5)


class Refused(Exception):
    """As most with several parameters: Exception gets their text, which its own __init__ would not
    take."""

    def __init__(self, code: int, path: str) -> None:
        super().__init__(f"{code} for {path}")
        self.code = code
        self.lock = threading.Lock()  # a lock cannot be pickled


@pytest.mark.parametrize("of", ["task", "actor", "launch"])
def test_an_exception_with_parameters_of_its_own_keeps_its_type(idle: Home, of: str) -> None:
    def refuse() -> None:
        raise Refused(403, "/data")

    class Refuses:
        async def refuse(self) -> None:
            refuse()

    ask = {
        "task": lambda: troupe.get(troupe.remote(num_cpus=0)(refuse).remote(), timeout=TIMEOUT_S),
        "actor": lambda: troupe.get(
            troupe.remote(num_cpus=0)(Refuses).remote().refuse.remote(), timeout=TIMEOUT_S
        ),
        "launch": lambda: distributed(processes=1, remote=True)(refuse).distributed(),
    }[of]
    with pytest.raises(Refused, match="403 for /data") as caught:
        ask()
    assert (
        caught.value.code == 403
        and not hasattr(caught.value, "lock")
        and caught.value.args == ("403 for /data",)
    )
    assert isinstance(
        caught.value, exceptions.LaunchError if of == "launch" else exceptions.TaskError
    )


def test_what_is_remote_already_is_not_made_so_again(idle: Home) -> None:
    for each in (echo, Echo):
        with pytest.raises(TypeError, match=r"(?i)echo> is what @remote makes already; \.options"):
            troupe.remote(each)
        with pytest.raises(TypeError, match="is what @remote makes already"):
            troupe.remote(num_cpus=1)(each)


def test_methods_of_pythons_own_by_name(idle: Home) -> None:
    @troupe.remote(num_cpus=0)
    class Model:
        def __call__(self, x: int) -> int:
            return 2 * x

        def __len__(self) -> int:
            return 3

    model = Model.remote()
    assert troupe.get([model.__call__.remote(4), model.__len__.remote()], timeout=TIMEOUT_S) == [
        8,
        3,
    ]
    assert not callable(model), "the handle itself is no function"
    with pytest.raises(AttributeError, match="no method '__getitem__'"):
        model.__getitem__


def test_an_error_of_a_call_within_a_call_is_told_once(idle: Home) -> None:
    @troupe.remote(num_cpus=0)
    def inner() -> None:
        raise ValueError("deep")

    @troupe.remote
    def outer() -> None:
        troupe.get(inner.remote())

    with pytest.raises(ValueError) as caught:
        troupe.get(outer.remote(), timeout=TIMEOUT_S)
    text = str(caught.value)
    assert text.count("in inner") == text.count("in outer") == 1 and text.splitlines()[0].endswith(
        "raised ValueError: deep"
    ), text


def test_a_ref_in_an_exception_stays_behind(idle: Home) -> None:
    @troupe.remote(num_cpus=0)
    class Raises:
        def with_a_ref(self) -> None:
            error = Refused(403, "/data")
            error.ref = troupe.put(1)  # type: ignore[attr-defined]
            raise error

        def a_lock(self) -> Any:
            return threading.Lock()

    actor = Raises.remote()
    with pytest.raises(Refused) as caught:
        troupe.get(actor.with_a_ref.remote(), timeout=TIMEOUT_S)
    assert caught.value.code == 403 and not hasattr(caught.value, "ref")
    with pytest.raises(TypeError, match="cannot pickle '_thread.lock' object"):
        troupe.get(actor.a_lock.remote(), timeout=TIMEOUT_S)


def test_each_of_a_group_keeps_its_type(idle: Home) -> None:
    @troupe.remote(num_cpus=0)
    class Asks:
        async def all(self) -> None:
            async def ask(number: int) -> None:
                raise Refused(number, "/data")

            async with asyncio.TaskGroup() as group:
                for number in (1, 2):
                    group.create_task(ask(number))

    with pytest.raises(ExceptionGroup, match="unhandled errors in a TaskGroup") as caught:
        troupe.get(Asks.remote().all.remote(), timeout=TIMEOUT_S)
    assert isinstance(caught.value, exceptions.TaskError)
    assert [(type(each), each.code) for each in caught.value.exceptions] == [
        (Refused, 1),
        (Refused, 2),
    ]
