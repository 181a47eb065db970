"""Spaces and variants: what a parameter may be, what is refused and under which name, that a
configuration is a function of its number.

Method: the pure modules, case by case and on random spaces.
"""

from __future__ import annotations

import itertools
import math
import pickle
import random
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from troupe import tune
from troupe.tune._core.deciding import End
from troupe.tune._search import space_tree
from troupe.tune._search.variants import Variants, VariantSearcher, searcher
from troupe.tune.search.basic_variant import BasicVariantGenerator


def drawn(domain: Any, number: int = 400) -> list[Any]:
    generator = random.Random(1)
    return [domain.draw(generator) for _ in range(number)]


@pytest.mark.parametrize(
    ("domain", "kind", "lower", "upper", "values"),
    [
        (tune.uniform(-1, 2), float, -1, 2, None),
        (tune.loguniform(1e-4, 1), float, 1e-4, 1, None),
        (tune.quniform(0, 1, 0.25), float, 0, 1, {0, 0.25, 0.5, 0.75, 1}),
        (tune.qloguniform(0.25, 1, 0.25), float, 0.25, 1, {0.25, 0.5, 0.75, 1}),
        (tune.randint(0, 4), int, 0, 3, {0, 1, 2, 3}),  # the upper end is not included
        (tune.randint(0, 4.0), int, 0, 3, {0, 1, 2, 3}),
        (tune.qrandint(0, 4, 2), int, 0, 4, {0, 2, 4}),  # here it is
        (tune.qrandint(1, 9, 4), int, 4, 8, {4, 8}),
        (tune.qrandint(0, 3), int, 0, 2, {0, 1, 2}),  # with steps of 1 the upper end is excluded
        (tune.lograndint(1, 5), int, 1, 4, {1, 2, 3, 4}),
        (tune.qlograndint(1, 8, 2), int, 2, 8, {2, 4, 6, 8}),
        (tune.qrandn(0, 1, 0.5), float, -9, 9, None),
        (tune.choice(["a", None, 3]), object, None, None, {"a", None, 3}),
    ],
)
def test_what_is_drawn(domain: Any, kind: type, lower: Any, upper: Any, values: set | None) -> None:
    found = drawn(domain)
    assert domain.fault() is None and all(
        isinstance(each, kind) and domain.is_valid(each) for each in found
    )
    assert values is None or set(found) == values
    assert lower is None or all(lower <= each <= upper for each in found)


def test_logarithmic_draws_are_even_in_their_logarithm() -> None:
    below = sum(each < 1e-2 for each in drawn(tune.loguniform(1e-4, 1), 4000))
    assert 1800 < below < 2200
    assert all(each == round(each / 0.5) * 0.5 for each in drawn(tune.qrandn(3, 2, 0.5)))


@pytest.mark.parametrize(
    ("domain", "words"),
    [
        (tune.choice([]), "m/p: choice([]): there is nothing to choose from"),
        (tune.grid_search([]), "m/p: grid_search([]) has no values"),
        ({"grid_search": 3}, "m/p: grid_search(3) has no values"),
        (
            tune.uniform(1, 1),
            "m/p: uniform(1, 1): the lower bound must be below the upper one, and 1 is not below 1",
        ),
        (tune.uniform("1", 2), "m/p: uniform('1', 2): the lower bound must be a number, not '1'"),
        (tune.uniform(0, math.inf), "the upper bound must be finite, not inf"),
        (tune.uniform(math.nan, 1), "the lower bound must be finite, not nan"),
        (
            tune.loguniform(0, 1),
            "the lower bound must be above 0, not 0: bounds are values themselves, not their "
            "logarithms",
        ),
        (tune.loguniform(-4, -1), "the lower bound must be above 0, not -4"),
        (tune.quniform(0, 1, 0.3), "the upper bound 1 is no multiple of the step 0.3"),
        (tune.quniform(0, 1, 0), "the step must be a number above 0, not 0"),
        (tune.randint(0, 1.5), "the upper bound must be a whole number, not 1.5"),
        (tune.randint(3, 3), "3 is not below 3"),
        (tune.qrandint(1, 3, 5), "there is no multiple of 5 between 1 and 3"),
        (tune.qrandint(1, 3, -1), "the step must be at least 1, not -1"),
        (tune.lograndint(0, 3), "the lower bound must be above 0"),
        (tune.randn(0, 0), "the standard deviation must be a number above 0, not 0"),
        (tune.choice([{"a": tune.choice([])}]), "m/p/a: choice([])"),
        (tune.choice([tune.grid_search([1])]), "m/p: there is a grid inside a choice"),
        ([1, tune.choice([])], "m/p/1: choice([])"),
    ],
)
def test_what_is_refused_names_the_parameter(domain: Any, words: str) -> None:
    with pytest.raises(ValueError) as raised:
        Variants({"m": {"p": domain}, "good": tune.uniform(0, 1)})
    assert "param_space" in str(raised.value) and words in str(raised.value)


def test_all_that_is_wrong_is_said_at_once() -> None:
    inside: dict[str, Any] = {}
    inside["again"] = inside
    with pytest.raises(
        ValueError, match="(?s)a: choice.*b: uniform.*inside/again: it contains itself"
    ):
        space_tree.check({"a": tune.choice([]), "b": tune.uniform(1, 0), "inside": inside})
    with pytest.raises(TypeError, match="param_space must be a dict of parameters, not 3"):
        space_tree.check(3)
    with pytest.raises(ValueError, match="uniform.*nothing to choose|nothing to choose"):
        tune.choice([]).sample()


def configs(space: Any, samples: int | None = 1, **options: Any) -> list[dict]:
    variants = Variants(space, samples, **options)
    return [variants.at(number).config for number in range(variants.total or 0)]


def test_grids_are_combined_and_each_combination_is_sampled() -> None:
    space = {
        "b": tune.grid_search("xy"),
        "a": tune.grid_search([1, 2]),
        "c": 5,
        "d": {"e": [tune.grid_search([7]), (3,)]},
    }
    found = configs(space, 2)
    assert [(one["a"], one["b"]) for one in found] == [(1, "x"), (2, "x"), (1, "y"), (2, "y")] * 2
    assert all(one["c"] == 5 and one["d"] == {"e": [7, (3,)]} for one in found)


def test_grids_of_values_with_spaces_inside() -> None:
    space = {"a": tune.grid_search([1, {"x": tune.grid_search([7, 8]), "y": tune.uniform(0, 1)}])}
    variants = Variants(space, 1, seed=1)
    assert variants.total == 3
    assert [
        variants.at(number).config["a"] if number == 0 else variants.at(number).config["a"]["x"]
        for number in range(3)
    ] == [1, 7, 8]
    assert set(variants.at(2).varied) == {"a/x", "a/y"} and variants.at(2).varied["a/x"] == 8


def test_a_million_points_are_not_made() -> None:
    variants = Variants({f"p{number}": tune.grid_search(range(10)) for number in range(6)}, 5)
    assert variants.total == 5_000_000
    assert list(variants.at(4_123_456).config.values()) == [6, 5, 4, 3, 2, 1]
    with pytest.raises(IndexError, match="5000000 configurations"):
        variants.at(5_000_000)


def test_a_configuration_is_a_function_of_its_number() -> None:
    space = {
        "lr": tune.loguniform(1e-4, 1),
        "n": tune.randint(0, 1000),
        "g": tune.grid_search([1, 2]),
    }
    one, other = Variants(space, 50, seed=3), Variants(space, 50, seed=3)
    numbers = list(range(100))
    random.Random(0).shuffle(numbers)
    assert {number: one.at(number) for number in numbers} == {
        number: other.at(number) for number in range(100)
    }
    assert Variants(space, 50, seed=4).at(0) != one.at(0)
    assert len({one.at(number).config["lr"] for number in range(100)}) == 100
    held = Variants(space, 50, seed=3, constant_grid=True)
    assert held.at(0).config["lr"] == held.at(1).config["lr"] != held.at(2).config["lr"]


def test_functions_come_last_and_see_the_rest() -> None:
    space = {
        "first": tune.sample_from(lambda spec: spec.config.model.width * 2),
        "second": tune.sample_from(lambda config: config["first"] + 1),
        "model": {"width": tune.randint(1, 9), "kind": "mlp"},
        "third": tune.sample_from(lambda: 7),
        "whole": tune.sample_from(lambda spec: spec.model),
        "made": tune.sample_from(lambda spec: tune.choice([spec.third])),
    }
    for config in configs(space, 20):
        width = config["model"]["width"]
        assert (config["first"], config["second"], config["third"], config["made"]) == (
            2 * width,
            2 * width + 1,
            7,
            7,
        )
        assert config["whole"] == {"width": width, "kind": "mlp"} and type(config["whole"]) is dict


NESTED = {
    "width": tune.randint(1, 1000),
    "outer": tune.grid_search([1, 2]),
    "depth": tune.sample_from(
        lambda spec: tune.grid_search(
            [
                spec.config.outer,
                {"lr": tune.uniform(0, 1), "n": tune.sample_from(lambda: tune.grid_search("ab"))},
            ]
        )
    ),
    "after": tune.sample_from(
        lambda spec: (
            spec.config.depth if isinstance(spec.config.depth, int) else spec.config.depth.n
        )
    ),
}


def proposed(asked: VariantSearcher, first: int = 0) -> list[Any]:
    found: list[Any] = []
    while not asked.finished():
        found.append(asked.propose(str(first + len(found))))
    return found


def test_a_grid_that_a_function_returns_is_expanded_for_each_value_that_was_drawn() -> None:
    """As in Ray: what was drawn before the grid is the same at all its points; what stands in a
    value of it is drawn, or a grid again."""
    asked = searcher(NESTED, 2, seed=3)
    assert asked.total() == 4
    first = asked.propose("first")
    assert (
        first is not None and first.config["after"] == 1 and asked.total() == 5
    )  # the grid inside is not known yet
    found = [each.config for each in proposed(asked)]
    assert [each["after"] for each in found] == [
        "a",
        "b",
        2,
        "a",
        "b",
        1,
        "a",
        "b",
        2,
        "a",
        "b",
    ] and asked.total() == 12
    widths = [each["width"] for each in found]
    assert widths[0] == widths[1] != widths[2] == widths[3] == widths[4] != widths[5]
    assert (
        found[0]["depth"]["lr"] == found[1]["depth"]["lr"] != found[3]["depth"]["lr"]
        and found[0]["depth"]["n"] == "a"
    )
    assert asked.propose("past") is None
    made = list(Variants(NESTED, 1, seed=3).each_at(1))
    assert [each.left for each in made] == [1, 1, 0] and made[2].varied.keys() == {
        "width",
        "outer",
        "depth/lr",
        "depth/n",
        "after",
    }


@pytest.mark.parametrize("most", [None, 7])
def test_a_sweep_that_is_resumed_within_a_grid_of_a_function_goes_on_there(
    most: int | None,
) -> None:
    def made() -> VariantSearcher:
        found = searcher(NESTED, 2, seed=3)
        if most is not None:
            found.limit(most)
        return found

    whole = proposed(made())
    assert len(whole) == (most or 12)
    for count in range(len(whole) + 1):
        again = made()
        for number, each in enumerate(
            [*whole[:count], *whole[:1]][: count + 1]
        ):  # the first is tried again, by another trial
            again.proposed(str(number), each)
        assert proposed(again, count) == whole[max(count, 1) :] and again.total() == len(whole)


def test_a_function_that_returns_a_smaller_grid_after_a_restart_hinders_nothing() -> None:
    sizes = iter([3, 1, 2])
    space = {"x": tune.sample_from(lambda: tune.grid_search(range(next(sizes))))}
    first = searcher(space, 2)
    kept = [first.propose("0"), first.propose("1")]
    again = searcher(space, 2)
    for number, each in enumerate(kept):
        again.proposed(str(number), each)
    assert [each.config["x"] for each in proposed(again, 2)] == [0, 1] and again.total() == 4
    assert again.propose("past") is None


def test_a_grid_of_a_function_that_no_trial_can_come_of_is_an_error_that_names_it() -> None:
    with pytest.raises(ValueError, match=r"param_space: m/x: grid_search\(\[\]\) has no values"):
        Variants({"m": {"x": tune.sample_from(lambda: tune.grid_search([]))}}, 1).at(0)
    with pytest.raises(
        ValueError,
        match="x: a function of sample_from returned a grid, of which a searcher cannot propose "
        "each point",
    ):
        space_tree.draw({"x": tune.sample_from(lambda: tune.grid_search([1]))}, random.Random(1))


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (
            {
                "a": tune.sample_from(lambda spec: spec.config.b),
                "b": tune.sample_from(lambda spec: spec.config.a),
            },
            "functions need each other's values: a needs b, b needs a",
        ),
        (
            {"a": tune.sample_from(lambda spec: spec.config.wdith), "width": 3},
            "a: sample_from.* raised AttributeError.*'wdith': did you mean 'width'?",
        ),
        (
            {"m": {"a": tune.sample_from(lambda: 1 / 0)}},
            "m/a: sample_from.* raised ZeroDivisionError",
        ),
    ],
)
def test_functions_that_fail_are_named(space: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Variants(space, 1).at(0)
    with pytest.raises(TypeError, match="one argument"):
        tune.sample_from(lambda a, b: a)
    with pytest.raises(TypeError, match="takes a function"):
        tune.sample_from(3)  # type: ignore[arg-type]


def test_points_come_first_and_take_a_sample_each() -> None:
    space = {"a": tune.grid_search([1, 2]), "b": tune.randint(0, 3), "m": {"c": tune.uniform(0, 1)}}
    found = configs(space, 4, points=[{"a": 2, "b": 2}, {"a": 1}, {"b": 2, "m": {"c": 0.5}}])
    assert len(found) == 6 and found[0]["a"] == found[0]["b"] == 2 and found[1]["a"] == 1
    assert [(one["a"], one["b"], one["m"]["c"]) for one in found[2:4]] == [(1, 2, 0.5), (2, 2, 0.5)]
    assert [one["a"] for one in found[4:]] == [1, 2]
    with pytest.raises(
        ValueError, match=r"points_to_evaluate\[0\]: 'm/d' is no parameter of param_space"
    ):
        Variants(space, 1, points=[{"m": {"d": 1}}])


def test_the_generator_is_refused_what_it_cannot_have() -> None:
    with pytest.raises(TypeError, match="points_to_evaluate must be a list of dicts"):
        BasicVariantGenerator({"a": 1})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_concurrent"):
        BasicVariantGenerator(max_concurrent=-1)
    with pytest.raises(TypeError, match="a seed is a whole number"):
        BasicVariantGenerator(random_state="x")
    for number in (0, -2, 1.5, True):
        with pytest.raises(ValueError, match="num_samples"):
            searcher({}, number)  # type: ignore[arg-type]


def test_the_searcher_after_a_restart_goes_on_where_it_was() -> None:
    generator = BasicVariantGenerator(random_state=random.Random(5), max_concurrent=2)
    space = {"x": tune.uniform(0, 1), "g": tune.grid_search([1, 2, 3])}
    one, other = (pickle.loads(pickle.dumps(generator)).searcher(space, 2) for _ in range(2))
    assert one.total() == 6
    made = [one.propose("t0"), one.propose("t1")]
    assert one.propose("t2") is None and not one.finished()  # two run
    one.ended("t0", End.COMPLETED, None)
    made.append(one.propose("t2"))
    for number in range(3):
        other.proposed(f"t{number}", made[number])
    other.ended("t0", End.COMPLETED, None)
    assert other.propose("t3") is one.propose("t3") is None
    for each in (one, other):
        each.ended("t1", End.FAILED, None)
    assert other.propose("t3") == one.propose("t3")
    for number in range(4, 7):
        for each in (one, other):
            each.ended(f"t{number - 2}", End.COMPLETED, None)
        assert other.propose(f"t{number}") == one.propose(f"t{number}")
    assert one.finished() and other.finished()


def test_without_end() -> None:
    found = searcher({"x": tune.uniform(0, 1)}, -1, seed=1)
    assert found.total() is None and not found.finished()
    assert len({found.propose(f"t{number}").config["x"] for number in range(50)}) == 50


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(1, 3))
def test_every_grid_point_comes_as_often_as_there_are_samples(
    sizes: list[int], samples: int
) -> None:
    space = {f"p{number}": tune.grid_search(range(size)) for number, size in enumerate(sizes)}
    found = [tuple(config.values()) for config in configs(space, samples)]
    wanted = list(itertools.product(*(range(size) for size in sizes))) * samples
    assert sorted(found) == sorted(wanted)
