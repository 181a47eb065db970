"""Decisions on a pipeline's graph, without a cluster: which steps start, how a failure and a
cancellation go on, cycles by their names."""

from __future__ import annotations

import pytest

from troupe.azure._pipeline import graph
from troupe.azure._pipeline.graph import CANCELED, COMPLETED, FAILED, NOT_STARTED, RUNNING

DIAMOND = {"prep": [], "left": ["prep"], "right": ["prep"], "join": ["left", "right"]}


def decide(*states: str, continues: bool = False, is_cancelled: bool = False) -> graph.Decision:
    return graph.decide(
        DIAMOND,
        dict(zip(DIAMOND, states, strict=True)),
        continues=continues,
        is_cancelled=is_cancelled,
    )


def test_steps_start_once_all_that_they_need_has_completed() -> None:
    assert decide(NOT_STARTED, NOT_STARTED, NOT_STARTED, NOT_STARTED).start == ("prep",)
    assert decide(RUNNING, NOT_STARTED, NOT_STARTED, NOT_STARTED) == graph.Decision()
    assert decide(COMPLETED, NOT_STARTED, NOT_STARTED, NOT_STARTED).start == ("left", "right")
    assert decide(COMPLETED, COMPLETED, RUNNING, NOT_STARTED) == graph.Decision()
    assert decide(COMPLETED, COMPLETED, COMPLETED, NOT_STARTED).start == ("join",)
    assert decide(COMPLETED, COMPLETED, COMPLETED, COMPLETED).outcome == COMPLETED


def test_a_failed_step_ends_the_others_unless_the_pipeline_continues() -> None:
    assert decide(COMPLETED, FAILED, RUNNING, NOT_STARTED) == graph.Decision(cancel=("right",))
    assert decide(COMPLETED, FAILED, CANCELED, NOT_STARTED).outcome == FAILED
    assert decide(COMPLETED, FAILED, NOT_STARTED, NOT_STARTED).outcome == FAILED
    assert decide(COMPLETED, FAILED, NOT_STARTED, NOT_STARTED, continues=True).start == ("right",)
    assert decide(COMPLETED, FAILED, RUNNING, NOT_STARTED, continues=True) == graph.Decision()
    assert decide(COMPLETED, FAILED, COMPLETED, NOT_STARTED, continues=True).outcome == FAILED


def test_a_cancelled_pipeline_ends_all_that_runs_and_starts_nothing() -> None:
    assert decide(
        COMPLETED, RUNNING, NOT_STARTED, NOT_STARTED, is_cancelled=True
    ) == graph.Decision(cancel=("left",))
    assert (
        decide(COMPLETED, CANCELED, NOT_STARTED, NOT_STARTED, is_cancelled=True).outcome == CANCELED
    )
    assert decide(COMPLETED, CANCELED, COMPLETED, NOT_STARTED).outcome == CANCELED, (
        "one step was cancelled by itself"
    )


def test_so_many_steps_run_at_once_at_most() -> None:
    needs: dict[str, list[str]] = {f"s{number}": [] for number in range(graph.AT_ONCE_MAX + 3)}
    states = dict.fromkeys(needs, NOT_STARTED)
    states["s0"] = RUNNING
    assert (
        len(graph.decide(needs, states, continues=False, is_cancelled=False).start)
        == graph.AT_ONCE_MAX - 1
    )


def test_the_order_has_each_step_behind_what_it_needs_and_names_a_cycle() -> None:
    assert graph.order(
        {"join": ["left", "right"], "left": ["prep"], "right": ["prep"], "prep": []}
    ) == ["prep", "left", "right", "join"]
    with pytest.raises(graph.CycleError, match="a -> c -> b -> a"):
        graph.order({"first": [], "a": ["first", "c"], "b": ["a"], "c": ["b"]})
    long = {f"s{number}": [f"s{number + 1}"] for number in range(5000)}
    assert graph.order({**long, "s5000": []})[0] == "s5000"
