"""The history checker itself: it accepts what a register can do, and rejects what it cannot."""

from __future__ import annotations

import pytest
from history import UNKNOWN, Operation, Recorder, linearizable, violations

INFINITY = float("inf")


def history(*rows: tuple) -> list[Operation]:
    return [
        Operation("k", kind, value, began, ended, answer)
        for kind, value, began, ended, answer in rows
    ]


@pytest.mark.parametrize(
    "rows",
    [
        [("put", "a", 0, 1, "ok"), ("get", None, 2, 3, ("a", 1))],
        [("put", "a", 0, 5, "ok"), ("get", None, 1, 2, None), ("get", None, 3, 4, ("a", 1))],
        [
            ("create", "a", 0, 2, "ok"),
            ("create", "b", 1, 3, "exists"),
            ("get", None, 4, 5, ("a", 1)),
        ],
        [
            ("put", "a", 0, INFINITY, UNKNOWN),
            ("get", None, 1, 2, None),
            ("get", None, 3, 4, ("a", 1)),
        ],
        [("put", "a", 0, INFINITY, UNKNOWN), ("get", None, 1, 2, None)],
        [
            ("put", "a", 0, 1, "ok"),
            ("erase", None, 2, 3, "ok"),
            ("put", "b", 4, 5, "ok"),
            ("get", None, 6, 7, ("b", 1)),
        ],
    ],
)
def test_what_a_register_can_do_is_accepted(rows: list[tuple]) -> None:
    assert linearizable(history(*rows))


@pytest.mark.parametrize(
    "rows",
    [
        [("put", "a", 0, 1, "ok"), ("get", None, 2, 3, None)],  # lost
        [("put", "a", 0, 1, "ok"), ("get", None, 2, 3, ("a", 2))],  # doubled
        [("create", "a", 0, 1, "exists")],  # a own repeat
        [("create", "a", 0, 1, "ok"), ("create", "b", 2, 3, "ok")],  # two winners
        [
            ("put", "a", 0, 5, "ok"),
            ("get", None, 1, 2, ("a", 1)),
            ("get", None, 3, 4, None),
        ],  # went back
        [
            ("put", "a", 0, 9, "ok"),
            ("get", None, 1, 2, ("a", 1)),
            ("put", "b", 3, 4, "ok"),
            ("get", None, 5, 6, ("a", 3)),
        ],
        [
            ("put", "a", 0, 1, "ok"),
            ("erase", None, 2, 3, "ok"),
            ("get", None, 4, 5, ("a", 1)),
        ],  # came back
    ],
)
def test_what_a_register_cannot_do_is_rejected(rows: list[tuple]) -> None:
    assert not linearizable(history(*rows))


def test_two_outcomes_of_one_launch_are_a_violation() -> None:
    recorder = Recorder()
    recorder.outcome("l", "succeeded")
    assert violations(recorder) == []
    recorder.outcome("l", "failed")
    assert "more than one way" in violations(recorder)[0]
