"""Refs, ActorPool, Queue, names and the runtime context through real processes."""

from __future__ import annotations

import asyncio
import queue
import threading
from pathlib import Path

import pytest
from conftest import TIMEOUT_S, Home, eventually

import troupe
from troupe import exceptions
from troupe.util import ActorPool
from troupe.util.queue import Empty, Full, Queue


@troupe.remote
class Worker:
    """Doubles, and waits."""

    def __init__(self) -> None:
        self.pause = threading.Event()

    def double(self, value: int) -> int:
        return 2 * value

    def wait_for(self, path: str) -> str:
        while not Path(path).exists():
            self.pause.wait(0.01)
        return path

    def fail(self) -> None:
        raise KeyError("nothing here")

    def me(self) -> object:
        return troupe.get_runtime_context().current_actor

    def context(self) -> dict:
        here = troupe.get_runtime_context()
        return {
            "worker": here.get_worker_id(),
            "labels": here.get_node_labels(),
            "actor": here.get_actor_id(),
        }


@pytest.fixture
def workers(idle: Home):
    """Two actors, killed after the test."""
    made = [Worker.remote(), Worker.remote()]
    yield made
    for each in made:
        troupe.kill(each)


def test_refs(workers, tmp_path: Path) -> None:
    worker, gate = workers[0], tmp_path / "gate"
    ref = worker.wait_for.remote(str(gate))
    assert bytes.fromhex(ref.hex()) == ref.binary() and not ref.is_nil() and {ref: 1}[ref] == 1
    for timeout in (0, 0.05):
        with pytest.raises(exceptions.GetTimeoutError):
            troupe.get(ref, timeout=timeout)
        with pytest.raises(TimeoutError):
            troupe.get([ref, ref], timeout=timeout)
    told: queue.Queue = queue.Queue()
    ref._on_completed(told.put)
    future = ref.future()
    gate.touch()
    assert troupe.get([ref, ref], timeout=20) == [str(gate)] * 2 and troupe.get(
        ref, timeout=0
    ) == str(gate)
    assert told.get(timeout=20) == str(gate) == future.result(20)
    worker.fail.remote()._on_completed(told.put)
    assert isinstance(told.get(timeout=20), KeyError)

    async def together() -> list:
        return await asyncio.gather(*(each.double.remote(i) for i in range(10) for each in workers))

    assert asyncio.run(together()) == [2 * i for i in range(10) for _ in workers]
    assert troupe.get([]) == [] and troupe.wait([]) == ([], [])
    for wrong, error in ((1, ValueError), ({ref}, ValueError), ([ref, 2], TypeError)):
        with pytest.raises(error):
            troupe.get(wrong)
        with pytest.raises(TypeError):
            troupe.wait(wrong)
    for wrong in ({"num_returns": 0}, {"num_returns": 2}, {"timeout": -1}):
        with pytest.raises(ValueError):
            troupe.wait([ref], **wrong)


def test_an_actor_pool(workers, tmp_path: Path) -> None:
    pool = ActorPool(workers)
    assert list(pool.map(lambda actor, value: actor.double.remote(value), range(20))) == [
        2 * i for i in range(20)
    ]
    unordered = pool.map_unordered(lambda actor, value: actor.double.remote(value), range(20))
    assert sorted(unordered) == [2 * i for i in range(20)]
    with pytest.raises(StopIteration):
        pool.get_next()
    gate = tmp_path / "gate"
    pool.submit(lambda actor, path: actor.wait_for.remote(path), str(gate))
    pool.submit(lambda actor, value: actor.double.remote(value), 4)
    assert not pool.has_free() and pool.has_next() and pool.pop_idle() is None
    assert pool.get_next_unordered(timeout=20) == 8
    with pytest.raises(TimeoutError):
        pool.get_next(timeout=0.05)
    gate.touch()
    assert pool.get_next(timeout=20) == str(gate) and not pool.has_next()
    taken = pool.pop_idle()
    assert taken in workers
    pool.push(taken)
    with pytest.raises(ValueError, match="already"):
        pool.push(taken)
    failing = pool.map(lambda actor, _: actor.fail.remote(), [1])
    with pytest.raises(KeyError):
        list(failing)
    assert list(pool.map(lambda actor, value: actor.double.remote(value), [1])) == [2]


def test_a_queue(idle: Home) -> None:
    line = Queue(maxsize=2)
    line.put("a")
    line.put("b", timeout=60)
    assert line.full() and len(line) == 2 == line.qsize() and not line.empty()
    with pytest.raises(
        Full, match="^no room: 2 of 2 items are there, and 1 more were put$"
    ) as full:
        line.put_nowait("c")
    assert type(full.value) is Full, "itself, not an error of a method of the actor behind it"
    with pytest.raises(queue.Full):
        line.put("c", timeout=0.05)
    assert line.get() == "a" and line.get(timeout=60) == "b" and line.empty()
    with pytest.raises(Empty):
        line.get_nowait()
    with pytest.raises(queue.Empty):
        line.get(timeout=0.05)
    line.put_nowait_batch([1, 2])
    with pytest.raises(Full):
        line.put_nowait_batch([3])
    with pytest.raises(Empty):
        line.get_nowait_batch(3)
    assert line.get_nowait_batch(2) == [1, 2]
    for wrong in (lambda: line.put_nowait_batch("ab"), lambda: line.get_nowait_batch(-1)):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ValueError, match="timeout"):
        line.get(timeout=-1)

    async def through() -> object:
        await line.put_async("x")
        return await line.get_async()

    assert asyncio.run(through()) == "x"
    with pytest.raises(Empty, match="^items asked for: 1, there: 0$") as empty:
        asyncio.run(line.get_async(block=False))
    assert type(empty.value) is Empty
    line.shutdown()
    with pytest.raises(exceptions.ActorDiedError):
        line.size()


def test_a_queue_between_processes(idle: Home) -> None:
    @troupe.remote
    class Feeder:
        def feed(self, line: Queue, count: int) -> None:
            for i in range(count):
                line.put(i)

    line, feeder = Queue(maxsize=3), Feeder.remote()
    fed = feeder.feed.remote(line, 50)
    assert [line.get(timeout=20) for _ in range(50)] == list(range(50))
    troupe.get(fed, timeout=20)
    line.shutdown(force=True)
    troupe.kill(feeder)


def test_names_of_actors(idle: Home) -> None:
    first = Worker.options(name="first").remote()
    other = Worker.options(name="second", namespace="elsewhere").remote()
    troupe.get([first.double.remote(1), other.double.remote(1)], timeout=20)
    assert troupe.util.list_named_actors() == ["first"]
    everywhere = troupe.util.list_named_actors(all_namespaces=True)
    assert {"name": "second", "namespace": "elsewhere"} in everywhere and len(everywhere) == 2
    for each in (first, other):
        troupe.kill(each)
    eventually(
        lambda: not troupe.util.list_named_actors(all_namespaces=True), what="the end of the names"
    )


def test_the_runtime_context(workers) -> None:
    assert troupe.get(workers[0].me.remote(), timeout=20) == workers[0]
    contexts = troupe.get([each.context.remote() for each in workers], timeout=20)
    here = troupe.get_runtime_context().get_worker_id()
    assert len({here, *(each["worker"] for each in contexts)}) == 3
    assert [each["actor"] for each in contexts] == [each._actor_id for each in workers]
    with pytest.raises(RuntimeError, match="current_actor"):
        troupe.get_runtime_context().current_actor


def test_what_an_actor_or_a_task_was_given(idle: Home) -> None:
    @troupe.remote(max_restarts=1)
    class Asks:
        def given(self) -> tuple:
            here = troupe.get_runtime_context()
            return (
                here.get_assigned_resources(),
                here.was_current_actor_reconstructed,
                here.runtime_env,
            )

    @troupe.remote(num_cpus=2)
    def task() -> dict:
        return troupe.get_runtime_context().get_assigned_resources()

    plain, large = (
        Asks.remote(),
        Asks.options(num_cpus=2, runtime_env={"env_vars": {"A": "b"}}).remote(),
    )
    assert troupe.get(plain.given.remote(), timeout=20) == ({}, False, {})
    assert troupe.get(large.given.remote(), timeout=20) == (
        {"CPU": 2.0},
        False,
        {"env_vars": {"A": "b"}},
    )
    troupe.kill(plain, no_restart=False)
    again = plain.given.options(max_task_retries=-1)
    eventually(lambda: troupe.get(again.remote(), timeout=20)[1], what="the actor's second process")
    assert troupe.get(task.remote(), timeout=20) == {"CPU": 2.0}
    assert troupe.get_runtime_context().get_assigned_resources() == {}
    for each in (plain, large):
        troupe.kill(each)


class Held:
    """Cannot be pickled as it is."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.lock = threading.Lock()


def test_a_serializer_of_the_users(workers) -> None:
    @troupe.remote(num_cpus=0)
    class Reader:
        def word(self, held: list) -> str:
            return held[0].word

        def back(self, word: str) -> Held:
            troupe.util.register_serializer(
                Held, serializer=lambda held: held.word, deserializer=lambda word: Held(word + "!")
            )
            return Held(word)

    reader = Reader.remote()
    with pytest.raises(TypeError, match="pickle"):
        reader.word.remote([Held("a")])
    troupe.util.register_serializer(
        Held, serializer=lambda held: held.word.upper(), deserializer=Held
    )
    try:
        assert troupe.get(reader.word.remote([Held("a")]), timeout=TIMEOUT_S) == "A"
        assert troupe.get(troupe.put(Held("b")), timeout=TIMEOUT_S).word in ("b", "B")
        assert troupe.get(reader.back.remote("c"), timeout=TIMEOUT_S).word == "c!"
        held = Held("captured")
        assert (
            troupe.get(troupe.remote(lambda: held.word).remote(), timeout=TIMEOUT_S) == "CAPTURED"
        )
    finally:
        troupe.util.deregister_serializer(Held)
    with pytest.raises(TypeError, match="pickle"):
        reader.word.remote([Held("a")])
    troupe.util.deregister_serializer(Held)
    for wrong in (
        {"serializer": None, "deserializer": Held},
        {"serializer": str, "deserializer": 3},
    ):
        with pytest.raises(TypeError, match="must be callable"):
            troupe.util.register_serializer(Held, **wrong)
    with pytest.raises(TypeError, match="takes a class"):
        troupe.util.register_serializer("Held", serializer=str, deserializer=Held)


def test_rays_names_of_exceptions() -> None:
    for name in (
        "RayError",
        "RayTaskError",
        "RayActorError",
        "ActorDiedError",
        "ActorUnavailableError",
        "GetTimeoutError",
        "WorkerCrashedError",
        "TaskCancelledError",
        "NodeDiedError",
        "TaskPlacementGroupRemoved",
        "ActorPlacementGroupRemoved",
        "RuntimeEnvSetupError",
        "OutOfMemoryError",
        "OutOfDiskError",
        "ObjectStoreFullError",
        "RaySystemError",
        "RpcError",
        "AuthenticationError",
        "PendingCallsLimitExceeded",
        "TaskUnschedulableError",
        "ActorUnschedulableError",
        "CrossLanguageError",
        "UnserializableException",
        "ObjectLostError",
        "ObjectFetchTimedOutError",
        "ReferenceCountingAssertionError",
        "ObjectFreedError",
        "OwnerDiedError",
        "ObjectReconstructionFailedError",
        "LocalRayletDiedError",
        "ActorAlreadyExistsError",
        "ActorHandleNotFoundError",
    ):
        assert issubclass(getattr(exceptions, name), exceptions.RayError), name
    assert issubclass(exceptions.AsyncioActorExit, BaseException)
