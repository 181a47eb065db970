"""Pictures of a sweep: made without a display, of what there is, in the formats that are named.

Method: figures of records, written into a folder and looked at as files.
"""

from __future__ import annotations

import pathlib
import random

import pytest

from troupe import tune

pytest.importorskip("optuna")
matplotlib = pytest.importorskip("matplotlib")
from troupe.tune._search import plots
from troupe.tune._search.optuna_storage import TrialRecord

SPACE = {
    "lr": tune.loguniform(1e-4, 1e-1),
    "opt": tune.choice([{"kind": "adam"}, {"kind": "sgd", "momentum": tune.uniform(0, 1)}]),
    "m": {"width": tune.grid_search([16, 32])},
}


def records(number: int) -> list[TrialRecord]:
    generator = random.Random(1)
    made = []
    for each in range(number):
        config = {
            "lr": generator.uniform(1e-4, 1e-1),
            "opt": {"kind": "adam"}
            if each % 2
            else {"kind": "sgd", "momentum": generator.random()},
            "m": {"width": generator.choice([16, 32])},
        }
        made.append(
            TrialRecord(
                f"t{each}",
                config,
                "completed" if each % 4 else "stopped",
                {1: config["lr"]},
                [config["lr"] * 2 + generator.random() / 99],
            )
        )
    return made


def test_pictures_of_a_sweep(tmp_path: pathlib.Path) -> None:
    backend = matplotlib.get_backend()
    made = plots.figures(
        [
            *records(20),
            TrialRecord("runs", {"lr": 0.1}),
            TrialRecord("failed", {"lr": 0.1}, "failed"),
        ],
        SPACE,
        "acc",
        "max",
        name="digits",
    )
    assert (
        list(made) == ["history", "parallel", "importance"] and matplotlib.get_backend() == backend
    )
    assert (
        made["history"].axes[0].get_ylabel() == "acc" and made["history"].get_suptitle() == "digits"
    )
    importance = {tick.get_text() for tick in made["importance"].axes[0].get_yticklabels()}
    assert {"lr", "opt", "m/width"} <= importance
    png, svg = (
        plots.written(made, tmp_path / "new" / "folder"),
        plots.written({"history": made["history"]}, tmp_path, "svg"),
    )
    assert [pathlib.Path(path).name for path in png] == [
        "history.png",
        "parallel.png",
        "importance.png",
    ]
    assert all(pathlib.Path(path).read_bytes().startswith(b"\x89PNG") for path in png)
    assert "<svg" in pathlib.Path(svg[0]).read_text()


def test_what_there_is_not_enough_of_is_left_out_and_said() -> None:
    with pytest.warns(UserWarning, match="there is no picture of importance yet"):
        made = plots.figures(records(1), SPACE, "acc", "max")
    assert "history" in made and "importance" not in made
    with pytest.raises(ValueError, match="no trial of digits has ended with a number as 'acc'"):
        plots.figures([TrialRecord("a", {"lr": 0.1})], SPACE, "acc", "max", name="digits")
    with pytest.raises(ValueError, match="there is no picture 'histoy': did you mean 'history'"):
        plots.figures(records(3), SPACE, "acc", "max", kinds=["histoy"])
    with pytest.raises(ValueError, match="there is no format 'jpg'"):
        plots.written({}, "nowhere", "jpg")
