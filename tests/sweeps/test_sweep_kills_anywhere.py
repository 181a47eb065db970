"""A few rounds of sweep_kills.py, of which `./test long sweep_kills` runs many: engine, trials,
nodes and head are killed; G1 to G6 hold in the end.

Method: see sweep_kills.py; the journal's checker is shown to find what it looks for in rows that
were changed by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import journal_checks
import pytest
import sweep_kills
from e2e_conftest import Home


@pytest.mark.parametrize("which, how, seed", [("promotion", "fit", 4), ("population", "submit", 3)])
def test_g1_to_g6_hold_whatever_is_killed(
    home: Home, tmp_path: Path, which: str, how: str, seed: int
) -> None:
    one = sweep_kills.run_round(home, tmp_path, which, how, seed, 3)
    assert one["kills"] and not one["violations"], one


def a_sweep() -> list[dict]:
    """Two trials: the first is retried after its second report, the second goes on from the first
    one's checkpoint."""

    def report(
        trial: str, attempt: int, sequence: int, number: int, token: str, checkpoint: str = ""
    ) -> dict:
        return {
            "kind": "report",
            "trial": trial,
            "attempt": attempt,
            "sequence": sequence,
            "number": number,
            "checkpoint": checkpoint,
            "metrics": {"training_iteration": number, "epoch": number, "token": token},
        }

    def start(trial: str, attempt: int, number: int, base: list | None) -> dict:
        return {"kind": "start", "trial": trial, "attempt": attempt, "number": number, "base": base}

    return [
        {"kind": "begin", "epoch": 1},
        {"kind": "trial", "trial": "a"},
        {"kind": "trial", "trial": "b"},
        start("a", 1, 0, None),
        start("b", 1, 0, None),
        report("a", 1, 1, 1, "a1", "c0"),
        report("a", 1, 2, 2, "a2"),
        {"kind": "fail", "trial": "a", "counts": True},
        start("a", 2, 1, ["a", "c0"]),
        report("b", 1, 1, 1, "b1"),
        {"kind": "exploit", "trial": "b", "donor": "a", "checkpoint": "c0", "number": 1},
        {"kind": "begin", "epoch": 2},
        {"kind": "interrupt", "trial": "a"},
        start("b", 2, 1, ["a", "c0"]),
        report("b", 2, 1, 2, "b2", "c1"),
        start("a", 3, 1, ["a", "c0"]),
        report("a", 3, 1, 2, "a3", "c1"),
        {"kind": "drop", "trial": "a", "checkpoint": "c0"},
        {"kind": "end", "trial": "a"},
        {"kind": "end", "trial": "b"},
    ]


def changed(place: int, **fields: object) -> Callable[[list], None]:
    return lambda rows: rows[place].update(fields)


def moved(place: int, to: int) -> Callable[[list], None]:
    return lambda rows: rows.insert(to, rows.pop(place))


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda rows: rows.pop(), "G3: b has no end"),
        (lambda rows: rows.append({"kind": "trial", "trial": "c"}), "G3: 3 trials"),
        (lambda rows: rows.append(rows[-1]), "G2: "),
        (lambda rows: rows.insert(6, rows[6]), "G1: a: report 2"),
        (changed(14, number=3), "G1: b: report 3"),
        (
            changed(16, metrics={"training_iteration": 2, "epoch": 2, "token": "a1"}),
            "G1: the report a1 is counted 2 times",
        ),
        (changed(11, epoch=1), "G4: "),
        (changed(15, number=0, base=None), "G3: .*loses more"),
        (moved(17, 12), "G6: .*is dropped, from which a, b would go on"),
        (moved(8, 7), "G3: attempt 2 of a starts while attempt 1 runs"),
        (changed(16, checkpoint="c0"), "G5: .*is reported twice"),
        (changed(10, number=2), "G6: b is to go on from"),
    ],
)
def test_the_checker_finds_what_does_not_hold(change: Callable[[list], object], says: str) -> None:
    import re

    rows = a_sweep()
    assert journal_checks.of_rows(rows, 2)[1] == []
    change(rows)
    _, wrong = journal_checks.of_rows(rows, 2)
    assert any(re.match(says, each) for each in wrong), wrong
