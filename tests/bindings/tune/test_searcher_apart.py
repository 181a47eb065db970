"""Searchers that are asked elsewhere: answers come in order, failures are told once, and no process
is left.

Method: a searcher in a thread, and in a process of its own, with events for each answer.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from troupe.tune._core.deciding import End, Proposal, Report, Searcher, Where
from troupe.tune._search.apart import Apart
from troupe.tune._search.child import Child, SearcherProcessError

DEADLINE_S = 60


class Numbers(Searcher):
    """Proposes numbers up to a limit; what it is told it puts into the next."""

    def __init__(self, where: Where, most: int = 10) -> None:
        self.where = where
        self.most, self.number, self.told = most, 0, []

    def propose(self, trial: str) -> Proposal | None:
        if trial == "raise":
            raise ValueError(f"no {trial}, says {os.getpid()}")
        if trial == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.finished():
            return None
        self.number += 1
        return Proposal(
            {
                "number": self.number,
                "told": list(self.told),
                "pid": os.getpid(),
                "thread": threading.get_ident(),
            }
        )

    def finished(self) -> bool:
        return self.number >= self.most

    def reported(self, report: Report) -> None:
        self.told.append(report.number)

    def proposed(self, trial: str, proposal: Proposal) -> None:
        self.number += 1

    def ended(self, trial: str, end: End, last: Report | None) -> None:
        self.told.append(end.value)


class Answers:
    """The answers so far, in order."""

    def __init__(self, searcher: Searcher) -> None:
        self.got: queue.Queue[Any] = queue.Queue()
        self.apart = Apart(searcher, lambda *answer: self.got.put(answer), self.got.put)

    def next(self) -> Any:
        return self.got.get(timeout=DEADLINE_S)


@pytest.mark.parametrize("where", [Where.THREAD, Where.PROCESS])
def test_calls_are_made_in_their_order_elsewhere(where: Where) -> None:
    answers = Answers(Numbers(where, most=3))
    answers.apart.proposed("a", Proposal({}))
    answers.apart.reported(Report("a", 7, {}, 0.0))
    answers.apart.propose("b")
    answers.apart.ended("a", End.STOPPED, None)
    for trial in "cd":
        answers.apart.propose(trial)
    trial, proposal, finished = answers.next()
    assert (trial, proposal.config["number"], proposal.config["told"], finished) == (
        "b",
        2,
        [7],
        False,
    )
    assert (proposal.config["pid"] == os.getpid()) == (where is Where.THREAD) and proposal.config[
        "thread"
    ] != threading.get_ident()
    trial, proposal, finished = answers.next()
    assert (trial, proposal.config["told"], finished) == ("c", [7, "stopped"], True)
    assert answers.next() == ("d", None, True)
    answers.apart.close()
    answers.apart.propose("e")
    assert (
        answers.got.empty()
        and not isinstance(answers.apart._searcher, Child)
        or answers.apart._searcher._process.poll() is not None
    )


@pytest.mark.parametrize("where", [Where.THREAD, Where.PROCESS])
def test_what_a_searcher_raises_is_told_once(where: Where) -> None:
    answers = Answers(Numbers(where))
    for trial in ("raise", "raise", "a"):
        answers.apart.propose(trial)
    error = answers.next()
    assert isinstance(error, ValueError) and "no raise" in str(error)
    answers.apart.close()
    assert answers.got.empty()


def test_its_process_imports_nothing_from_the_program_before_the_searcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file named like a library stands in the directory, on PYTHONPATH and on the import path; a
    class of the program's is found there all the same."""
    for name in ("json", "cloudpickle"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')")
    (tmp_path / "of_the_program.py").write_text("LIMIT = 7\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    class Asks(Numbers):
        def propose(self, trial: str) -> Proposal | None:
            import of_the_program

            import troupe

            with pytest.raises(
                troupe.exceptions.ConnectionError, match="a sweep's searcher, and is in no cluster"
            ):
                troupe.init()
            return Proposal({"limit": of_the_program.LIMIT})

    child = Child(Asks(Where.PROCESS))
    proposed = child.propose("a")
    child.close()
    assert proposed is not None and proposed.config == {"limit": 7}


def test_the_death_of_its_process_names_it() -> None:
    answers = Answers(Numbers(Where.PROCESS))
    answers.apart.propose("die")
    error = answers.next()
    assert (
        isinstance(error, SearcherProcessError)
        and "the process of Numbers (pid" in str(error)
        and "has ended by SIGKILL" in str(error)
    )
    answers.apart.close()


def test_an_exception_that_cannot_travel_is_told_by_its_text() -> None:
    class Odd(Exception):
        def __init__(self, one: int, other: int) -> None:
            super().__init__(f"{one} and {other}")

    class Raises(Numbers):
        def propose(self, trial: str) -> Proposal | None:
            raise Odd(1, 2)

    answers = Answers(Raises(Where.PROCESS))
    answers.apart.propose("a")
    error = answers.next()
    assert isinstance(error, RuntimeError) and str(error) == "Odd: 1 and 2"
    answers.apart.close()


def test_optuna_in_its_process_suggests_as_here() -> None:
    pytest.importorskip("optuna")
    import pickle

    from troupe import tune
    from troupe.tune._search.adapted import Adapted
    from troupe.tune.search.optuna import OptunaSearch

    made = Adapted(
        OptunaSearch(seed=1),
        {"x": tune.uniform(0, 1), "f": tune.sample_from(lambda spec: spec.x)},
        20,
        "loss",
        "min",
    )
    import cloudpickle

    here = pickle.loads(cloudpickle.dumps(made))
    answers = Answers(made)
    for trial in "abcdefghijkl":
        answers.apart.propose(trial)
        _, proposal, _ = answers.next()
        assert proposal == here.propose(trial)
        last = Report(trial, 1, {"loss": proposal.config["x"], "training_iteration": 1}, 0.0)
        for each in (answers.apart, here):
            each.reported(last)
            each.ended(trial, End.COMPLETED, last)
    answers.apart.close()
