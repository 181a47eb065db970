"""The row that says where a launch is (`troupe.launch._phase`): pure."""

from __future__ import annotations

from typing import Any

import pytest

from troupe.launch import _phase


def info(
    state: str, ranks: int = 4, outcomes: tuple[str, ...] = (), **given: Any
) -> dict[str, Any]:
    rank_infos = [
        {"node": f"node {rank % 2}", "outcome": outcome} for rank, outcome in enumerate(outcomes)
    ]
    return {
        "state": state,
        "ranks": ranks,
        "rank_infos": rank_infos,
        "queue_place": 0,
        "waiting_for": "",
        "ready_ranks": 0,
        **given,
    }


@pytest.mark.parametrize(
    "given, expected",
    [
        (info("queued"), "0:07 · queued"),
        (info("reserving", queue_place=2), "0:07 · queued · place 2 in the queue"),
        (
            info("queued", queue_place=1, waiting_for="4 x {GPU: 1}"),
            "0:07 · waiting · place 1 in the queue: 4 x {GPU: 1}",
        ),
        (info("starting"), "0:07 · starting 4 ranks"),
        (info("starting", outcomes=("none",) * 4), "0:07 · starting 4 ranks on 2 nodes"),
        (
            info("starting", outcomes=("none",) * 4, ready_ranks=2),
            "0:07 · starting 4 ranks on 2 nodes, 2 ready",
        ),
        (info("running", 1, ("none",)), "0:07 · 1 rank running"),
        (
            info("running", outcomes=("none", "succeeded", "none", "failed")),
            "0:07 · 4 ranks running, 2 of them ended",
        ),
        (info("stopping"), "0:07 · stopping"),
        (info("terminal"), ""),
    ],
)
def test_each_state_has_its_words(given: dict[str, Any], expected: str) -> None:
    assert _phase.text(given, 7.9) == expected


def test_a_later_attempt_is_said() -> None:
    assert (
        _phase.text(info("starting"), 61, again=" · attempt 2 of 3")
        == "1:01 · attempt 2 of 3 · starting 4 ranks"
    )


@pytest.mark.parametrize(
    "seconds, expected",
    [(0, "0:00"), (59.9, "0:59"), (600, "10:00"), (3723, "1:02:03"), (360_000, "100:00:00")],
)
def test_the_clock(seconds: float, expected: str) -> None:
    assert _phase.clock(seconds) == expected
