"""Reminders: a signal that may have gone by is sent again, later and later, until its call is
over."""

from __future__ import annotations

import pytest

from troupe._tasks.interrupts import FIRST_S, MOST_S, Reminders


class Ref:
    def __init__(self) -> None:
        self.over = False

    def done(self) -> bool:
        return self.over


def test_a_call_that_is_not_over_is_reminded_of_later_and_later() -> None:
    reminders, ref = Reminders(), Ref()
    assert reminders.due() is None and reminders.take(0.0) == []
    reminders.add(ref, 7, 100.0)
    assert reminders.due() == 100.0 + FIRST_S and reminders.take(100.0) == []
    pauses, now = [], 100.0
    for _ in range(12):
        pauses.append(reminders.due() - now)
        now = reminders.due()
        assert reminders.take(now) == [7]
    assert pauses[:3] == pytest.approx([FIRST_S, 2 * FIRST_S, 4 * FIRST_S])
    assert pauses[-2:] == pytest.approx([MOST_S, MOST_S])
    ref.over = True
    assert reminders.take(now + 10) == [] and reminders.due() is None


def test_a_call_that_is_cancelled_again_begins_anew_and_others_go_on() -> None:
    reminders, ref, other = Reminders(), Ref(), Ref()
    reminders.add(ref, 1, 0.0)
    reminders.add(other, 2, 0.0)
    assert sorted(reminders.take(FIRST_S)) == [1, 2]
    reminders.add(ref, 1, FIRST_S)
    assert reminders.take(2 * FIRST_S) == [1] and sorted(reminders.take(3 * FIRST_S)) == [2]
    other.over = True
    reminders.add(Ref(), 3, 1.0)
    assert len(reminders._open) == 2  # ended tasks are not kept
