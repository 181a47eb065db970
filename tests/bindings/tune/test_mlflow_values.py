"""Values sent to MLflow for reports and configurations, and the run that a resumed sweep continues.

Method: pure functions, with values that trials report; the record of a sweep's run is damaged in
each way.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from troupe._tracking import rule
from troupe.tune.logger import _mlflow_runs, _values


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (1, 1.0),
        (0.5, 0.5),
        (True, 1.0),
        ("1", None),
        (None, None),
        ([1.0], None),
        (math.inf, math.inf),
    ],
)
def test_numbers_alone_are_metrics(value: Any, number: float | None) -> None:
    assert _values.number_of(value) == number


def test_arrays_of_no_dimension_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    assert (
        _values.number_of(numpy.float32(0.5)) == 0.5 == _values.number_of(numpy.array(0.5))
        and _values.number_of(numpy.zeros(1)) is None
    )
    assert math.isnan(_values.metrics_of({"a": numpy.float64("nan")})["a"])


def test_names_are_as_mlflow_takes_them() -> None:
    assert _values.metrics_of({"top-1 (val)": 1, "é": 2, "a" * 300: 3}) == {
        "top-1 _val_": 1.0,
        "é": 2.0,
        "a" * 250: 3.0,
    }
    assert [
        _values.key_of(name) for name in ("/a", "a//b/", "../a", "..", "./a", "a/../b", "loss.1")
    ] == ["a", "a/b", "__/a", "__", "a", "b", "loss.1"]
    assert _values.parameters_of(
        {"optimizer": {"lr": 0.1, "betas": (0.9, 0.99)}, "text": "x" * 9000}
    ) == {"optimizer/lr": "0.1", "optimizer/betas": "(0.9, 0.99)", "text": "x" * 6000}


def test_where_and_when_a_report_was_made_is_no_metric() -> None:
    assert _values.metrics_of(
        {
            "training_iteration": 3,
            "time_total_s": 1.5,
            "pid": 7,
            "timestamp": 1,
            "done": True,
            "config": {"lr": 1},
        }
    ) == {"training_iteration": 3.0, "time_total_s": 1.5}
    assert (
        _values.step_of({"training_iteration": 3}) == 3
        and _values.step_of({"timesteps_total": 512, "training_iteration": 3}) == 512
    )
    assert _values.time_ms_of({"timestamp": 2}, 5) == 2000 and _values.time_ms_of({}, 5) == 5


def test_parameters_that_have_changed_are_metrics() -> None:
    before = _values.parameters_of({"lr": 0.1, "opt": {"decay": 1, "name": "adam"}})
    assert _values.changed(before, {"lr": 0.1, "opt": {"decay": 1, "name": "adam"}}) == {}
    assert _values.changed(before, {"lr": 0.12, "opt": {"decay": 2, "name": "sgd"}}) == {
        "config/lr": 0.12,
        "config/opt/decay": 2.0,
    }


@pytest.mark.parametrize(
    "kind",
    [
        "whole",
        "missing",
        "empty",
        "half",
        "zeros at its end",
        "other bytes",
        "no mapping",
        "without its run",
    ],
)
def test_a_damaged_record_of_the_sweeps_run_is_said_and_another_run_is_made(
    tmp_path: Path, kind: str
) -> None:
    pytest.importorskip("mlflow")
    kept = {"store": "http://there", "run": "before", "experiment": "7"}
    whole = json.dumps(kept).encode()
    found = {
        "whole": whole,
        "empty": b"",
        "half": whole[:20],
        "zeros at its end": whole[:20] + bytes(20),
        "other bytes": bytes(range(128, 256)),
        "no mapping": b"[1]",
        "without its run": b'{"store": "http://there", "experiment": "7"}',
    }
    path = tmp_path / _mlflow_runs.FILE
    if kind != "missing":
        path.write_bytes(found[kind])
    said: list[str] = []
    asked: list[str] = []
    client = SimpleNamespace(
        update_run=lambda run, status: asked.append(run), search_runs=lambda *_, **__: _Page()
    )
    seen: Any = SimpleNamespace(path=str(tmp_path), quiet=True)
    sweep = _mlflow_runs.SweepRuns(
        seen,
        rule.Wish(local=False, store="http://there", name="sweep"),
        lambda: client,
        said.append,
        {},
    )
    assert sweep._known(client) == (kind == "whole") and asked == (
        ["before"] if kind == "whole" else []
    )
    assert len(said) == (kind not in ("whole", "missing"))
    assert all(
        f"{path} is damaged at offset " in line and "the sweep goes on in another run" in line
        for line in said
    )


class _Page(list):
    token = None
