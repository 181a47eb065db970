"""Scheduling in a stream of blocks (troupe/data/_flow.py), by its numbers F1 to F5.

Method: streams of random sizes, stages and orders of ends, driven by hypothesis; the flow is told,
and its orders are checked.
"""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow", reason="pip install '.[data]'")
from hypothesis import given, strategies as st

from troupe.data._flow import Flow


class Driver:
    """Carries out what a flow orders, in whichever order `choose` says, and checks it at each
    step."""

    def __init__(
        self,
        sizes: list[int],
        limits: list[int],
        budget: int,
        window: int,
        fails: dict[int, int] | None = None,
    ) -> None:
        """`fails`: of blocks that fail, at which stage."""
        self.sizes, self.limits, self.budget, self.window, self.fails = (
            sizes,
            limits,
            budget,
            window,
            fails or {},
        )
        self.failed: set[int] = set()
        self.flow = Flow(limits, budget, window)
        self.offered = 0
        self.running: list[tuple[int, int]] = []
        self.under_way = 0
        self.taken: list[int] = []
        self.held: dict[int, int] = {}

    def pull(self) -> None:
        while self.flow.may_pull():
            if self.offered == len(self.sizes):
                self.flow.ended()
                return
            assert self.flow.offered(self.sizes[self.offered]) == self.offered
            self.offered, self.under_way = self.offered + 1, self.under_way + 1
            assert self.under_way <= self.window, "F3"
            self.start()

    def start(self) -> None:
        for stage, number in self.flow.starts():
            self.running.append((stage, number))
            assert number < min(self.failed, default=len(self.sizes)), "F5"
            mine = sum(1 for each, _ in self.running if each == stage)
            assert mine <= self.limits[stage], "F4"
            expected = sum(self.sizes[each] for _, each in self.running) + sum(self.held.values())
            assert expected <= self.budget or number == len(self.taken), "F2"

    def step(self, choose: int) -> bool:
        """Do one step; return True if the stream goes on."""
        self.pull()
        self.start()
        number = self.flow.take()
        if number is not None:
            assert number == len(self.taken), "F1"
            self.taken.append(number)
            if number in self.failed:
                return False
            self.flow.released()
            self.held.pop(number)
            self.under_way -= 1
            return True
        if self.flow.over():
            return False
        assert self.running, "F2: nothing runs, and nothing is there"
        stage, number = self.running.pop(choose % len(self.running))
        if self.fails.get(number) == stage:
            self.failed.add(number)
            self.held.pop(number, None)
            self.flow.failed(number)
            return True
        self.held[number] = self.sizes[number]
        self.flow.finished(number, self.sizes[number])
        return True


@given(
    sizes=st.lists(st.integers(0, 100), max_size=30),
    limits=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    budget=st.integers(0, 300),
    window=st.integers(1, 12),
    choices=st.lists(st.integers(0, 100), min_size=1, max_size=50),
)
def test_f1_to_f4_blocks_come_in_order_within_budget_window_and_limits(
    sizes: list[int], limits: list[int], budget: int, window: int, choices: list[int]
) -> None:
    driver = Driver(sizes, limits, budget, window)
    steps = 0
    while driver.step(choices[steps % len(choices)]):
        steps += 1
        assert steps < 10_000
    assert driver.taken == list(range(len(sizes)))


@given(
    sizes=st.lists(st.integers(0, 100), min_size=1, max_size=30),
    limits=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    budget=st.integers(0, 300),
    window=st.integers(1, 12),
    choices=st.lists(st.integers(0, 100), min_size=1, max_size=50),
    fails=st.dictionaries(st.integers(0, 29), st.integers(0, 2), min_size=1, max_size=4),
)
def test_f5_blocks_before_the_first_that_fails_come_and_then_its_failure(
    sizes: list[int],
    limits: list[int],
    budget: int,
    window: int,
    choices: list[int],
    fails: dict[int, int],
) -> None:
    """Holds whichever block failed first, and whatever stages the others had left then."""
    driver = Driver(sizes, limits, budget, window, fails)
    steps = 0
    while driver.step(choices[steps % len(choices)]):
        steps += 1
        assert steps < 10_000
    first = min(
        (number for number, stage in fails.items() if number < len(sizes) and stage < len(limits)),
        default=None,
    )
    assert driver.taken == list(range(len(sizes) if first is None else first + 1))


def test_f1_a_failure_has_its_place_in_the_order() -> None:
    flow = Flow([4], 1000, 10)
    for _ in range(3):
        assert flow.may_pull()
        flow.offered(1)
        flow.starts()
    flow.failed(1)
    assert not flow.may_pull() and flow.take() is None
    flow.finished(0, 1)
    assert flow.take() == 0 and flow.take() is None
    flow.released()
    assert flow.take() == 1


def test_f2_what_a_stage_gives_is_learnt_from_what_it_gave() -> None:
    """A stage that makes ten times as much of its blocks is given fewer of them."""
    flow = Flow([8], 100, 100)
    flow.offered(10)
    assert flow.starts() == [(0, 0)]
    flow.finished(0, 100)
    assert flow.take() == 0
    flow.offered(10)
    assert flow.starts() == [(0, 1)], "the one that is waited for runs whatever is held"
    flow.offered(10)
    assert flow.starts() == []
