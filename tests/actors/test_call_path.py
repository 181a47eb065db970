"""Method: real actors in forked processes behind real Unix sockets, called through troupe._native.

Values, order, Refs and errors. Every wait has a deadline: a hang is a failure, not a stuck run.
"""

import asyncio
import os
import signal
import threading
import time

import pytest
from call_support import (
    ACTOR_DIED,
    ACTOR_UNAVAILABLE,
    TIMEOUT,
    CallError,
    Counter,
    Odd,
    code_of,
    get,
    native,
    wait,
)

# ---- calls and values ----------------------------------------------------------------------


def test_values_come_back_as_they_were(start):
    c = start(Counter).connect()
    values = [
        None,
        True,
        False,
        0,
        -1,
        2**63 - 1,
        -(2**63),
        2**80,
        0.5,
        float("inf"),
        b"",
        b"\0" * 100,
        "",
        "h\u00e9",
        "\ud800",
        [],
        {"a": [1, (2, 3)]},
        {1, 2},
        1j,
        ...,
        range(3),
        "x" * 300000,
    ]
    refs = [c.call("echo", v) for v in values]
    assert get(refs, 20) == values
    assert [type(v) for v in get(refs)] == [type(v) for v in values]


def test_arguments_by_position_and_by_name(start):
    c = start(Counter).connect()
    assert get(c.call("echo", 1, x="a"), 20) == ((1,), {"x": "a"})
    assert get(c.call("echo", *range(100)), 20) == (tuple(range(100)), {})
    assert get(c.call("echo", **{f"k{i}": i for i in range(100)}), 20)[1]["k99"] == 99
    assert get(c.call("inc", by=5), 20) == 5


def test_more_shapes_than_have_ids(start):
    c = start(Counter).connect()
    for i in range(400):  # 256 have an id; the rest carry their names
        assert get(c.call("echo", **{f"name{i}": i}), 20) == ((), {f"name{i}": i})
    assert get(c.call("echo", **{"name399": 1}), 20) == ((), {"name399": 1})


def test_functions_and_main_classes_travel_by_value(start):
    c = start(Counter).connect()
    double = get(c.call("echo", [lambda x: 2 * x]), 20)[0]
    assert double(21) == 42

    class Point:
        x = 7

    assert get(c.call("echo", Point()), 20).x == 7


def test_sync_calls_are_in_order(start):
    c = start(Counter).connect()
    for i in range(1, 2001):
        assert get(c.call("inc"), 20) == i


def test_pipelined_calls_give_distinct_results(start):
    c = start(Counter).connect()
    refs = [c.call("inc") for _ in range(100_000)]
    assert get(refs, 60) == list(range(1, 100_001))
    assert c.outstanding == 0


def test_many_threads_on_one_channel(start):
    c = start(Counter).connect()
    seen, errors = [], []

    def work():
        try:
            mine = [get(c.call("inc"), 30) for _ in range(300)]
            mine += get([c.call("inc") for _ in range(700)], 30)
            assert mine == sorted(mine)
            seen.extend(mine)
        except BaseException as e:  # reported by the assertion below
            errors.append(e)

    threads = [threading.Thread(target=work) for _ in range(8)]
    [t.start() for t in threads]
    [t.join(60) for t in threads]
    assert not errors
    assert sorted(seen) == list(range(1, 8001))


def test_two_channels_to_one_actor_share_its_state(start):
    actor = start(Counter)
    a, b = actor.connect(), actor.connect()
    for i in range(50):
        assert get(a.call("inc"), 20) == 2 * i + 1
        assert get(b.call("inc"), 20) == 2 * i + 2


def test_n_callers_by_n_actors_do_not_deadlock(start):
    """callpath.md section 5: every socket full, everybody waiting for another one."""
    actors = [start(Counter) for _ in range(4)]
    payload = b"p" * 600
    callers = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            code = 1
            signal.alarm(150)
            try:
                channels = [a.connect() for a in actors]
                refs = [channels[i % 4].call("echo", payload) for i in range(20_000)]
                code = 0 if all(v == payload for v in get(refs, 120)) else 2
            finally:
                os._exit(code)
        callers.append(pid)
    for pid in callers:  # a deadlocked one is ended by its alarm
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_actor_calls_another_actor_from_a_method(start):
    inner = start(Counter)

    class Outer:
        def __init__(self):
            self.channel = None

        def relay(self, value):
            self.channel = self.channel or native.CallChannel(inner.path)
            return get(self.channel.call("echo", value), 20)

    outer = start(Outer).connect()
    assert get([outer.call("relay", i) for i in range(500)], 30) == list(range(500))


def test_caller_is_bounded_and_nothing_is_lost(start):
    c = start(Counter).connect()
    block = b"z" * 100_000  # 40 MB in all, 1 MiB of it unsent at most
    refs = [c.call("echo", block) for _ in range(400)]
    assert all(v == block for v in get(refs, 60))


def test_bound_methods_are_calls(start):
    c = start(Counter).connect()
    inc, echo = c.method("inc"), c.method("echo")
    assert get([inc() for _ in range(3000)], 20) == list(range(1, 3001))
    assert get(echo(1, *(2, 3), x=4, **{"y": 5}), 20) == ((1, 2, 3), {"x": 4, "y": 5})
    assert "inc() of actor Test" in repr(inc)
    with pytest.raises(TypeError):
        c.method(3)


def test_arrays_and_instances(start):
    numpy = pytest.importorskip("numpy")
    c = start(Counter).connect()
    array = numpy.arange(100_000).reshape(100, 1000)
    assert (get(c.call("echo", array), 20) == array).all()
    assert get(c.call("echo", {"x": [numpy.float32(1.5)] * 100}), 20)["x"][99] == 1.5
    error = ValueError("kept", 1)
    assert get(c.call("echo", [error]), 20)[0].args == error.args


# ---- Refs ----------------------------------------------------------------------------------


def test_wait_keeps_order_and_counts(start):
    a, b = start(Counter).connect(), start(Counter).connect()
    slow, fast = a.call("sleep", 5), b.call("inc")
    ready, rest = wait([slow, fast], 1, 20)
    assert ready == [fast] and rest == [slow]
    refs = [b.call("inc") for _ in range(10)]
    get(refs, 20)
    ready, rest = wait(refs, 4)
    assert ready == refs[:4] and rest == refs[4:]
    assert wait([slow], timeout=0) == ([], [slow])


def test_wait_refuses_nonsense(start):
    c = start(Counter).connect()
    r = c.call("f")
    for args in ([r, r],), ([r], 2), ([r], 0), ([],):
        with pytest.raises(ValueError):
            wait(*args)
    with pytest.raises(ValueError):
        wait([r], 1, -1)
    for bad in (r, [1]):
        with pytest.raises(TypeError):
            wait(bad)
    with pytest.raises(ValueError):
        get(3)


def test_timeout_names_its_start_and_length(start, fifo):
    c = start(Counter).connect()
    ref = c.call("read", str(fifo))
    began = time.monotonic()
    code, text = code_of(ref, 0.2)
    assert time.monotonic() - began > 0.15 and not ref.done()
    assert code == TIMEOUT
    assert "within 0.2 s of 20" in text and "read()" in text and "actor Test" in text
    fifo.write_text("over")
    assert get(ref, 60) == "over"
    assert code_of(c.call("sleep", 0.3), 0)[0] == TIMEOUT


def test_a_ref_is_an_argument_by_its_value(start):
    a, b = start(Counter).connect(), start(Counter).connect()
    assert get(b.call("echo", a.call("inc"), x=a.call("inc")), 20) == ((1,), {"x": 2})
    assert get(b.call("echo", native.completed_ref([1, 2])), 20) == [1, 2]
    with pytest.raises(KeyError):
        get(b.call("echo", a.call("boom")), 20)
    inside = a.call("inc")
    assert get(b.call("echo", 1, [inside], x={"k": inside}), 20) == (
        (1, [inside]),
        {"x": {"k": inside}},
    ), "a ref inside stays one"
    assert get(inside, 20) == 3


def test_refs_hash_and_have_names(start):
    c = start(Counter).connect()
    refs = [c.call("f") for _ in range(100)] + [native.completed_ref(i) for i in range(100)]
    assert len({r.hex() for r in refs}) == len(set(refs)) == 200
    assert all(len(r.hex()) == 32 for r in refs)
    get(refs, 20)
    assert all(r.done() for r in refs)


def test_done_makes_progress_without_get(start, eventually):
    c = start(Counter).connect()
    refs = [c.call("inc") for _ in range(5)]
    eventually(lambda: all(r.done() for r in refs))


def test_batched_calls_leave_without_get(start, eventually, tmp_path):
    class Toucher:
        def touch(self, i):
            (tmp_path / str(i)).touch()

    c = start(Toucher).connect()
    for i in range(5):
        c.call("touch", i)
    eventually(lambda: len(list(tmp_path.iterdir())) == 5)


def test_futures_complete_without_a_waiter(start):
    c = start(Counter).connect()
    futures = [c.call("inc").future() for _ in range(1000)]
    assert [f.result(20) for f in futures] == list(range(1, 1001))
    with pytest.raises(KeyError):
        c.call("boom").future().result(20)
    threads = set()
    called = threading.Event()
    future = c.call("sleep", 0.2).future()
    future.add_done_callback(lambda f: (threads.add(threading.current_thread()), called.set()))
    assert called.wait(20) and threading.main_thread() not in threads


def test_await(start):
    c = start(Counter).connect()

    async def outer():
        async def one(ref):
            return await ref

        values = await asyncio.gather(*(one(c.call("inc")) for _ in range(200)))
        with pytest.raises(KeyError):
            await one(c.call("boom"))
        return values

    assert asyncio.run(asyncio.wait_for(outer(), 30)) == list(range(1, 201))


def test_local_refs():
    ref = native.completed_ref({"a": 1})
    assert ref.done() and get(ref) == {"a": 1} and get(ref) is not get(ref)
    ref, resolver = native.pending_ref()
    assert not ref.done() and wait([ref], timeout=0) == ([], [ref])
    threading.Timer(0.1, resolver.set_value, [[1]]).start()
    assert get(ref, 20) == [1]
    assert resolver.set_value(2) is False and get(ref) == [1]
    ref, resolver = native.pending_ref()
    resolver.set_error(ACTOR_DIED, "no more")
    assert code_of(ref) == (ACTOR_DIED, "no more")
    ref, resolver = native.pending_ref()
    resolver.set_exception(KeyError("k"))
    with pytest.raises(KeyError):
        get(ref)
    ref, resolver = native.pending_ref()
    future = ref.future()
    del resolver
    assert "gone" in str(future.exception(20))


# ---- errors --------------------------------------------------------------------------------


def test_exception_keeps_its_type_and_carries_the_traceback(start):
    c = start(Counter).connect()
    with pytest.raises(KeyError) as caught:
        get(c.call("boom"), 20)
    assert caught.value.args == ("missing",)
    assert "_deeper" in "".join(caught.value.__notes__)
    with pytest.raises(AttributeError, match="nothing_here"):
        get(c.call("nothing_here"), 20)
    with pytest.raises(TypeError):
        get(c.call("inc", 1, 2, 3), 20)


def test_task_error_factory_gets_the_particulars(start):
    seen = []

    def factory(*particulars):
        seen.append(particulars)
        return RuntimeError("made by the factory")

    native.set_task_error_factory(factory)
    c = start(Counter).connect()
    with pytest.raises(RuntimeError, match="made by the factory"):
        get(c.call("boom"), 20)
    for method in ("odd", "stubborn"):
        with pytest.raises(RuntimeError):
            get(c.call(method), 20)
    exception, type_name, text, traceback_text, method, description, of_argument = seen[0]
    assert isinstance(exception, KeyError) and type_name == "KeyError" and text == "'missing'"
    assert (
        "_deeper" in traceback_text
        and method == "boom"
        and description.startswith("actor Test")
        and of_argument is False
    )
    assert (
        type(seen[1][0]) is Odd and vars(seen[1][0]) == {"a": 1, "b": 2} and seen[1][2] == "odd one"
    )
    assert seen[2][0] is None and seen[2][1].endswith("Stubborn") and seen[2][2] == "a stubborn one"


def test_unpicklable_things_are_errors_not_ends(start):
    c = start(Counter).connect()
    with pytest.raises(TypeError, match="pickle"):
        c.call("echo", threading.Lock())
    with pytest.raises(TypeError, match="pickle"):
        get(c.call("unpicklable"), 20)
    with pytest.raises(Exception, match="made here"):
        get(c.call("local_error"), 20)
    assert get(c.call("inc"), 20) == 1


def test_argument_that_raises_while_unpickled_is_the_calls_error(start):
    c = start(Counter).connect()

    with pytest.raises(ZeroDivisionError):
        get(c.call("echo", _Grenade()), 20)
    assert get(c.call("inc"), 20) == 1


class _Grenade:
    def __reduce__(self):
        return (divmod, (1, 0))


def test_too_large_is_named_and_survived(start):
    c = start(Counter).connect()
    with pytest.raises(
        CallError, match=r"arguments of echo\(\) take 17.6 MiB, one call may take 16"
    ):
        c.call("echo", *[b"x" * (90 << 10)] * 200)  # none of them large enough for shared memory
    assert len(get(c.call("echo", b"x" * (17 << 20)), 20)) == 17 << 20
    assert len(get(c.call("big", 17 << 20), 20)) == 17 << 20
    with pytest.raises(ValueError, match="65536 arguments, 65535 are allowed"):
        c.call("echo", *range(65536))
    with pytest.raises(ValueError, match="1024 are allowed"):
        c.call("x" * 2000)


def test_connecting_to_nobody_is_an_error(tmp_path):
    with pytest.raises(CallError) as caught:
        native.CallChannel(str(tmp_path / "none.sock"), description="actor Gone(1)")
    assert caught.value.code == ACTOR_UNAVAILABLE and "actor Gone(1)" in str(caught.value)
    with pytest.raises(CallError, match="107"):
        native.CallChannel("/" + "x" * 200)
