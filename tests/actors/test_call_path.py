"""Method: real actors in forked processes behind real Unix sockets, called through troupe._native.

Every wait has a deadline: a hang is a failure, not a stuck run.
"""

import asyncio
import os
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from conftest import native

get, wait = native.get, native.wait

ACTOR_DIED, ACTOR_UNAVAILABLE, MAYBE_EXECUTED, NOT_SENT, TIMEOUT, TOO_LARGE = 11, 12, 13, 14, 7, 10


class CallError(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class Odd(Exception):
    """Cannot be rebuilt from its args."""

    def __init__(self, a, b):
        super().__init__("odd one")
        self.a, self.b = a, b


class Counter:
    def __init__(self):
        self.n = 0

    def f(self):
        return b"ok"

    def inc(self, by=1):
        self.n += by
        return self.n

    def echo(self, *args, **kwargs):
        return (args, kwargs) if kwargs or len(args) != 1 else args[0]

    def boom(self):
        return self._deeper({}, "missing")

    def _deeper(self, where, key):
        return where[key]

    def odd(self):
        raise Odd(1, 2)

    def local_error(self):
        class Local(Exception):
            pass

        raise Local("made here")

    def unpicklable(self):
        return threading.Lock()

    def sleep(self, seconds):
        time.sleep(seconds)
        return seconds

    def big(self, size):
        return b"x" * size

    def pid(self):
        return os.getpid()

    def leave(self):
        sys.exit(3)

    def fork_child(self, seconds):
        pid = os.fork()
        if pid == 0:
            time.sleep(seconds)
            os._exit(0)
        return pid


@pytest.fixture(autouse=True)
def error_factory():
    native.set_error_factory(CallError)
    yield
    native.set_error_factory(None)
    native.set_task_error_factory(None)


def code_of(ref, timeout=20):
    with pytest.raises(CallError) as caught:
        get(ref, timeout)
    return caught.value.code, str(caught.value)


# ---- calls and values ----------------------------------------------------------------------


def test_values_come_back_as_they_were(start):
    c = start(Counter).connect()
    values = [None, True, False, 0, -1, 2**63 - 1, -(2**63), 2**80, 0.5, float("inf"), b"", b"\0" * 100,
              "", "h\u00e9", "\ud800", [], {"a": [1, (2, 3)]}, {1, 2}, 1j, ..., range(3), "x" * 300000]
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
        except BaseException as e:  # shown by the assertion below
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
            try:
                channels = [a.connect() for a in actors]
                refs = [channels[i % 4].call("echo", payload) for i in range(20_000)]
                code = 0 if all(v == payload for v in get(refs, 120)) else 2
            finally:
                os._exit(code)
        callers.append(pid)
    deadline = time.monotonic() + 150
    while callers:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid in callers:
            assert os.waitstatus_to_exitcode(status) == 0
            callers.remove(pid)
        elif time.monotonic() > deadline:
            [os.kill(p, signal.SIGKILL) for p in callers]
            pytest.fail("deadlock: callers still wait")
        else:
            time.sleep(0.01)


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
    with pytest.raises(TypeError):
        get(3)


def test_timeout_names_its_start_and_length(start):
    c = start(Counter).connect()
    ref = c.call("sleep", 1.0)
    began = time.monotonic()
    code, text = code_of(ref, 0.2)
    assert 0.15 < time.monotonic() - began < 0.9
    assert code == TIMEOUT
    assert "within 0.2 s of 20" in text and "sleep()" in text and "actor Test" in text
    assert get(ref, 20) == 1.0
    assert code_of(c.call("sleep", 0.3), 0)[0] == TIMEOUT


def test_a_ref_is_an_argument_by_its_value(start):
    a, b = start(Counter).connect(), start(Counter).connect()
    assert get(b.call("echo", a.call("inc"), x=a.call("inc")), 20) == ((1,), {"x": 2})
    assert get(b.call("echo", native.completed_ref([1, 2])), 20) == [1, 2]
    with pytest.raises(KeyError):
        b.call("echo", a.call("boom"))
    with pytest.raises(TypeError, match=r"argument 2 of echo\(\) holds a Ref"):
        b.call("echo", 1, [a.call("inc")])
    with pytest.raises(TypeError, match=r"argument 'x' of echo\(\) holds a Ref"):
        b.call("echo", 1, x={"k": a.call("inc")})


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
    with pytest.raises(RuntimeError):
        get(c.call("odd"), 20)
    exception, type_name, text, traceback_text, method, description = seen[0]
    assert isinstance(exception, KeyError) and type_name == "KeyError" and text == "'missing'"
    assert "_deeper" in traceback_text and method == "boom" and description.startswith("actor Test")
    assert seen[1][0] is None and seen[1][1].endswith("Odd") and seen[1][2] == "odd one"


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
    with pytest.raises(CallError, match=r"arguments of echo\(\) take 17.0 MiB, one call may take 16"):
        c.call("echo", b"x" * (17 << 20))
    code, text = code_of(c.call("big", 17 << 20))
    assert code == TOO_LARGE and "result of big()" in text
    assert len(get(c.call("big", 15 << 20), 20)) == 15 << 20
    with pytest.raises(ValueError, match="1025 arguments"):
        c.call("echo", *range(1025))
    with pytest.raises(ValueError, match="1024 are allowed"):
        c.call("x" * 2000)


def test_connecting_to_nobody_is_an_error(tmp_path):
    with pytest.raises(CallError) as caught:
        native.CallChannel(str(tmp_path / "none.sock"), description="actor Gone(1)")
    assert caught.value.code == ACTOR_UNAVAILABLE and "actor Gone(1)" in str(caught.value)
    with pytest.raises(CallError, match="107"):
        native.CallChannel("/" + "x" * 200)


# ---- ends ----------------------------------------------------------------------------------


def test_killed_actor_with_verdict(start):
    actor = start(Counter)
    c = actor.connect(grace_s=60)
    assert get(c.call("inc"), 20) == 1
    ended = threading.Event()
    c.set_on_disconnect(ended.set)
    refs = [c.call("sleep", 60) for _ in range(3)]
    actor.kill()
    assert ended.wait(20)
    assert not any(r.done() for r in refs)  # an ended connection alone is not death
    c.fail(ACTOR_DIED, "killed by signal 9")
    for ref in [*refs, c.call("inc")]:
        code, text = code_of(ref)
        assert code == ACTOR_DIED and "killed by signal 9" in text and "actor Test" in text


def test_killed_actor_without_verdict(start):
    actor = start(Counter)
    c = actor.connect(grace_s=0.3)
    refs = [c.call("sleep", 60) for _ in range(3)]
    wait(refs, 1, 0.05)  # sent
    actor.kill()
    for ref in refs:
        code, text = code_of(ref)
        assert code == MAYBE_EXECUTED and "within 0.3 s" in text and "may have run" in text
    assert code_of(c.call("inc"))[0] == ACTOR_UNAVAILABLE


def test_call_after_the_end_was_not_sent(start, eventually):
    actor = start(Counter)
    c = actor.connect(grace_s=0.5)
    ended = threading.Event()
    c.set_on_disconnect(ended.set)
    actor.kill()
    assert ended.wait(20)
    assert code_of(c.call("inc"))[0] == NOT_SENT


def test_verdict_while_a_thread_waits(start):
    actor = start(Counter)
    c = actor.connect(grace_s=60)
    ref = c.call("sleep", 60)
    threading.Timer(0.2, c.fail, [ACTOR_DIED, "by verdict"]).start()
    assert code_of(ref) == (ACTOR_DIED, f"actor Test({actor.pid}): by verdict")


def test_close_fails_what_is_outstanding(start):
    c = start(Counter).connect()
    ref = c.call("sleep", 60)
    c.close()
    assert code_of(ref)[0] == MAYBE_EXECUTED
    assert code_of(c.call("f"))[0] == ACTOR_UNAVAILABLE


def test_sys_exit_in_a_method_ends_serving(start):
    actor = start(Counter)
    c = actor.connect(grace_s=0.2)
    with pytest.raises(SystemExit):
        get(c.call("leave"), 20)
    assert os.waitstatus_to_exitcode(actor.wait()) == 3


def test_child_of_the_actor_does_not_hold_its_socket(start):
    actor = start(Counter)
    c = actor.connect(grace_s=60)
    child = get(c.call("fork_child", 30), 20)
    ended = threading.Event()
    c.set_on_disconnect(ended.set)
    actor.kill()
    try:
        assert ended.wait(5), "a forked child keeps the connection open"
    finally:
        os.kill(child, signal.SIGKILL)


def test_fork_in_the_caller_leaves_everything_inherited_inert(start):
    actor = start(Counter)
    c = actor.connect()
    done, pending = c.call("inc"), c.call("sleep", 1)
    get(done, 20)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            assert get(done) == 1
            for use in (lambda: get(pending, 1), lambda: c.call("inc"), lambda: pending.done()):
                with pytest.raises(CallError, match="fork"):
                    use()
            c.close()
            del c, done, pending
            mine = actor.connect()
            assert get(mine.call("inc"), 20) == 2
            assert mine.call("inc").future().result(20) == 3
            os.write(write, b"ok")
        except BaseException as e:
            os.write(write, repr(e).encode())
        os._exit(0)
    os.close(write)
    assert os.read(read, 1000) == b"ok"
    os.waitpid(pid, 0)
    assert get(pending, 20) == 1
    assert get(c.call("inc"), 20) == 4


def test_a_channel_that_its_callback_refers_to_is_collected(start):
    import gc
    import weakref

    class Handle:
        def __init__(self, channel):
            self.channel = channel
            channel.set_on_disconnect(self.gone)

        def gone(self):
            pass

    actor = start(Counter)
    gc.collect()
    handle = Handle(actor.connect())
    assert get(handle.channel.call("inc"), 20) == 1
    seen = weakref.ref(handle)
    before = len(os.listdir("/proc/self/fd"))
    del handle
    gc.collect()
    assert seen() is None
    assert len(os.listdir("/proc/self/fd")) == before - 1


_IN_A_SUBINTERPRETER = """
import importlib.util
spec = importlib.util.spec_from_file_location("troupe._native", %r)
try:
    module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)
except ImportError as e:
    print("refused:", e)
"""


def test_a_subinterpreter_is_refused_with_a_sentence():
    code = (
        "import sys\n"
        "try: import _interpreters as i\n"
        "except ImportError: import _xxsubinterpreters as i\n"
        "i.run_string(i.create(), sys.argv[1])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, _IN_A_SUBINTERPRETER % native.__file__],
                          capture_output=True, text=True, timeout=60)
    assert "refused:" in done.stdout and "subinterpreter" in done.stdout, done.stdout + done.stderr


def test_importing_starts_no_thread():
    code = textwrap.dedent("""
        import importlib.util, os, sys
        spec = importlib.util.spec_from_file_location("troupe._native", sys.argv[1])
        module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)
        assert len(os.listdir("/proc/self/task")) == 1
    """)
    subprocess.run([sys.executable, "-c", code, native.__file__], check=True, timeout=60)


# ---- Ctrl-C --------------------------------------------------------------------------------

_INTERRUPTED = textwrap.dedent("""
    import importlib.util, os, signal, sys, threading, time
    spec = importlib.util.spec_from_file_location("troupe._native", sys.argv[1])
    native = importlib.util.module_from_spec(spec); spec.loader.exec_module(native)
    c = native.CallChannel(sys.argv[2])
    how = sys.argv[3]
    if how == "follower":
        other = threading.Thread(target=lambda: native.get(c.call("sleep", 3)), daemon=True)
        other.start(); time.sleep(0.3)
    ref = c.call("sleep", 3)
    sent = []
    def interrupt():
        time.sleep(0.3); sent.append(time.monotonic()); os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt).start()
    try:
        native.wait([ref]) if how == "wait" else native.get(ref)
    except KeyboardInterrupt:
        took = time.monotonic() - sent[0]
        print("interrupted after %.3f s" % took); os._exit(0 if took < 1.0 else 1)
    os._exit(2)
""")


@pytest.mark.parametrize("how", ["get", "wait", "follower"])
def test_ctrl_c_ends_a_wait(start, how):
    actor = start(Counter)
    done = subprocess.run([sys.executable, "-c", _INTERRUPTED, native.__file__, actor.path, how],
                          timeout=60, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


# ---- hostile peers -------------------------------------------------------------------------


def frame(body=b"", magic=0x5254, version=1, kind=1, flags=0, ext=0, size=None, attach=0, seq=1):
    size = len(body) if size is None else size
    return struct.pack("<HBBHHIIQQ", magic, version, kind, flags, ext, size, attach, seq, 0) + body


CALL_F = struct.pack("<HHHH", 0, 0, 0, 0) + struct.pack("<H", 1) + b"f" + b"\0" * 5
HOSTILE = {
    "junk": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 10,
    "magic": frame(magic=1),
    "version": frame(version=9),
    "kind": frame(kind=0),
    "oversize": frame(size=17 << 20),
    "odd size": frame(b"x" * 9),
    "attachment": frame(attach=8),
    "extension": frame(ext=1000),
    "empty": frame(b""),
    "reply": frame(CALL_F, flags=1),
    "sequence": frame(CALL_F, flags=2, seq=7),
    "shape": frame(struct.pack("<HHHH", 3, 0, 0, 0)),
    "big shape": frame(struct.pack("<HHHH", 999, 0, 0, 0)),
    "no names": frame(struct.pack("<HHHH", 0xFFFF, 0, 0, 0)),
    "many arguments": frame(struct.pack("<HHHH", 0, 60000, 0, 0), flags=2),
    "keywords": frame(struct.pack("<HHHH", 0, 1, 2, 0), flags=2),
    "name length": frame(struct.pack("<HHHHHHI", 0, 0, 0, 0, 60000, 0, 0), flags=2),
    "name utf8": frame(struct.pack("<HHHHH", 0, 0, 0, 0, 2) + b"\xff\xfe" + b"\0" * 4, flags=2),
    "no value": frame(struct.pack("<HHHHH", 0, 1, 0, 0, 4) + b"echo" + b"\x7f\0", flags=2),
    "value length": frame(struct.pack("<HHHHH", 0, 1, 0, 0, 4) + b"echo" + b"\x05\xff\xff\xff\xff" + b"\0" * 5, flags=2),
    "tail": frame(CALL_F + b"\0" * 64, flags=2),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_broken_frame_ends_its_connection_alone(start, what):
    actor = start(Counter)
    c = actor.connect()
    assert get(c.call("inc"), 20) == 1
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect(actor.path)
    s.sendall(HOSTILE[what])
    answer = b""
    while True:
        try:
            chunk = s.recv(65536)
        except ConnectionResetError:
            break
        if not chunk:
            break
        answer += chunk
    assert b"this connection sent" in answer
    assert get(c.call("inc"), 20) == 2
    assert actor.alive()


def test_a_good_frame_by_hand_is_answered(start):
    actor = start(Counter)
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect(actor.path)
    s.sendall(frame(CALL_F, flags=2)[:20])
    s.sendall(frame(CALL_F, flags=2)[20:] + frame(struct.pack("<HHHH", 0, 0, 0, 0), seq=2))
    answer = b""
    while len(answer) < 80:
        answer += s.recv(65536)
    assert answer[16:24] == struct.pack("<Q", 1) and b"ok" in answer[32:40]
    assert answer[56:64] == struct.pack("<Q", 2)


def test_a_server_that_answers_nonsense_fails_its_callers_calls(tmp_path):
    path = str(tmp_path / "s.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    c = native.CallChannel(path, description="actor Liar(1)")
    peer, _ = listener.accept()
    ref = c.call("f")
    assert peer.recv(1000)
    peer.sendall(frame(flags=1, seq=99))
    code, text = code_of(ref)
    assert code == MAYBE_EXECUTED and "a reply to call 99" in text and "actor Liar(1)" in text


def test_slow_reader_is_paused_and_others_are_served(start):
    actor = start(Counter)
    s = socket.socket(socket.AF_UNIX)
    s.connect(actor.path)
    s.settimeout(5)
    body = struct.pack("<HHHHH", 0, 1, 0, 0, 3) + b"big" + b"\x03" + struct.pack("<q", 1 << 20)
    body += b"\0" * (-len(body) % 8)
    again = struct.pack("<HHHH", 0, 1, 0, 0) + b"\x03" + struct.pack("<q", 1 << 20) + b"\0" * 7
    s.sendall(frame(body, flags=2) + b"".join(frame(again, seq=i) for i in range(2, 65)))
    c = actor.connect()
    assert [get(c.call("inc"), 20) for _ in range(100)] == list(range(1, 101))
    rss_kib = int(open(f"/proc/{actor.pid}/statm").read().split()[1]) * 4
    assert rss_kib < 400 << 10
    received = 0
    while received < 64 << 20:  # and the slow one gets everything, late
        received += len(s.recv(1 << 20))
    assert get(c.call("inc"), 20) == 101


def test_a_reply_is_not_held_by_the_long_call_behind_it(start):
    c = start(Counter).connect()
    assert get(c.call("inc"), 20) == 1
    refs = [c.call("inc") for _ in range(20)] + [c.call("sleep", 5)]
    began = time.monotonic()
    assert get(refs[:20], 20) == list(range(2, 22))
    assert time.monotonic() - began < 2


# ---- concurrent actors ---------------------------------------------------------------------


class Concurrent:
    def __init__(self):
        self.gate = threading.Event()

    def hold(self):
        return self.gate.wait(20)

    def open(self):
        self.gate.set()
        return True

    async def nap(self, seconds, value):
        await asyncio.sleep(seconds)
        return value

    async def raises(self):
        await asyncio.sleep(0)
        raise KeyError("async")


def test_threads_answer_out_of_order(start):
    c = start(Concurrent, max_concurrency=4).connect()
    held = [c.call("hold") for _ in range(3)]
    assert get(c.call("open"), 20) is True
    assert get(held, 20) == [True, True, True]


def test_coroutines_run_together(start):
    c = start(Concurrent).connect()
    began = time.monotonic()
    refs = [c.call("nap", 0.5, i) for i in range(50)]
    assert get(refs, 20) == list(range(50))
    assert time.monotonic() - began < 5
    slow, fast = c.call("nap", 5, "slow"), c.call("nap", 0, "fast")
    assert wait([slow, fast], 1, 20)[0] == [fast]
    with pytest.raises(KeyError):
        get(c.call("raises"), 20)


def test_exit_in_a_coroutine_is_that_calls_error(start):
    class Leaver:
        async def leave(self):
            sys.exit(4)

        async def f(self):
            return 1

    c = start(Leaver).connect()
    with pytest.raises(SystemExit):
        get(c.call("leave"), 20)
    assert get(c.call("f"), 20) == 1


def test_signal_handlers_run_in_an_idle_actor(start):
    class Handling:
        def __init__(self):
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))

    actor = start(Handling)
    c = actor.connect()
    with pytest.raises(AttributeError):  # it serves, so the handler is there
        get(c.call("nothing"), 20)
    actor.kill(signal.SIGTERM)
    assert os.waitstatus_to_exitcode(actor.wait()) == 7


def test_stop_ends_serve():
    import tempfile

    with tempfile.TemporaryDirectory(prefix="trp-") as directory:
        server = native.CallServer(os.path.join(directory, "s.sock"))
        assert os.stat(server.path).st_mode & 0o777 == 0o600
        thread = threading.Thread(target=server.serve, args=[Counter()])
        thread.start()
        c = native.CallChannel(server.path)
        assert get(c.call("inc"), 20) == 1
        server.stop()
        thread.join(20)
        assert not thread.is_alive()
        with pytest.raises(CallError):
            native.CallServer(os.path.join(directory, "no", "dir.sock"))
