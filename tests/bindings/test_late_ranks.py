"""Ranks that others wait for (L1 to L5 of `_process/late_ranks`), and the texts."""

from __future__ import annotations

import threading

import pytest

from troupe._process import group_watch
from troupe._process.late_ranks import (
    LEAST_S,
    UNKNOWN_S,
    Answer,
    Pace,
    accused,
    late,
    listed,
    there,
    told,
)
from troupe._process.returned.watch_store import WatchStore


def waits(begun: int) -> Answer:
    return Answer(begun, True, "a", 1, "")


def works(begun: int) -> Answer:
    return Answer(begun, False, "b", 2, '  File "train.py", line 7, in save\n')


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ([waits(5), works(4), waits(5)], [1]),  # L1
        ([waits(5), waits(4), waits(5)], [1]),  # rank 1 waits in another operation than the others
        ([waits(5), None, works(4)], [1, 2]),  # L2
        ([waits(5), waits(5)], []),  # L3: they will get on, or an operation of theirs takes long
        ([works(5), works(4)], []),  # L3: nobody waits
        # A rank that is further, or as far, is not waited for
        ([works(6), waits(5), works(5)], []),
        ([None, None], []),
    ],
)
def test_l1_to_l3_who_is_late(answers: list, found: list[int]) -> None:
    assert late(answers) == found


def test_l4_patience_is_long_while_little_is_known_and_three_gaps_then() -> None:
    pace = Pace()
    for _ in range(9):
        pace.add(1, 0.5)
    assert pace.patience_s() == UNKNOWN_S == 60
    pace.add(1, 300.0)
    assert pace.patience_s() == LEAST_S == 10
    pace.add(1000, 7000.0)
    assert pace.patience_s() == 21


def test_the_words_name_ranks_of_the_launch_hosts_and_where() -> None:
    names = {0: 4, 1: 5, 2: 6, 3: 7}
    text = told([waits(9), works(8), None, waits(9)], [1, 2], "3", 61.2, names)
    assert text.splitlines()[0] == (
        "ranks 5 and 6 have not come to operation 9 of process group 3, in which ranks 4 and 7 "
        "wait, for 61 s by now. "
        "Nothing is ended because of that"
    )
    assert (
        'rank 5 (host b, pid 2) has begun 8 operations, and is here:\n  File "train.py", line 7, '
        "in save" in text
    )
    assert (
        "rank 6 says nothing: it is stopped, or in code that keeps Python's lock; `troupe stack` "
        "shows where" in text
    )
    assert "perhaps because the ranks' programs differ" in told(
        [waits(9), waits(7)], [1], "0", 10, {0: 0, 1: 1}
    )
    assert told(
        [waits(9), *[None] * 6], [1, 2, 3, 4, 5, 6], "0", 10, dict(enumerate(range(7)))
    ).endswith("\nand 2 more")
    assert (listed([3]), listed([3, 4]), listed(range(20))) == (
        "3",
        "3 and 4",
        "0, 1, 2, 3, 4, 5, 6, 7 and 12 more",
    )


def busy(begun: int, still_s: float = 20.0) -> Answer:
    return Answer(begun, False, "a", 1, "  in evaluate()\n", still_s)


def waiter(begun: int) -> Answer:
    return Answer(begun, True, still_s=20.0)


def test_l5_of_those_that_speak_the_ones_that_have_begun_the_fewest() -> None:
    assert accused([waiter(7), busy(6), busy(5), busy(5)], 7, 10) == [2, 3]


def test_l5_who_says_nothing_is_before_all_others() -> None:
    assert accused([waiter(7), busy(1), None], 7, 10) == [2]


def test_l5_a_rank_that_waits_itself_is_anothers_victim() -> None:
    assert accused([waiter(7), waiter(6), busy(7)], 7, 10) == []


def test_l5_who_has_begun_something_lately_is_slow_and_no_more() -> None:
    assert accused([waiter(7), busy(6, still_s=3.0)], 7, 10) == []


def test_l5_on_gpus_the_accuser_may_wait_in_any_line() -> None:
    assert accused([busy(7), busy(6), busy(8)], 7, 10) == [1]


def test_those_that_are_there() -> None:
    assert there([waiter(7), busy(6), busy(8), waiter(6), None], 7) == [0, 2]


def test_the_warning_says_what_is_to_come() -> None:
    words = told([waiter(7), busy(6)], [1], "0", 12.0, {0: 0, 1: 1}, 60.0)
    assert "Who keeps others waiting for 60 s is ended (hang_timeout)" in words


@pytest.mark.parametrize(
    ("file", "waits", "op"),
    [
        ("torch/distributed/distributed_c10d.py", True, "all_reduce"),
        ("torch/autograd/graph.py", True, "backward"),
        ("torch/distributed/elastic/timer/api.py", False, ""),
        ("program.py", False, ""),
    ],
)
def test_any_thread_of_a_rank_may_wait_in_an_operation(file: str, waits: bool, op: str) -> None:
    """A function of a file of that name waits, in a thread beside the main one."""
    inside, release, names = threading.Lock(), threading.Lock(), {}
    inside.acquire()
    release.acquire()
    exec(
        compile(
            "def all_reduce(inside, lock):\n  inside.release()\n  lock.acquire()\n  "
            "lock.release()\n",
            f"/packages/{file}",
            "exec",
        ),
        names,
    )
    thread = threading.Thread(target=names["all_reduce"], args=(inside, release))
    thread.start()
    try:
        assert inside.acquire(timeout=60.0)
        assert (group_watch.waits_here(), group_watch.op_here()) == (waits, op)
        assert group_watch.waiting_thread() == (thread.ident if waits else None)
    finally:
        release.release()
        thread.join()
    assert not group_watch.waits_here()


def test_the_watching_thread_keeps_no_store_of_the_program_alive() -> None:
    """Port of a store that rank 0 serves is free once the program drops it, and the next store
    there gets a connection of its own."""
    dist = pytest.importorskip("torch.distributed")
    watch, port = WatchStore(), 0
    for round_ in range(3):
        served = dist.TCPStore("127.0.0.1", port, None, True, wait_for_workers=False)
        port = served.port
        watch.beside(dist.PrefixStore("group", served)).set("word", str(round_))
        assert served.get("word") == str(round_).encode()
        del served
