"""Rows of a sweep's table for who follows it: nothing is told twice, what is missed is counted."""

from __future__ import annotations

import threading

from troupe.tune._run import changes


def test_who_follows_hears_each_row_once_and_of_the_end() -> None:
    told = changes.Changes()
    told.note(["00000", "running"])
    first = told.since(None)
    assert (first.rows, first.missed, first.is_over) == ([["00000", "running"]], 0, False)
    later: list[changes.NewRows] = []
    waits = threading.Thread(target=lambda: later.append(told.since(first.place)))
    waits.start()
    told.note(["00000", "completed"])
    waits.join(60)
    assert later[0].rows == [["00000", "completed"]]
    told.close()
    assert told.since(later[0].place) == changes.NewRows(later[0].place, [], 0, True)


def test_of_what_one_far_behind_has_missed_the_number_is_told() -> None:
    told = changes.Changes()
    for number in range(changes.KEPT_MAX + 7):
        told.note([str(number)])
    told.close()
    new, rows, missed = told.since(None), [], 0
    while True:
        rows, missed = rows + new.rows, missed + new.missed
        if new.is_over:
            break
        new = told.since(new.place)
    assert missed == 7 and rows == [[str(each)] for each in range(7, changes.KEPT_MAX + 7)]


def test_a_place_of_an_engine_before_this_one_is_the_beginning() -> None:
    before, told = changes.Changes(), changes.Changes()
    for each in (before, before, told):
        each.note(["row"])
    assert told.since(before.since(None).place).rows == [["row"]]
