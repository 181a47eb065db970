"""Searchers of one's own, and those that wrap others: what the engine is proposed, and that a
restart changes nothing.

Method: the pure adapter, case by case.
"""

from __future__ import annotations

import pickle
import random
from typing import Any

import pytest

from troupe import tune
from troupe.tune._core.deciding import End, Mode, Proposal, Report, Where
from troupe.tune._core.objective import objective
from troupe.tune._search.adapted import Adapted
from troupe.tune.search import (
    BasicVariantGenerator,
    ConcurrencyLimiter,
    Repeater,
    Searcher,
)


class Drawn(Searcher):
    """Draws by its seed; knows what it was told."""

    def __init__(self, seed: int = 1, most: int = 100) -> None:
        super().__init__()
        self.generator, self.left, self.told = random.Random(seed), most, []

    def suggest(self, trial_id: str) -> Any:
        if self.left == 0:
            return Searcher.FINISHED
        self.left -= 1
        return {"x": self.generator.random(), "m": {"y": 1}}

    def on_trial_result(self, trial_id: str, result: dict) -> None:
        self.told.append((trial_id, result["loss"]))

    def on_trial_complete(
        self, trial_id: str, result: dict | None = None, error: bool = False
    ) -> None:
        self.told.append(
            (trial_id, None if result is None else (result["loss"], result.get("done")), error)
        )


def report(trial: str, loss: Any, number: int = 1) -> Report:
    return Report(trial, number, {"loss": loss, "training_iteration": number}, Mode.MIN.score(loss))


def adapted(search: Any, space: Any = None, samples: int = 5) -> Adapted:
    return Adapted(search, {} if space is None else space, samples, "loss", "min")


def test_a_suggestion_is_completed_by_the_space() -> None:
    search = Drawn()
    made = adapted(
        search,
        {
            "m": {"y": 5, "z": 6},
            "kept": 7,
            "twice": tune.sample_from(lambda spec: spec.config.x * 2),
        },
    )
    proposal = made.propose("a")
    assert proposal is not None and made.where is Where.THREAD and made.total() == 5
    assert proposal.config == {
        "m": {"y": 1, "z": 6},
        "kept": 7,
        "x": proposal.config["x"],
        "twice": proposal.config["x"] * 2,
    }
    made.reported(report("a", 0.5))
    made.reported(report("of a person", 0.5))
    made.ended("a", End.STOPPED, report("a", 0.4, 2))
    made.propose("b")
    made.ended("b", End.FAILED, None)
    assert search.told == [("a", 0.5), ("a", (0.4, False), False), ("b", None, True)]


def test_it_ends_with_the_samples_or_when_nothing_is_left() -> None:
    made = adapted(Drawn(), samples=2)
    assert [made.propose(trial) is not None for trial in "abc"] == [
        True,
        True,
        False,
    ] and made.finished()
    made = adapted(Drawn(most=1), samples=-1)
    assert made.total() is None and made.propose("a") is not None and not made.finished()
    assert made.propose("b") is None and made.finished()


def test_after_a_restart_it_suggests_what_it_would_have() -> None:
    one, other = (adapted(Drawn()) for _ in range(2))
    proposals = [one.propose(trial) for trial in "abc"]
    one._seed = other._seed
    for trial, proposal in zip("abc", proposals, strict=True):
        other.proposed(trial, proposal)
        other.ended(trial, End.COMPLETED, report(trial, 1.0))
        one.ended(trial, End.COMPLETED, report(trial, 1.0))
    other.proposed("a person's", Proposal({"x": 3}))
    assert other.propose("d") == one.propose("d") and one._search.told == other._search.told
    with pytest.warns(UserWarning, match="Does the searcher draw without a seed?"):
        adapted(Drawn(seed=2)).proposed("a", proposals[0])


def test_what_it_must_not_do() -> None:
    class Wrong(Drawn):
        def suggest(self, trial_id: str) -> Any:
            return 3

    with pytest.raises(
        TypeError,
        match=r"Wrong.suggest\('a'\) must return a dict of parameters, FINISHED or None, not 3",
    ):
        adapted(Wrong()).propose("a")
    with pytest.raises(
        ValueError, match="param_space: g is a grid, and Drawn suggests one configuration at a time"
    ):
        adapted(Drawn(), {"g": tune.grid_search([1])})
    with pytest.raises(
        ValueError, match="Drawn has a space of its own, and param_space says what x may be"
    ):
        adapted(Drawn(), {"x": tune.uniform(0, 1)})
    with pytest.raises(ValueError, match="num_samples"):
        adapted(Drawn(), samples=0)
    with pytest.raises(NotImplementedError, match="Searcher has no suggest"):
        Searcher().suggest("a")
    with pytest.raises(ValueError, match='mode must be "min" or "max"'):
        Searcher(metric="a", mode="up")
    with pytest.raises(ValueError, match="two lists of the same length"):
        Searcher(metric=["a"], mode="min")


def test_few_at_a_time() -> None:
    search = Drawn()
    limited = ConcurrencyLimiter(search, 2)
    assert limited.where is Where.THREAD
    assert [limited.suggest(trial) is None for trial in "abc"] == [False, False, True]
    limited.on_trial_complete("a", {"loss": 1})
    assert limited.suggest("c") is not None and len(search.told) == 1
    batch = ConcurrencyLimiter(other := Drawn(), 2, batch=True)
    assert [batch.suggest(trial) is None for trial in "abc"] == [False, False, True]
    batch.on_trial_complete("a", {"loss": 1})
    assert batch.suggest("c") is None and not other.told
    batch.on_trial_complete("b", {"loss": 2})
    assert batch.suggest("c") is not None and [each[0] for each in other.told] == ["a", "b"]
    for arguments, kind in (((BasicVariantGenerator(), 1), TypeError), ((Drawn(), 0), ValueError)):
        with pytest.raises(kind):
            ConcurrencyLimiter(*arguments)


class Told(Drawn):
    def set_search_properties(self, metric: Any, mode: Any, config: Any, **spec: Any) -> bool:
        self._metric, self._mode = metric, mode
        return True


def test_what_is_drawn_beside_it_is_the_same_after_a_restart() -> None:
    kept = pickle.dumps(Told())
    one, other = (adapted(pickle.loads(kept), {"noise": tune.randn()}) for _ in range(2))
    first = one.propose("a")
    other.proposed("a", first)
    assert one.propose("b").config["noise"] == other.propose("b").config["noise"]


def test_repeats_are_averaged() -> None:
    search = Told()
    made = adapted(Repeater(search, 2), samples=6)
    proposals = [made.propose(trial) for trial in "abcd"]
    assert [each.config["__trial_index__"] for each in proposals] == [0, 1, 0, 1]
    assert proposals[0].config["x"] == proposals[1].config["x"] != proposals[2].config["x"]
    for trial, loss in (("a", 1.0), ("c", float("nan")), ("b", 2.0)):
        made.ended(trial, End.COMPLETED, report(trial, loss))
    made.ended("d", End.FAILED, None)
    assert search.told == [("a", (1.5, None), False), ("c", None, True)]
    with pytest.raises(ValueError, match="repeat must be"):
        Repeater(Drawn(), 0)
    with pytest.raises(TypeError, match="takes a Searcher"):
        Repeater(BasicVariantGenerator(), 2)  # type: ignore[arg-type]


def test_wrapped_searchers_after_a_restart() -> None:
    one, other = (
        adapted(ConcurrencyLimiter(Repeater(Told(), 2, set_index=False), 3), samples=9)
        for _ in range(2)
    )
    other._seed = one._seed
    proposals = {trial: one.propose(trial) for trial in "abc"}
    assert one.propose("d") is None
    for trial, proposal in proposals.items():
        other.proposed(trial, proposal)
    assert other.propose("d") is None
    for each in (one, other):
        each.ended("a", End.COMPLETED, report("a", 1.0))
    assert one.propose("d") == other.propose("d")
    for each in (one, other):
        for trial in "bcd":
            each.ended(trial, End.COMPLETED, report(trial, 1.0))
    assert one.propose("e") == other.propose("e")
    assert one._search.searcher.searcher.told == other._search.searcher.searcher.told


def test_state_in_a_file(tmp_path: Any) -> None:
    one, other = Drawn(), Drawn(seed=5)
    one.suggest("a")
    one.save(str(tmp_path / "state"))
    other.restore(str(tmp_path / "state"))
    assert one.suggest("b") == other.suggest("b")


def test_what_is_optimized_is_said_once() -> None:
    assert objective(
        [("TuneConfig", None, None), ("ASHAScheduler", "acc", "max"), ("OptunaSearch", "acc", None)]
    ) == ("acc", Mode.MAX)
    assert objective([("TuneConfig", None, None)]) == (None, None)
    assert objective(
        [("FIFOScheduler", None, None), ("OptunaSearch", ["a", "b"], ["min", "max"])]
    ) == (None, None)
    with pytest.raises(
        ValueError,
        match="TuneConfig has metric='acc' and ASHAScheduler has metric='loss': say it once",
    ):
        objective([("TuneConfig", "acc", "max"), ("ASHAScheduler", "loss", "max")])
    with pytest.raises(ValueError, match="TuneConfig: mode must be"):
        objective([("TuneConfig", "acc", "maximize")])
