"""A7: frameworks' programs run unchanged, and learn what they learn under torchrun.

Method: each program is run by torchrun and, on a cluster that is already there, by Troupe: forked
with torch loaded, in fresh interpreters, as a function. Its ranks print or return each loss with
all of its digits; `losses.py` has the rule by which they are compared.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest
from losses import Losses, verdict
from runs import by_distributed, by_submit, by_torchrun

NEEDS = {
    "deepspeed_zero": "deepspeed",
    "lightning_trainer": "pytorch_lightning",
    "accelerate_loop": "accelerate",
    "hf_trainer": "transformers",
}
LINES = {
    "ddp": ["ddp"],
    "fsdp2": ["fsdp2"],
    "zero1": ["deepspeed_zero", "--stage", "1"],
    "zero2": ["deepspeed_zero", "--stage", "2"],
    "zero3": ["deepspeed_zero", "--stage", "3"],
    "lightning": ["lightning_trainer"],
    "accelerate": ["accelerate_loop"],
    "hf_trainer": ["hf_trainer"],
    "compile": ["compiled"],
    "loader_workers": ["loader_workers"],
    "loader_persistent": ["loader_workers", "--persistent"],
}
LONG_LINES = {
    "fsdp2_bfloat16": ["fsdp2", "--bfloat16"],
    "loader_spawn": ["loader_workers", "--persistent", "--context", "spawn"],
    "loader_forkserver": ["loader_workers", "--persistent", "--context", "forkserver"],
}
FRESH = functools.partial(by_submit, options=["--fresh"])
AS_FUNCTION = ("ddp", "fsdp2", "zero3", "lightning", "accelerate", "hf_trainer", "loader_workers")


def needed(line: list[str]) -> None:
    package = NEEDS.get(line[0])
    if package and importlib.util.find_spec(package) is None:
        pytest.skip(
            f"{package} is not installed here: ./test frameworks installs it, and keeps what pip "
            "said in .venv-frameworks/deepspeed.log"
        )


@functools.cache
def torchrun(*line: str) -> Losses:
    """Once for all tests of this module."""
    return by_torchrun(*line)


def same(
    line: list[str], run: Callable[..., Losses], record: Callable[[str, object], None]
) -> None:
    needed(line)
    found = verdict(torchrun(*line), run(*line), lambda: by_torchrun(*line))
    record("difference", found.difference)
    assert not found.why, found.why


@pytest.mark.parametrize("name", LINES)
def test_a7_forked(name: str, warm: Path, record_property: Callable[[str, object], None]) -> None:
    same(LINES[name], by_submit, record_property)


@pytest.mark.parametrize("name", AS_FUNCTION)
def test_a7_as_a_function(
    name: str, warm: Path, record_property: Callable[[str, object], None]
) -> None:
    same(LINES[name], by_distributed, record_property)


@pytest.mark.long
@pytest.mark.parametrize("name", LONG_LINES)
def test_a7_forked_too(
    name: str, warm: Path, record_property: Callable[[str, object], None]
) -> None:
    same(LONG_LINES[name], by_submit, record_property)


@pytest.mark.long
@pytest.mark.parametrize("name", [*LINES, *LONG_LINES])
def test_a7_fresh(name: str, warm: Path, record_property: Callable[[str, object], None]) -> None:
    same({**LINES, **LONG_LINES}[name], FRESH, record_property)
