"""The order of calls that are made again: RetryLine against a model, without processes."""

from __future__ import annotations

import random

from troupe._actors.retries import RetryLine


def test_every_attempt_is_in_the_order_of_the_first() -> None:
    for seed in range(200):
        chance = random.Random(seed)
        line: RetryLine[int] = RetryLine()
        under_way: list[int] = []  # calls that were sent, in order
        losing = False
        numbers: dict[int, int] = {}
        done: list[int] = []
        for step in range(300):
            if chance.random() < 0.4:
                number, now = line.begin(step)
                assert now in ([], [step])
                numbers[step] = number
            elif under_way:
                call = under_way.pop(0)
                if not losing:
                    losing = chance.random() < 0.1
                now = line.lost(numbers[call]) if losing else line.over(numbers[call])
                if not losing:
                    done.append(call)
            else:
                continue
            if now:
                assert now == sorted(now)
                assert not under_way or under_way[-1] < now[0]
                losing = losing and bool(under_way)
                under_way += now
        assert len(done) == len(set(done))


def test_what_is_lost_goes_before_what_came_since() -> None:
    line: RetryLine[str] = RetryLine()
    first, now = line.begin("a")
    second, _ = line.begin("b")
    assert now == ["a"]
    assert line.lost(first) == []  # b is still out
    assert line.begin("c")[1] == []  # waits behind the first
    assert line.lost(second) == ["a", "b", "c"]


def test_a_call_given_up_lets_the_others_go() -> None:
    line: RetryLine[str] = RetryLine()
    first, _ = line.begin("a")
    second, _ = line.begin("b")
    assert line.lost(first) == []
    assert line.over(second) == ["a"]
    assert line.over(first) == []
    assert line.begin("c")[1] == ["c"]
