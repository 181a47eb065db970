"""Options of remote functions: what is refused, by which error, and what stands where nothing is
said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import troupe
from troupe._tasks.options import check, placing


def plain() -> None:
    """A function."""


def yields():
    """A function that yields."""
    yield 1


async def later() -> None:
    """A coroutine."""


WRONG = [
    ({"nonsense": 1}, ValueError, "max_retries"),
    ({"num_returns": -1}, ValueError, "num_returns"),
    ({"num_returns": "many"}, ValueError, "streaming"),
    ({"max_retries": -2}, ValueError, "max_retries"),
    ({"max_retries": 1.5}, TypeError, "max_retries"),
    ({"max_retries": True}, TypeError, "max_retries"),
    ({"retry_exceptions": KeyError}, ValueError, "retry_exceptions"),
    ({"retry_exceptions": ["KeyError"]}, ValueError, "retry_exceptions"),
    ({"max_calls": -1}, ValueError, "max_calls"),
    ({"max_calls": "2"}, TypeError, "max_calls"),
    ({"num_cpus": -1}, ValueError, "num_cpus"),
    ({"num_cpus": "2"}, TypeError, "num_cpus"),
    ({"num_cpus": float("nan")}, ValueError, "num_cpus"),
    ({"num_gpus": 1.5}, ValueError, "whole GPUs"),
    ({"memory": None, "resources": 3}, TypeError, "resources"),
    ({"resources": {"CPU": 1}}, ValueError, "num_cpus"),
    ({"resources": {"disk": -1}}, ValueError, "disk"),
    ({"name": 3}, TypeError, "name"),
    ({"accelerator_type": 100}, ValueError, "accelerator_type"),
    (
        {"accelerator_type": "H100", "label_selector": {"gpu_type": "A10"}},
        ValueError,
        "different GPUs",
    ),
    ({"label_selector": "zone=a"}, ValueError, "label_selector"),
    ({"label_selector": {"zone": 1}}, ValueError, "zone"),
    ({"fallback_strategy": [{"zone": "a"}]}, ValueError, "fallback_strategy"),
    ({"priority": 1.5}, ValueError, "priority"),
]


@pytest.mark.parametrize(("options", "kind", "words"), WRONG)
def test_what_can_never_be_right_is_refused(options: dict, kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        check(plain, options)


class Plain:
    """A class."""


AMOUNTS = [
    (
        {"num_gpus": -1},
        ValueError,
        "num_gpus must be a number of at least 0, and at most 1e+14, not -1",
    ),
    (
        {"num_cpus": float("nan")},
        ValueError,
        "num_cpus must be a number of at least 0, and at most 1e+14, not nan",
    ),
    (
        {"num_cpus": float("inf")},
        ValueError,
        "num_cpus must be a number of at least 0, and at most 1e+14, not inf",
    ),
    (
        {"memory": -5},
        ValueError,
        "memory must be a number of at least 0, and at most 1e+14, not -5",
    ),
    (
        {"num_gpus": 1.5},
        ValueError,
        "num_gpus must be a fraction of one GPU or whole GPUs, not 1.5",
    ),
    ({"num_gpus": "1"}, TypeError, "num_gpus must be a number of at least 0, not '1'"),
    ({"num_cpus": "1"}, TypeError, "num_cpus must be a number of at least 0, not '1'"),
    ({"num_cpus": True}, TypeError, "num_cpus must be a number of at least 0, not True"),
    ({"memory": "1"}, TypeError, "memory must be a number of at least 0, not '1'"),
    (
        {"resources": {"GPU": 1.5}},
        ValueError,
        "give GPU as num_cpus=, num_gpus= or memory=, not inside resources=",
    ),
    (
        {"resources": {"disk": -1}},
        ValueError,
        "resources['disk'] must be a number of at least 0, and at most 1e+14, not -1",
    ),
    (
        {"resources": {"disk": "1"}},
        TypeError,
        "resources['disk'] must be a number of at least 0, not '1'",
    ),
    ({"resources": {3: 1}}, TypeError, "resources: 3 is no name of a resource"),
    ({"resources": 3}, TypeError, "resources must be a dict of names and amounts, not 3"),
]
FORMS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "decorated function": lambda options: troupe.remote(**options)(plain),
    "options of a function": lambda options: troupe.remote(plain).options(**options),
    "decorated class": lambda options: troupe.remote(**options)(Plain),
    "options of a class": lambda options: troupe.remote(Plain).options(**options),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("options", "kind", "words"), AMOUNTS)
def test_an_amount_that_is_none_is_refused_alike_for_tasks_and_actors_before_anything_starts(
    options: dict, kind: type, words: str, form: str
) -> None:
    with pytest.raises(kind) as caught:
        FORMS[form](options)
    assert str(caught.value) == words


def test_coroutines_are_for_actors() -> None:
    with pytest.raises(ValueError, match="async def"):
        check(later, {})


def test_defaults() -> None:
    options = check(plain, {})
    assert options.max_retries == 3 and options.max_calls == 0 and options.retried == 0
    assert options.name == "plain" and options.target("k") == "k"
    assert check(yields, {}).target("k") == "k;returns=*"
    assert check(yields, {"num_returns": 2}).target("k") == "k;returns=2"
    assert check(plain, {"num_returns": "dynamic"}).target("k") == "k;returns=*"
    assert check(plain, {"retry_exceptions": True}).retried == 1
    assert check(plain, {"retry_exceptions": [KeyError]}).retried == 2
    assert check(plain, {"retry_exceptions": []}).retried == 0


def test_one_cpu_unless_something_is_said() -> None:
    assert placing({"name": "x", "max_calls": 1}) == {"num_cpus": 1}
    assert placing({"num_cpus": 0, "num_gpus": 1}) == {"num_cpus": 0, "num_gpus": 1}


def test_a_process_that_has_a_gpu_runs_one_task() -> None:
    """As Ray's: what the task leaves there, or breaks there, is not the next one's."""
    assert check(plain, {}).max_calls == 0 and check(plain, {"num_gpus": 0}).max_calls == 0
    assert check(plain, {"num_gpus": 0.5}).max_calls == 1
    assert check(plain, {"num_gpus": 1, "max_calls": 0}).max_calls == 0
