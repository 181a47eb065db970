"""Actors through real processes: create, call, names, errors by type, deaths; tasks; groups."""

from __future__ import annotations

import os
import signal
import time

import pytest
from conftest import TIMEOUT_S, Home, eventually

import troupe
from troupe import exceptions
from troupe._cluster.watched_state import Board
from troupe.launch import distributed
from troupe.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@troupe.remote
class Counter:
    """Counts."""

    def __init__(self, start: int = 0) -> None:
        self.value = start

    def add(self, amount: int = 1) -> int:
        self.value += amount
        return self.value

    def fail(self) -> None:
        raise KeyError("nothing here")

    def pid(self) -> int:
        return os.getpid()

    def sleep(self, seconds: float) -> float:
        time.sleep(seconds)  # lint-ok: the method under test is slow on purpose
        return seconds

    def leave(self) -> None:
        troupe.exit_actor()

    def echo(self, value: object) -> object:
        return value


@pytest.fixture
def counter(idle: Home):
    """An actor, killed after the test."""
    made = Counter.remote(10)
    yield made
    troupe.kill(made)


def test_calls_run_in_order(counter) -> None:
    assert troupe.get([counter.add.remote() for _ in range(100)]) == list(range(11, 111))
    assert troupe.get(counter.add.remote(amount=5), timeout=60) == 115


def test_refs_as_arguments_and_put(counter) -> None:
    once = counter.add.remote()
    assert troupe.get(counter.add.remote(once)) == 22
    assert troupe.get(counter.echo.remote(troupe.put({"a": [1, 2]}))) == {"a": [1, 2]}
    with pytest.raises(TypeError):
        troupe.put(once)


class Point:
    """An instance that pickles by its class."""

    def __init__(self, x: int) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and other.x == self.x


def test_values_of_every_kind_come_back(counter) -> None:
    values = [
        None,
        (),
        (1, 2),
        (Point(1), {"a": (2,)}),
        [Point(3)],
        {1, 2},
        b"x" * 200_000,
        {"k": (Point(4),)},
    ]
    early = Counter.remote()  # calls made before it is alive take another way
    for handle in (counter, early):
        assert troupe.get([handle.echo.remote(value) for value in values], timeout=20) == values
    assert troupe.get(counter.echo.remote((lambda: 5, 1)))[0]() == 5
    assert troupe.get(counter.echo.remote(value=Point(6))) == Point(6)
    troupe.kill(early)


def test_wait_and_timeout(counter) -> None:
    slow, fast = counter.sleep.remote(0.5), Counter.remote()
    quick = fast.add.remote()
    ready, rest = troupe.wait([slow, quick], timeout=20)
    assert ready == [quick] and rest == [slow]
    with pytest.raises(exceptions.GetTimeoutError):
        troupe.get(slow, timeout=0.01)
    assert troupe.get(slow) == 0.5
    troupe.kill(fast)


def test_an_exception_keeps_its_type_and_shows_the_remote_traceback(counter) -> None:
    for ref in (counter.fail.remote(), counter.fail.remote()):
        with pytest.raises(KeyError) as caught:
            troupe.get(ref)
        assert isinstance(caught.value, exceptions.RayTaskError)
        assert "nothing here" in str(caught.value) and "in fail" in str(caught.value)
    assert troupe.get(counter.add.remote()) == 11


def test_a_constructor_that_raises(idle: Home) -> None:
    class Broken:
        def __init__(self) -> None:
            raise LookupError("no weights")

        def use(self) -> None: ...

    broken = troupe.remote(Broken).remote()
    with pytest.raises(LookupError) as caught:
        troupe.get(broken.use.remote(), timeout=20)
    assert isinstance(caught.value, exceptions.ActorDiedError) and "no weights" in str(caught.value)


def test_a_killed_process_is_death_with_a_cause(idle: Home) -> None:
    victim = Counter.remote()
    pid = troupe.get(victim.pid.remote())
    waiting = victim.sleep.remote(60)
    os.kill(pid, signal.SIGKILL)
    for ref in (waiting, victim.add.remote()):
        with pytest.raises(exceptions.ActorDiedError, match="SIGKILL"):
            troupe.get(ref, timeout=20)


def test_kill_and_exit(idle: Home) -> None:
    first, second = Counter.remote(), Counter.remote()
    troupe.get([first.add.remote(), second.add.remote()])
    troupe.kill(first)
    with pytest.raises(exceptions.ActorDiedError):
        troupe.get(first.add.remote(), timeout=20)
    with pytest.raises(exceptions.ActorDiedError):
        troupe.get(second.leave.remote(), timeout=20)
    with pytest.raises(exceptions.RayActorError):
        troupe.get(second.add.remote(), timeout=20)
    with pytest.raises(ValueError):
        troupe.kill("no handle")


def name_is_taken(name: str) -> bool:
    """Return True if an actor of that name is not dead."""
    return any(
        each["name"] == name and each["state"] != "dead" for each in troupe.state.list_actors()
    )


def test_an_answer_that_is_heard_after_the_news_it_was_overtaken_by(
    idle: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The head's answer says pending; what follows says alive, and is heard on another thread,
    perhaps first."""

    def overtaken(
        self: Board, noun: str, identity: str, info: dict, attachment: bytes = b""
    ) -> None:
        assert info["state"] != "alive"
        eventually(
            lambda: (self.get(noun, identity) or ({},))[0].get("state") == "alive", what="the news"
        )
        for callback in list(self._callbacks[noun, identity]):
            callback(info, attachment)

    monkeypatch.setattr(Board, "post_reply", overtaken)
    actor = Counter.remote(5)
    assert troupe.get(actor.add.remote(2), timeout=TIMEOUT_S) == 7


def test_named_actors(idle: Home) -> None:
    made = Counter.options(name="shared").remote(5)
    troupe.get(made.add.remote())
    found = troupe.get_actor("shared")
    assert found == made and troupe.get(found.add.remote()) == 7
    with pytest.raises(exceptions.ActorAlreadyExistsError):
        Counter.options(name="shared").remote()
    again = Counter.options(name="shared", get_if_exists=True).remote()
    assert troupe.get(again.add.remote()) == 8
    troupe.kill(made)
    with pytest.raises(exceptions.ActorDiedError):
        troupe.get(made.add.remote(), timeout=20)
    eventually(lambda: not name_is_taken("shared"), what="the release of the name")
    with pytest.raises(ValueError, match="shared"):
        troupe.get_actor("shared")


def test_a_handle_travels(idle: Home) -> None:
    class Caller:
        def call(self, other: object) -> int:
            return troupe.get(other.add.remote(100))

    counter, caller = Counter.remote(), troupe.remote(Caller).remote()
    assert troupe.get(caller.call.remote(counter), timeout=20) == 100
    for each in (counter, caller):
        troupe.kill(each)


def test_an_actor_that_can_never_be_placed(idle: Home) -> None:
    with pytest.raises(exceptions.PlacementError, match="GPU"):
        handle = Counter.options(num_gpus=3).remote()
        troupe.get(handle.add.remote(), timeout=60)


def test_actors_wait_for_resources(idle: Home) -> None:
    big = [Counter.options(num_cpus=5).remote() for _ in range(2)]
    assert troupe.get(big[0].add.remote(), timeout=20) == 1
    pending = big[1].add.remote()
    assert troupe.wait([pending], timeout=0.3) == ([], [pending])
    troupe.kill(big[0])
    assert troupe.get(pending, timeout=20) == 1
    troupe.kill(big[1])


def test_threads_and_coroutines(idle: Home) -> None:
    class Both:
        def __init__(self) -> None:
            self.here = 0

        async def meet(self, wanted: int) -> int:
            """Returns once that many calls are in it at once."""
            import asyncio

            self.here += 1
            while self.here < wanted:
                await asyncio.sleep(0.01)
            return self.here

    made = troupe.remote(max_concurrency=4)(Both).remote()
    assert troupe.get([made.meet.remote(4) for _ in range(4)], timeout=TIMEOUT_S) == [4] * 4
    troupe.kill(made)


def test_misuse_of_classes_and_options(idle: Home) -> None:
    with pytest.raises(TypeError, match="remote"):
        Counter()
    with pytest.raises(ValueError, match="an actor has no nonsense="):
        Counter.options(nonsense=1)
    with pytest.raises(ValueError, match="lifetime"):
        Counter.options(lifetime="forever")
    for wrong, error, words in (
        ({"name": ""}, ValueError, "empty string"),
        ({"name": 3}, TypeError, "name must be a string"),
        ({"max_restarts": -2}, ValueError, "max_restarts must be a whole number"),
        ({"max_restarts": "1"}, ValueError, "max_restarts must be a whole number"),
    ):
        with pytest.raises(error, match=words):
            Counter.options(**wrong)
    with pytest.raises(
        TypeError, match="cannot inherit from the actor class Counter: inherit from a plain class"
    ):

        class Derived(Counter):  # noqa: F841
            """Not possible with Ray either."""

    handle = Counter.remote()
    with pytest.raises(AttributeError, match="no method"):
        handle.missing
    with pytest.raises(TypeError, match="remote"):
        handle.add()
    troupe.kill(handle)


def test_a_remote_function(idle: Home) -> None:
    @troupe.remote
    def square(x: int) -> int:
        return x * x

    assert troupe.get([square.remote(i) for i in range(4)], timeout=30) == [0, 1, 4, 9]

    @troupe.remote(num_cpus=2)
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        troupe.get(fail.remote(), timeout=30)


def test_placement_groups(idle: Home) -> None:
    group = troupe.util.placement_group([{"CPU": 2}, {"CPU": 1}], strategy="PACK", name="pair")
    assert group.id.hex() == group.id and group.id.binary().hex() == group.id
    assert troupe.get(group.ready(), timeout=20) == group and group.wait(10)
    assert troupe.util.get_placement_group("pair") == group
    inside = Counter.options(
        num_cpus=2, scheduling_strategy=PlacementGroupSchedulingStrategy(group, 0)
    ).remote()
    assert troupe.get(inside.add.remote(), timeout=20) == 1
    assert troupe.available_resources()["CPU"] == 5
    older = Counter.options(
        num_cpus=1, placement_group=group, placement_group_bundle_index=1
    ).remote()
    assert (
        troupe.get(older.add.remote(), timeout=20) == 1 and troupe.available_resources()["CPU"] == 5
    )
    assert (
        troupe.get(
            troupe.remote(num_cpus=0, placement_group=group)(
                lambda: troupe.get_runtime_context().get_placement_group_id()
            ).remote(),
            timeout=20,
        )
        == group.id
    )
    with pytest.raises(ValueError, match="both say where"):
        Counter.options(placement_group=group, scheduling_strategy="SPREAD")
    with pytest.raises(ValueError, match="bundle_index=1 needs a placement_group"):
        Counter.options(placement_group_bundle_index=1)
    with pytest.raises(ValueError, match="bundle index 2 is invalid"):
        PlacementGroupSchedulingStrategy(group, 2)
    troupe.util.remove_placement_group(group)
    with pytest.raises(
        exceptions.ActorDiedError
    ):  # the process ends after the answer: a call may come before that
        eventually(
            lambda: troupe.get(inside.add.remote(), timeout=20) < 0,
            what="the end of the group's actor",
        )
    with pytest.raises(exceptions.TaskPlacementGroupRemoved):
        troupe.get(group.ready(), timeout=20)


def test_a_group_that_can_never_be_placed(idle: Home) -> None:
    with pytest.raises(exceptions.PlacementError, match="one"):
        troupe.util.placement_group([{"CPU": 5}] * 2, strategy="STRICT_PACK")
    with pytest.raises(ValueError, match="strategy"):
        troupe.util.placement_group([{"CPU": 1}], strategy="TIGHT")
    with pytest.raises(ValueError, match="asks for nothing"):
        troupe.util.placement_group([{"CPU": 0}])


def test_what_the_cluster_has(idle: Home) -> None:
    memory = troupe.cluster_resources()["memory"]  # seven tenths of the machine's, whole GiB or MiB
    everything = {"CPU": 8.0, "memory": memory, "node:127.0.0.1": 1.0}
    assert memory > 0 and memory % 2**20 == 0 and troupe.cluster_resources() == everything
    (node,) = troupe.nodes()
    assert node["Alive"] and node["NodeName"] == "one" and node["Resources"] == everything
    assert troupe.state.available_resources_per_node() == {
        node["NodeID"]: {"CPU": 8.0, "memory": memory}
    }


def test_memory_is_reserved_and_given_back(idle: Home) -> None:
    whole = troupe.cluster_resources()["memory"]
    holder = Counter.options(memory=whole).remote(0)
    troupe.get(holder.add.remote(), timeout=20)
    assert troupe.available_resources().get("memory", 0) == 0
    waits = troupe.remote(memory=whole / 2)(
        lambda: troupe.get_runtime_context().get_assigned_resources()["memory"]
    ).remote()
    assert troupe.wait([waits], timeout=0.3) == ([], [waits])
    troupe.kill(holder)
    assert troupe.get(waits, timeout=20) == whole / 2
    with pytest.raises(exceptions.TaskUnschedulableError, match="memory needed"):
        troupe.get(troupe.remote(memory=2 * whole)(lambda: None).remote(), timeout=20)
    with pytest.raises(exceptions.PlacementError, match="memory"):
        distributed(processes=2, memory=0.8 * whole, remote=True)(lambda: None).submit()
    share = distributed(processes=2, memory="8 MiB", remote=True)(
        lambda: troupe.cluster_resources()["memory"]
    )
    assert share.distributed() == [16 << 20] * 2
    with pytest.raises(ValueError, match="\"80GiB\", not '8 Gb'"):
        distributed(processes=2, memory="8 Gb")
