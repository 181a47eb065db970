"""Method: real actors in forked processes behind real Unix sockets, called through troupe._native.

Ends: death, verdicts, forks, signals; and actors that answer out of order. Every wait has a
deadline: a hang is a failure, not a stuck run.
"""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import weakref

import pytest
from call_support import (
    ACTOR_DIED,
    MAYBE_EXECUTED,
    NOT_SENT,
    CallError,
    Counter,
    code_of,
    get,
    native,
    wait,
)

# ---- ends ----------------------------------------------------------------------------------


class Mixed(Counter):
    async def later(self):
        return b"ok"


def test_an_actor_outlives_callers_that_leave_while_their_replies_are_written(start):
    actor = start(Mixed, 1000, loop=True)
    for _ in range(300):
        c = actor.connect()
        assert get([c.call("f") for _ in range(50)], 20) == [b"ok"] * 50
        c.close()
    assert get(actor.connect().call("f"), 20) == b"ok"


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
    wait(refs, 1, 0.05)  # time for the call to be sent
    actor.kill()
    for ref in refs:
        code, text = code_of(ref)
        assert code == MAYBE_EXECUTED and "within 0.3 s" in text and "may have run" in text
    assert code_of(c.call("inc"))[0] == NOT_SENT


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
    assert code_of(c.call("f"))[0] == NOT_SENT


def test_sys_exit_in_a_method_ends_serving_and_answers_nothing(start):
    actor = start(Counter)
    assert code_of(actor.connect(grace_s=0.2).call("leave"))[0] == MAYBE_EXECUTED
    assert os.waitstatus_to_exitcode(actor.wait()) == 3


def test_sys_exit_of_0_is_an_answer(start):
    actor = start(Counter)
    with pytest.raises(SystemExit):
        get(actor.connect(grace_s=0.2).call("leave", 0), 20)
    assert os.waitstatus_to_exitcode(actor.wait()) == 0


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
    class Handle:
        def __init__(self, channel):
            self.channel = channel
            channel.set_on_disconnect(self.gone)

        def gone(self):
            pass

    def sockets():
        """By what they are, not by number: those that earlier tests left close meanwhile."""
        found = set()
        for each in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):  # closed since
                found.add(os.readlink(f"/proc/self/fd/{each}"))
        return {each for each in found if each.startswith("socket:")}

    actor = start(Counter)
    gc.collect()
    before = sockets()
    handle = Handle(actor.connect())
    assert get(handle.channel.call("inc"), 20) == 1
    mine = sockets() - before
    assert mine
    seen = weakref.ref(handle)
    del handle
    gc.collect()
    assert seen() is None
    assert not mine & sockets()


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
    done = subprocess.run(
        [sys.executable, "-c", code, _IN_A_SUBINTERPRETER % native.__file__],
        capture_output=True,
        text=True,
        timeout=60,
    )
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
    how, fifo = sys.argv[3:]
    if how == "follower":
        other = threading.Thread(target=lambda: native.get(c.call("read", fifo)), daemon=True)
        other.start(); time.sleep(0.3)  # lint-ok: it should lead by then; right in any case
    ref = c.call("read", fifo)  # nobody ever writes into it: the interrupt alone ends the wait
    def interrupt():
        time.sleep(0.3)  # lint-ok: the wait should block by then; right in any case
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt).start()
    try:
        native.wait([ref]) if how == "wait" else native.get(ref)
    except KeyboardInterrupt:
        os._exit(0)
    os._exit(2)
""")


@pytest.mark.parametrize("how", ["get", "wait", "follower"])
def test_ctrl_c_ends_a_wait(start, fifo, how):
    actor = start(Counter)
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED, native.__file__, actor.path, how, str(fifo)],
        timeout=60,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_signal_handlers_run_in_an_idle_actor(start):
    class Handling:
        def __init__(self):
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))

    actor = start(Handling)
    c = actor.connect()
    with pytest.raises(AttributeError):  # the actor serves, so the handler is installed
        get(c.call("nothing"), 20)
    actor.kill(signal.SIGTERM)
    assert os.waitstatus_to_exitcode(actor.wait()) == 7


def test_stop_ends_serve():
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
