"""Calls whose arguments are to come: they are made at once, and run when the last argument is
there.

Method: real actors in forked processes, called through troupe._native; arguments are refs that this
process answers itself, so that what waits does so until the test says otherwise.
"""

import os
import threading

import pytest
from call_support import ACTOR_DIED, CallError, Counter, code_of, get, native, wait

CANCELLED = 8


class Log(Counter):
    """Notes what it was called with, in order."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def note(self, what, *more, **named):
        self.seen.append(what)
        return [what, *more, *named.items()]

    def all(self):
        return self.seen

    def each(self, values):
        yield from values


def failed(ref):
    with pytest.raises(CallError) as caught:
        get(ref, 20)
    return str(caught.value)


def test_a_call_waits_for_its_argument_and_its_caller_does_not(start):
    c = start(Log).connect()
    ref, resolver = native.pending_ref()
    made = c.call("note", 1, ref, x=ref)
    assert not made.done() and wait([made], timeout=0.05) == ([], [made]) and c.outstanding == 1
    resolver.set_value({"a": [2]})
    assert get(made, 20) == [1, {"a": [2]}, ("x", {"a": [2]})]
    assert c.outstanding == 0


def test_later_calls_of_an_actor_that_keeps_order_wait_behind_it(start):
    c = start(Log).connect()
    first, resolve_first = native.pending_ref()
    second, resolve_second = native.pending_ref()
    made = [c.call("note", first), c.call("note", second), c.call("note", 3)]
    seen = c.call("all")
    resolve_second.set_value(2)
    assert wait([*made, seen], timeout=0.05)[0] == []
    resolve_first.set_value(1)
    assert get(seen, 20) == [1, 2, 3] and get(made, 20) == [[1], [2], [3]]
    assert get(c.call("note", 4), 20) == [4]


def test_without_an_order_a_call_overtakes_those_that_wait(start):
    c = start(Log).connect(ordered=False)
    first, resolve_first = native.pending_ref()
    second, resolve_second = native.pending_ref()
    made = [c.call("note", first), c.call("note", second), c.call("note", 3)]
    assert get(made[2], 20) == [3]
    resolve_second.set_value(2)
    assert get(made[1], 20) == [2]
    resolve_first.set_value(1)
    assert get(made[0], 20) == [1] and get(c.call("all"), 20) == [3, 2, 1]


def test_the_answer_of_one_actor_is_the_argument_of_another(start):
    a, b = start(Counter).connect(), start(Log).connect()
    slow = a.call("sleep", 0.2)
    last, resolver = native.pending_ref()
    made = [b.call("note", a.call("inc"), slow, last) for _ in range(200)]
    assert not made[0].done()
    resolver.set_value("last")
    assert get(made, 60) == [[i + 1, 0.2, "last"] for i in range(200)]


def test_an_argument_that_failed_is_the_calls_answer(start):
    c = start(Log).connect()
    waits, resolver = native.pending_ref()
    gone, _ = native.pending_ref()
    pair = c.method("note;returns=2")(waits)
    stream = c.method("each;returns=*")(waits)
    nothing = c.call("note", gone, 1)
    del _  # the answering process is gone
    assert "gone" in failed(nothing)
    resolver.set_error(ACTOR_DIED, "it is no more")
    assert [failed(ref) for ref in pair] == ["it is no more"] * 2
    assert failed(next(stream)) == "it is no more"
    # The argument had failed before the call
    assert failed(c.call("note", waits)) == "it is no more"
    assert get(c.call("all"), 20) == []


def test_an_exception_of_a_method_is_that_of_the_call_that_was_to_get_its_value(start):
    c, log = start(Counter).connect(), start(Log).connect()
    with pytest.raises(KeyError, match="missing"):
        get(log.call("note", c.call("boom")), 20)


def test_names_that_a_call_was_to_carry_do_not_get_lost_with_it(start):
    c = start(Log).connect()
    ref, resolver = native.pending_ref()
    first, second = c.call("note", 1, ref, name=1), c.call("note", 2, name=2)
    resolver.set_error(
        ACTOR_DIED, "no value"
    )  # the first call of this method with this keyword is never sent
    failed(first)
    assert get(second, 20) == [2, ("name", 2)]
    assert get(c.call("note", 3, name=3), 20) == [3, ("name", 3)]


def test_values_of_all_sizes_are_filled_in(start):
    numpy = pytest.importorskip("numpy")
    c = start(Counter).connect()
    for size in (0, 1, 10_000, 200_000, 30_000_000):
        ref, resolver = native.pending_ref()
        made = c.call("echo", "before", ref, x=ref)
        resolver.set_value(numpy.full(size, 7, dtype=numpy.uint8))
        (before, array), named = get(made, 20)
        assert (
            before == "before" and array.nbytes == size and bytes(array[:3]) == b"\7" * min(3, size)
        )
        assert named["x"].nbytes == size
    answers = [c.call("echo", c.call("big", size)) for size in (1000, 300_000, 20_000_000)]
    assert [len(each) for each in get(answers, 20)] == [1000, 300_000, 20_000_000]


def test_a_stream_whose_argument_comes_late_flows(start):
    c = start(Log).connect()
    ref, resolver = native.pending_ref()
    stream = c.method("each;returns=*;ahead=3")(ref)
    resolver.set_value(list(range(100)))
    assert [get(item, 20) for item in stream] == list(range(100))


def test_a_call_that_waits_can_be_cancelled_and_those_behind_it_go(start):
    c = start(Log).connect()
    ref, resolver = native.pending_ref()
    made, behind = c.call("note", ref), c.call("note", 2)
    made._cancel(False)
    code, text = code_of(made)
    assert code == CANCELLED and text == "note() was cancelled by its caller before it began"
    assert get(behind, 20) == [2]
    resolver.set_value(1)
    assert get(c.call("all"), 20) == [2]


def test_what_waits_ends_with_the_actors_verdict(start):
    c = start(Log).connect()
    ref, resolver = native.pending_ref()
    made = [c.call("note", ref), c.call("note", 2), *c.method("note;returns=2")(ref)]
    c.fail(ACTOR_DIED, "it died")
    for each in made:
        assert code_of(each) == (ACTOR_DIED, f"{c.description}: it died")
    resolver.set_value(1)
    assert code_of(c.call("note", 3))[0] == ACTOR_DIED


def test_what_waits_ends_with_its_channel(start):
    c = start(Log).connect()
    ref, _resolver = native.pending_ref()
    made = [c.call("note", ref), c.call("note", 2)]
    c.close()
    assert all("closed" in failed(each) for each in made)


def test_what_waits_when_its_actor_is_killed_ends_without_its_argument(start):
    actor = start(Log)
    c = actor.connect(grace_s=0.2)
    get(c.call("note", 0), 20)
    ref, _resolver = native.pending_ref()
    made = c.call("note", ref)
    actor.kill()
    assert "had not been sent" in failed(made)


def test_calls_that_wait_count_as_pending(start):
    c = start(Log).connect(pending_max=3)
    ref, resolver = native.pending_ref()
    made = [c.call("note", ref), c.call("note", 1), c.call("note", ref)]
    with pytest.raises(CallError, match="3 calls wait for an answer"):
        c.call("note", 4)
    with pytest.raises(CallError, match="3 calls wait for an answer"):
        c.call("note", ref)
    resolver.set_value(0)
    assert get(made, 20) == [[0], [1], [0]]
    assert get(c.call("note", 4), 20) == [4]


def test_a_caller_that_makes_too_many_waits_in_the_call(start):
    c = start(Log).connect()
    ref, resolver = native.pending_ref()
    get(c.call("note", 0), 20)
    kept = [c.call("note", ref)]
    there = threading.Event()

    def make():
        kept.extend(c.call("echo", None) for _ in range((256 << 10) - 1))
        there.set()
        kept.append(c.call("echo", "one more"))

    maker = threading.Thread(target=make)
    maker.start()
    assert there.wait(60)
    maker.join(0.3)
    assert maker.is_alive() and c.outstanding == 256 << 10
    resolver.set_value(1)
    maker.join(60)
    assert not maker.is_alive() and get(kept[-1], 60) == "one more"


def test_a_forked_child_leaves_the_calls_of_its_parent_alone(start):
    c = start(Log).connect()
    ref, resolver = native.pending_ref()
    made = c.call("note", ref)
    child = os.fork()
    if child == 0:
        try:
            c.call("note", 2)
        except CallError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    resolver.set_value(1)
    assert get(made, 20) == [1] and get(c.call("all"), 20) == [1]
