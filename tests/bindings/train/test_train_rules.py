"""Rules of troupe.train: which checkpoints stay, when a report is complete, whose failure is the
cause, invalid configurations.

Method: the pure modules, case by case.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from troupe import exceptions, tune
from troupe.train import (
    CheckpointConfig,
    DataConfig,
    FailureConfig,
    RunConfig,
    ScalingConfig,
    _failures,
    _gang,
    _metrics,
    _retention,
    _trainer,
)
from troupe.train._reports import Barrier, TrainReport, Uneven
from troupe.train._retention import Kept
from troupe.train.torch import TorchConfig, TorchTrainer


def kept(*values: Any) -> list[Kept]:
    return [
        Kept(f"c{number}", number, {"loss": value} if value is not None else {})
        for number, value in enumerate(values, 1)
    ]


@pytest.mark.parametrize(
    ("values", "number", "attribute", "order", "dropped"),
    [
        ((1, 2, 3), None, None, "max", []),
        ((1, 2, 3), 2, None, "max", ["c1"]),  # the latest stay
        ((1, 2, 3), 3, None, "max", []),
        ((3, 1, 2), 1, "loss", "min", ["c1"]),  # c2 is the best, c3 the latest
        ((3, 1, 2), 1, "loss", "max", ["c2"]),
        ((1, 1, 0), 1, "loss", "max", ["c1"]),  # the later one of equal ones
        ((math.nan, 1, 0), 2, "loss", "min", ["c1"]),  # NaN is worse than all
        ((None, 5, 6), 2, "loss", "min", ["c1"]),  # so is a checkpoint without the number
        ((math.inf, 5, 6), 2, "loss", "max", ["c2"]),
        ((True, 5, 6), 2, "loss", "max", ["c1"]),
    ],
)
def test_which_checkpoints_go(
    values: tuple, number: int | None, attribute: str | None, order: str, dropped: list[str]
) -> None:
    assert [
        one.name for one in _retention.to_drop(kept(*values), number, attribute, order)
    ] == dropped


def test_a_score_may_lie_inside() -> None:
    assert _retention.value_of({"val": {"loss": 2}}, "val/loss") == 2
    assert _retention.value_of({"val/loss": 1, "val": {"loss": 2}}, "val/loss") == 1
    assert _retention.value_of({"val": 3}, "val/loss") is None


def test_a_report_is_complete_when_every_rank_has_reported() -> None:
    barrier = Barrier(3)
    assert barrier.waits() == "" and barrier.reported(1, TrainReport(None, "1/rank-1")) is None
    assert barrier.waits() == "rank 1 waits in report() number 1 of this attempt for ranks 0, 2"
    assert barrier.reported(0, TrainReport({"a": 1}, "")) is None
    assert barrier.waits() == "ranks 0, 1 wait in report() number 1 of this attempt for rank 2"
    done = barrier.reported(2, TrainReport(None, "2/rank-2", "best"))
    assert done is not None and (done.number, done.metrics, done.parts, done.dir_name) == (
        1,
        {"a": 1},
        ("1/rank-1", "2/rank-2"),
        "best",
    )
    assert barrier.reported(0, TrainReport({"a": 2}, "")) is None
    assert barrier.reported(1, TrainReport(None, "")) is None
    again = barrier.reported(2, TrainReport(None, ""))
    assert again is not None and (again.number, again.metrics, again.parts, again.dir_name) == (
        2,
        {"a": 2},
        (),
        None,
    )
    assert [barrier.returned(rank) for rank in (2, 0, 1)] == [False, False, True]


@pytest.mark.parametrize("returns_first", [True, False])
def test_ranks_that_report_less_often_are_named(returns_first: bool) -> None:
    barrier = Barrier(3)
    steps = [lambda: barrier.returned(1), lambda: barrier.reported(0, TrainReport({}, ""))]
    first, second = steps if returns_first else reversed(steps)
    first()
    with pytest.raises(
        Uneven, match="rank 1 returned after 0 calls of .* and rank 0 called it once more"
    ) as raised:
        second()
    assert raised.value.rank == 1


LOST = RuntimeError("[gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:31000")


def task_error(cause: Exception) -> Exception:
    return exceptions.with_type_of(exceptions.TaskError, cause, f"run() raised {cause!r}")


def test_whose_failure_is_the_cause() -> None:
    """A lost connection is what follows from another rank's end."""
    died = exceptions.ActorDiedError("killed")
    assert _failures.cause_of({2: task_error(LOST), 0: task_error(KeyError("lr")), 1: died}) == 0
    assert _failures.cause_of({2: task_error(LOST), 1: died}) == 1
    assert _failures.cause_of({2: task_error(LOST), 1: task_error(LOST)}) == 2
    assert not _failures.is_decided({2: task_error(LOST)}) and _failures.is_decided(
        {2: task_error(LOST), 1: died}
    )
    text = _failures.text_of(
        {2: task_error(LOST), 0: task_error(KeyError("lr"))},
        hosts={0: "node-a"},
        world_size=3,
        attempts=2,
        path="/runs/x",
        checkpoint="checkpoint_000004",
        max_failures=1,
    )
    assert (
        text.startswith("rank 0 of 3 on node-a failed: KeyError: 'lr'\n")
        and "rank 2 then: RuntimeError: [gloo" in text
    )
    assert (
        "attempt 2, max_failures=1; the run is in /runs/x, its latest checkpoint is "
        "checkpoint_000004" in text
    )


def test_attempts_are_counted_and_fruitless_ones_wait() -> None:
    assert [_failures.may_restart(number, 2) for number in (1, 2, 3)] == [True, True, False]
    assert not _failures.may_restart(1, 0) and _failures.may_restart(10**6, -1)
    pauses = [_failures.pause_s(number) for number in range(12)]
    assert pauses[:2] == [0, 0] and pauses == sorted(pauses) and pauses[-1] == 10


def test_ranks_of_a_node_follow_each_other() -> None:
    found = _gang.ranks_of(["b", "a", "b", "a", "a"])
    assert [each[0] for each in found] == [0, 2, 1, 3, 4]  # bundles
    assert [each[1:4] for each in found] == [
        (0, 0, 2),
        (0, 1, 2),
        (1, 0, 3),
        (1, 1, 3),
        (1, 2, 3),
    ]  # node rank, local rank, local size
    assert [each[4] for each in found] == [0, 1, 2, 3, 4]


def test_metrics() -> None:
    np = pytest.importorskip("numpy")
    assert _metrics.check({"loss": np.float32(0.5), "val": {"acc": np.array([1])}}) == {
        "loss": 0.5,
        "val": {"acc": 1},
    }
    assert type(_metrics.check({"loss": np.float32(0.5)})["loss"]) is float
    with pytest.raises(TypeError, match="takes a dict of metrics"):
        _metrics.check([1])
    with pytest.raises(TypeError, match="names of metrics are texts, not 1"):
        _metrics.check({1: 2})
    assert _metrics.plain({"a": np.arange(2), "b": {1}, "c": (1, None)}) == {
        "a": [0, 1],
        "b": "{1}",
        "c": [1, None],
    }
    lines = [
        {"report": 1, "metrics": {"n": 1}},
        {"report": 2, "metrics": {"n": 2}},
        {"restarted_after": 1},
        {"report": 2, "metrics": {"n": 3}},
    ]
    assert _metrics.reports(lines, []) == {1: {"n": 1}, 2: {"n": 3}}
    assert list(
        _metrics.reports(
            [*lines[:1], {"report": 3, "metrics": {"n": 4}}], [(2, {"n": 2}), (1, {})]
        ).values()
    ) == [{"n": 1}, {"n": 2}, {"n": 4}]


def test_tensors_are_for_checkpoints() -> None:
    torch = pytest.importorskip("torch")
    assert _metrics.check({"loss": torch.tensor(0.5)}) == {"loss": 0.5}
    with pytest.raises(
        ValueError,
        match=r"'weights' is a tensor of shape \(2, 2\): report numbers or .tolist\(\), and save tensors in the checkpoint",
    ):
        _metrics.check({"weights": torch.ones(2, 2)})


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: ScalingConfig(num_workers=0), ValueError, "a whole number of at least 1"),
        (lambda: ScalingConfig(num_workers="4"), TypeError, "a whole number of at least 1"),
        (lambda: ScalingConfig(num_workers=True), TypeError, "a whole number of at least 1"),
        (
            lambda: ScalingConfig(num_workers=(2, 4)),
            TypeError,
            "a fixed number of workers, not a range",
        ),
        (lambda: ScalingConfig(use_gpu=1), TypeError, "True or False"),
        (
            lambda: ScalingConfig(placement_strategy="NEAR"),
            ValueError,
            "strategy must be one of PACK",
        ),
        (
            lambda: ScalingConfig(resources_per_worker={"CPU": -1}),
            ValueError,
            "no amount of a resource",
        ),
        (lambda: ScalingConfig(resources_per_worker=[1]), TypeError, "a dict of amounts"),
        (
            lambda: ScalingConfig(resources_per_worker={"GPU": 1}),
            ValueError,
            "use_gpu=True goes with a GPU",
        ),
        (
            lambda: ScalingConfig(use_gpu=True, resources_per_worker={"GPU": 0}),
            ValueError,
            "no GPU is asked for",
        ),
        (
            lambda: ScalingConfig(num_workers=2, label_selector=[{}]),
            ValueError,
            "1 selectors for 2 workers",
        ),
        (lambda: ScalingConfig(use_tpu=True), ValueError, "Troupe knows no TPUs"),
        (lambda: FailureConfig(max_failures=-2), ValueError, "-1 for any number"),
        (lambda: FailureConfig(max_failures=1.5), ValueError, "-1 for any number"),
        (lambda: CheckpointConfig(num_to_keep=0), ValueError, "at least 1, or None"),
        (lambda: CheckpointConfig(checkpoint_score_order="best"), ValueError, "'max' or 'min'"),
        (
            lambda: CheckpointConfig(checkpoint_frequency=1),
            ValueError,
            "reports a checkpoint when it has one",
        ),
        (lambda: RunConfig(name="a/b"), ValueError, "the name of a folder"),
        (
            lambda: RunConfig(storage_path="s3://bucket/x"),
            ValueError,
            "a folder, not a URI: mount it",
        ),
        (lambda: RunConfig(failure_config=3), TypeError, "a FailureConfig"),
        (lambda: RunConfig(callbacks=[print]), ValueError, "is not a part of Troupe"),
        (lambda: TorchConfig(timeout_s=0), ValueError, "more than 0 seconds"),
        (lambda: TorchTrainer("train.py"), TypeError, "a function, which each worker runs"),
        (
            lambda: TorchTrainer(lambda a, b: None),
            ValueError,
            "takes one argument, its config, or none",
        ),
        (lambda: TorchTrainer(lambda: None, train_loop_config=3), TypeError, "a dict"),
        (lambda: TorchTrainer(lambda: None, scaling_config=4), TypeError, "a ScalingConfig"),
        (lambda: TorchTrainer(lambda: None, run_config=4), TypeError, "a RunConfig"),
        (
            lambda: TorchTrainer(lambda: None, run_config=tune.RunConfig(stop={"x": 1})),
            ValueError,
            "the training loop ends when it returns",
        ),
        (
            lambda: TorchTrainer(lambda: None, datasets={"train": [1]}),
            TypeError,
            "a troupe.data.Dataset, as troupe.data.read_parquet",
        ),
        (
            lambda: TorchTrainer(lambda: None, dataset_config=DataConfig(["x"])),
            ValueError,
            "the trainer's datasets are none",
        ),
        (lambda: DataConfig("train"), TypeError, "'all', or a list of datasets' names"),
        (
            lambda: TorchTrainer(lambda: None, resume_from_checkpoint="/x"),
            TypeError,
            "Checkpoint.from_directory",
        ),
    ],
)
def test_what_can_never_be_right_is_refused(make: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words.replace("(", r"\(").replace("[", r"\[")):
        make()


def test_what_a_worker_holds() -> None:
    assert ScalingConfig().bundle() == {"CPU": 1} and ScalingConfig(use_gpu=True).bundle() == {
        "GPU": 1
    }
    assert ScalingConfig(use_gpu=True, resources_per_worker={"CPU": 4}).bundle() == {
        "CPU": 4,
        "GPU": 1,
    }
    selectors = ScalingConfig(
        num_workers=2, use_gpu=True, accelerator_type="H100", label_selector={"zone": "a"}
    ).selectors()
    assert (
        selectors == [{"zone": "a", "gpu_type": "H100"}] * 2 and ScalingConfig().selectors() is None
    )


def test_a_loop_takes_its_config_or_nothing() -> None:
    assert _trainer._arguments(lambda config: None, {"lr": 1}) == ({"lr": 1},)
    assert _trainer._arguments(lambda config: None, None) == ({},)
    assert _trainer._arguments(lambda: None, {"lr": 1}) == ()
    assert _trainer._arguments(lambda config, more=1: None, None) == ({},)


def test_a_run_config_of_sweeps_is_one_of_trainings_where_it_says_nothing_else(
    tmp_path: Path,
) -> None:
    """As programs have it that take both from `ray.air`."""
    given = tune.RunConfig(
        name="both",
        storage_path=tmp_path,
        failure_config=tune.FailureConfig(max_failures=2),
        checkpoint_config=tune.CheckpointConfig(num_to_keep=1),
        verbose=1,
    )
    run = TorchTrainer(lambda: None, run_config=given).run_config
    assert type(run) is RunConfig and (run.name, run.storage_path, run.verbose) == (
        "both",
        tmp_path,
        1,
    )
    assert (
        run.failure_config == FailureConfig(max_failures=2)
        and run.checkpoint_config.num_to_keep == 1
    )
