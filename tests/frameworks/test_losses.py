"""The comparison of losses. Method: made-up runs of two ranks, and what a program prints."""

from __future__ import annotations

import math

import pytest
from losses import Losses, Verdict, largest_difference, said, verdict


def run(*numbers: float) -> Losses:
    """Two ranks with these losses, the second's a half larger."""
    return {rank: [(number + rank / 2).hex() for number in numbers] for rank in (0, 1)}


def not_asked() -> Losses:
    raise AssertionError("the second run decides nothing here")


def test_the_same_losses_need_no_second_run() -> None:
    assert verdict(run(2.0, 1.0), run(2.0, 1.0), not_asked) == Verdict()


def test_one_bit_is_a_difference_where_two_runs_of_torchrun_are_the_same() -> None:
    found = verdict(run(2.0, 1.0), run(2.0, math.nextafter(1.0, 2.0)), lambda: run(2.0, 1.0))
    assert (
        "two runs by torchrun are bitwise the same; rank 0, loss 1: 0x1.0000000000000p+0 and "
        "0x1.0000000000001p+0" in found.why
    )


@pytest.mark.parametrize(
    ("troupe", "good"), [(1.25, True), (1.0 - 0.25, True), (1.26, False), (1.0 - 0.26, False)]
)
def test_where_they_are_not_twice_their_difference_is_allowed(troupe: float, good: bool) -> None:
    found = verdict(run(2.0, 1.0), run(2.0, troupe), lambda: run(2.125, 1.0))
    assert found.allowed == 0.25 and (found.why == "") is good, found


def test_the_largest_difference_counts_wherever_it_is() -> None:
    """A loss may be the same in two runs by chance."""
    assert verdict(run(2.0, 1.0), run(2.0, 1.1), lambda: run(2.2, 1.0)).why == ""


@pytest.mark.parametrize("other", [run(2.0), {0: run(2.0, 1.0)[0]}])
def test_other_numbers_of_losses_are_never_within_anything(other: Losses) -> None:
    assert largest_difference(run(2.0, 1.0), other)[0] == math.inf
    assert "other numbers of losses" in verdict(run(2.0, 1.0), other, lambda: run(2.5, 1.0)).why
    assert verdict(run(2.0, 1.0), run(2.0, 1.5), lambda: other).why, (
        "a run of torchrun that broke off allows nothing"
    )


def test_lines_of_ranks_are_found_among_others() -> None:
    printed = (
        'Epoch 1\n{"rank": 1, "losses": ["0x1p+1"]}\n{\'loss\': 2.4}\n{"rank": 0, "losses": '
        '["0x1p+0"]}\n'
    )
    assert said(printed, 2) == {0: ["0x1p+0"], 1: ["0x1p+1"]}


def test_lines_whose_ends_come_later_are_two() -> None:
    """Method: what torchrun's ranks have printed on a busy machine."""
    assert said('{"rank": 0, "losses": ["0x1p+0"]}{"rank": 1, "losses": ["0x1p+1"]}\n\n', 2) == {
        0: ["0x1p+0"],
        1: ["0x1p+1"],
    }


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ("", r"there are 2 ranks, and those that said their losses are \[\]"),
        ('{"rank": 0, "losses": ["0x1p+0"]}\n' * 2, r"are \[0, 0\]"),
        (
            '{"rank": 0, "losses": []}\n{"rank": 1, "losses": ["0x1p+0"]}',
            "rank 0: these are no losses",
        ),
        (
            '{"rank": 0, "losses": ["0x1p+0"]}\n{"rank": 1, "losses": ["nan"]}',
            "rank 1: these are no losses",
        ),
    ],
)
def test_a_rank_that_says_nothing_or_nonsense_is_named(printed: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        said(printed, 2)
