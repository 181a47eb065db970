"""A space in `sweep.json` tells Optuna the same parameters as the space itself, with the journal's
configurations and nothing unpickled.

Method: a sweep's folder is written and read as the engine and `troupe sweep dashboard` do; the
parameters are compared with those of the space and of the configuration in memory. Objects raise
when they are unpickled.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from troupe import tune
from troupe.tune._journal import space, values
from troupe.tune._journal.journal import digest_of, object_data
from troupe.tune._search import variants

pytest.importorskip("optuna")
from troupe.tune._search import optuna_space


def _burst(name: str) -> Any:
    raise AssertionError(f"{name} was unpickled")


class Bomb:
    """An object that cannot be unpickled."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> Any:
        return _burst, (self.name,)


SPACE = {
    "lr": tune.loguniform(1e-4, 1e-1),
    "width": tune.qrandint(8, 64, 8),
    "kind": tune.choice(["a", "b", None]),
    "drop": tune.quniform(0.0, 0.5, 0.1),
    "batch": tune.grid_search([16, 32]),
    "hand": {"grid_search": range(3)},
    "noise": tune.randn(0, 1),
    "made": tune.sample_from(lambda spec: spec.config.width),
    "optimizer": tune.choice(
        [
            {"name": "sgd", "momentum": tune.uniform(0, 1), "f": tune.sample_from(lambda: 1)},
            OrderedDict(name="adam", beta=tune.uniform(0.9, 1)),
        ]
    ),
    "model": tune.choice([Bomb("one"), Bomb("two"), (1, Bomb("three"))]),
    "bounds": tune.uniform(np.float32(0.5), np.int64(2)),
    "plain": OrderedDict(x=[tune.randint(0, 9), "text"]),
    "constant": Bomb("constant"),
    7: tune.randint(0, 3),
}


def test_the_parameters_are_those_of_the_space_and_no_object_is_unpickled(tmp_path: Path) -> None:
    written = tmp_path / "sweep.json"
    written.write_text(json.dumps({"space": space.encoded(SPACE)}))
    read = space.decoded(json.loads(written.read_bytes())["space"])
    made = variants.Variants(SPACE, 20, seed=3)
    assert made.total is not None
    seen = set()
    for number in range(made.total):
        config = values.plain_scalars(made.at(number).config)
        kept = json.dumps(values.encoded(config, lambda part: digest_of(object_data(part))))
        meant = list(optuna_space.parameters(SPACE, config))
        found = list(
            optuna_space.parameters(read, values.decoded(json.loads(kept), space.NotLoaded))
        )
        assert found == meant
        seen |= {(name, value) for name, value, _ in found if name == "model"} | {
            (name, None) for name, _, _ in found
        }
    assert {name for name, _ in seen} == {
        "lr",
        "width",
        "kind",
        "drop",
        "batch",
        "hand",
        "optimizer",
        "optimizer[0]/momentum",
        "optimizer[1]/beta",
        "model",
        "bounds",
        "plain/x/0",
        "7",
    }
    assert {value for name, value in seen if name == "model"} == {0, 1, 2, None}


def test_a_space_that_is_too_large_is_not_kept_and_what_cannot_be_pickled_is_in_nobodys_way() -> (
    None
):
    assert (
        space.encoded({"x": tune.choice(["a" * 1000] * 2000)}) is None
        and space.decoded(None) is None
    )
    read = space.decoded(space.encoded({"x": tune.uniform(0, 1), "file": open}))  # noqa: SIM115
    assert [name for name, _, _ in optuna_space.parameters(read, {"x": 0.5})] == ["x"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Bomb, "__reduce__", lambda self: 1 / 0)
        assert space.decoded(space.encoded({"bomb": Bomb("none")})) == {"bomb": space.NotLoaded("")}


@pytest.mark.parametrize(
    "damaged",
    [
        {"x": {"__object__": {}}},
        {"x": {"__object__": {"domain": "none"}}},
        {"x": {"__object__": {"domain": "Float", "low": 1}}},
        {"x": {"__object__": 1}},
    ],
)
def test_json_that_is_no_space_is_an_error_of_the_kinds_named(damaged: Any) -> None:
    with pytest.raises((LookupError, TypeError, ValueError)):
        space.decoded(damaged)
