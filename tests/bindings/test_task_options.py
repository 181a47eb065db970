"""Options of remote functions: what is refused, by which error, and what stands where nothing is said."""
from __future__ import annotations

import pytest

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
    ({"accelerator_type": "H100", "label_selector": {"gpu_type": "A10"}}, ValueError, "different GPUs"),
    ({"label_selector": "zone=a"}, ValueError, "label_selector"),
    ({"label_selector": {"zone": 1}}, ValueError, "zone"),
    ({"fallback_strategy": [{"zone": "a"}]}, ValueError, "fallback_strategy"),
    ({"priority": 1.5}, ValueError, "priority"),
]


@pytest.mark.parametrize(("options", "kind", "words"), WRONG)
def test_what_can_never_be_right_is_refused(options: dict, kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        check(plain, options)


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
