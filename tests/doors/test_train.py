"""troupe.train: workers that report together, checkpoints that are kept, restarts from them, and
how a training fails.

Method: trainings of a real cluster with Gloo on CPUs; what workers see they write down or report.
Scripts written for Ray: test_train_ray.py; rules and the run's folder: tests/bindings/train.
"""

from __future__ import annotations

import importlib.util
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually

import troupe
from troupe import exceptions, train
from troupe.train import (
    Checkpoint,
    CheckpointConfig,
    FailureConfig,
    Result,
    RunConfig,
    ScalingConfig,
)
from troupe.train.torch import TorchTrainer

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="needs torch")
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def trainer(
    loop: Callable[..., Any],
    storage: Path,
    *,
    workers: int = 2,
    failures: int = 0,
    name: str = "run",
    keep: CheckpointConfig | None = None,
    resume: Checkpoint | None = None,
    **config: Any,
) -> TorchTrainer:
    return TorchTrainer(
        loop,
        train_loop_config=config,
        scaling_config=ScalingConfig(num_workers=workers),
        resume_from_checkpoint=resume,
        run_config=RunConfig(
            name=name,
            storage_path=storage,
            failure_config=FailureConfig(max_failures=failures),
            checkpoint_config=keep,
        ),
    )


def checkpoint_of(folder: Path, **files: str) -> Checkpoint:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return Checkpoint.from_directory(folder)


def test_reports_are_a_barrier_and_rank_0_counts(idle: Home, tmp_path: Path) -> None:
    """Files another rank wrote before its report are there when a report returns; one model on all
    ranks."""

    def loop(config: dict) -> str:
        import torch
        import torch.distributed as dist
        from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

        from troupe.train.torch import get_device, get_devices, prepare_data_loader, prepare_model

        context = train.get_context()
        rank, size = context.get_world_rank(), context.get_world_size()
        assert (
            (rank, size)
            == (dist.get_rank(), dist.get_world_size())
            == (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
        )
        assert (
            context.get_local_rank(),
            context.get_local_world_size(),
            context.get_node_rank(),
        ) == (rank, 3, 0)
        assert (
            context.get_experiment_name()
            == context.get_trial_name()
            == context.get_trial_id()
            == "run"
        )
        assert context.get_trial_dir() == str(
            Path(config["path"]) / "run"
        ) and context.get_trial_resources() == {"CPU": 1}
        assert (
            get_devices() == [get_device()] == [torch.device("cpu")]
            and train.get_checkpoint() is None
        )
        torch.manual_seed(rank)
        model = prepare_model(torch.nn.Linear(1, 1))
        data = TensorDataset(torch.arange(12.0).reshape(12, 1))
        loader = prepare_data_loader(DataLoader(data, batch_size=2, shuffle=True, num_workers=1))
        loader.sampler.set_epoch(1)
        mine = [float(x) for (batch,) in loader for x in batch]
        batches = prepare_data_loader(
            DataLoader(data, batch_sampler=BatchSampler(RandomSampler(data), 3, drop_last=False))
        )
        batched = [float(x) for (batch,) in batches for x in batch]
        model(torch.ones(1, 1)).sum().backward()
        folder = Path(config["path"])
        for number in range(20):
            (folder / f"{number}-{rank}").write_text("")
            train.report({"number": number, "rank": rank, "weight": model.module.weight.detach()})
            assert all((folder / f"{number}-{each}").exists() for each in range(size)), number
        shares: list = [None] * size
        whole = []
        for share in (mine, batched):
            dist.all_gather_object(shares, share)
            whole.append(sorted(x for share in shares for x in share) == list(range(12)))
        return f"{rank} {all(whole)} {len(mine)}"

    result = trainer(loop, tmp_path, workers=3, path=str(tmp_path)).fit()
    assert (
        result.metrics is not None
        and (result.metrics["number"], result.metrics["rank"]) == (19, 0)
        and isinstance(result.metrics["weight"], float)
    )
    assert (
        result.return_value == "0 True 4"
        and result.checkpoint is None
        and result.error is None
        and result.path == str(tmp_path / "run")
    )
    assert [each["number"] for each in result.metrics_history] == list(range(20))
    assert Result.from_path(tmp_path / "run").metrics_history == result.metrics_history


def test_checkpoints_of_several_ranks_are_one(idle: Home, tmp_path: Path) -> None:
    """A file of one name is the lowest rank's; the folder that was given is the caller's; metadata
    stays."""

    def loop(config: dict) -> None:
        rank = train.get_context().get_world_rank()
        mine = checkpoint_of(
            Path(config["path"]) / f"mine-{rank}", common=f"of {rank}", **{f"part{rank}": "x"}
        )
        mine.set_metadata({"rank": rank})
        train.report({"loss": 2.0, "custom": {1}}, checkpoint=mine if rank else None)
        kept = train.get_checkpoint()
        assert (
            kept is not None
            and Path(kept.path).name == "checkpoint_000000"
            and os.listdir(mine.path)
        )
        train.report({"loss": 1.0}, checkpoint=mine, checkpoint_dir_name="best")
        train.report({"loss": 3.0})
        assert Path(train.get_checkpoint().path).name == "best"  # type: ignore[union-attr]

    result = trainer(loop, tmp_path, workers=3, path=str(tmp_path)).fit()
    first, best = (checkpoint for checkpoint, _ in result.best_checkpoints)
    with first.as_directory() as folder:
        assert sorted(os.listdir(folder)) == [
            ".metadata.json",
            "common",
            "part1",
            "part2",
        ] and first.get_metadata() == {"rank": 1}
    assert Path(best.path, "common").read_text() == "of 0" and sorted(os.listdir(best.path))[
        2:
    ] == ["part0", "part1", "part2"]
    assert (
        result.checkpoint == best == result.get_best_checkpoint("loss", "min")
        and result.get_best_checkpoint("loss", "max") == first
    )
    assert result.get_best_checkpoint("nothing", "max") is None and result.metrics == {"loss": 3.0}
    assert result.best_checkpoints[0][1]["custom"] == {1}
    again = Result.from_path(tmp_path / "run")
    assert again.checkpoint == best and again.best_checkpoints[0][1] == {
        "loss": 2.0,
        "custom": "{1}",
    }


def test_pruning_keeps_the_best_and_the_latest(idle: Home, tmp_path: Path) -> None:
    def loop(config: dict) -> None:
        rank = train.get_context().get_world_rank()
        for number, loss in enumerate([3.0, 1.0, math.nan, 2.0, 5.0]):
            mine = (
                checkpoint_of(Path(config["path"]) / "mine", number=str(number))
                if rank == 0
                else None
            )
            train.report({"loss": loss}, checkpoint=mine)
            here = sorted(
                name
                for name in os.listdir(train.get_context().get_trial_dir())
                if name.startswith("checkpoint_")
            )
            assert here == config["expected"][number], (number, here)
            train.report({})  # nobody goes on to the next one before all have looked

    names = [[0], [0, 1], [0, 1, 2], [1, 3], [1, 3, 4]]
    expected = [[f"checkpoint_{number:06d}" for number in each] for each in names]
    keep = CheckpointConfig(
        num_to_keep=2, checkpoint_score_attribute="loss", checkpoint_score_order="min"
    )
    result = trainer(loop, tmp_path, keep=keep, path=str(tmp_path), expected=expected).fit()
    assert [Path(checkpoint.path).name for checkpoint, _ in result.best_checkpoints] == expected[-1]
    assert sorted(os.listdir(tmp_path / "run" / ".reports")) == expected[-1] and not list(
        (tmp_path / "run").glob(".dropped-*")
    )


def counting(config: dict) -> int:
    """Four steps, each with a checkpoint of rank 0; once, as config says, something happens to a
    rank."""
    context = train.get_context()
    rank, start = context.get_world_rank(), 0
    if (checkpoint := train.get_checkpoint()) is not None:
        start = int(Path(checkpoint.path, "step").read_text()) + 1
    with (Path(config["path"]) / f"attempts-{rank}").open("a") as file:
        file.write(f"{start}\n")
    import torch
    import torch.distributed as dist

    for step in range(start, 4):
        marker = Path(config["path"]) / "happened"
        if step == 2 and rank == config["rank"] and not marker.exists():
            if not config.get("always"):
                marker.write_text("")
            if config["what"] == "kill":
                os.kill(os.getpid(), 9)
            elif config["what"] == "kill in a write":
                train._run_folder.copy_to_disk = lambda *_: os.kill(
                    os.getpid(), 9
                )  # owner in this process
            else:
                raise LookupError("batch 7 is not there")
        dist.all_reduce(torch.ones(1))
        mine = (
            checkpoint_of(Path(config["path"]) / f"mine-{rank}", step=str(step), more="x" * 1000)
            if rank == 0
            else None
        )
        train.report({"step": step}, checkpoint=mine)
    return start


@pytest.mark.parametrize(
    ("what", "rank"),
    [
        ("kill", 1),
        pytest.param("kill", 0, marks=pytest.mark.long),
        ("kill in a write", 0),
        pytest.param("raise", 1, marks=pytest.mark.long),
    ],
)
def test_a_failure_starts_all_again_from_the_checkpoint(
    idle: Home, tmp_path: Path, what: str, rank: int, capfd: pytest.CaptureFixture[str]
) -> None:
    result = trainer(counting, tmp_path, failures=1, path=str(tmp_path), what=what, rank=rank).fit()
    assert result.return_value == 2 and result.metrics == {"step": 3}
    assert [each["step"] for each in result.metrics_history] == [0, 1, 2, 3]
    assert [(tmp_path / f"attempts-{each}").read_text() for each in (0, 1)] == ["0\n2\n"] * 2
    assert sorted(os.listdir(tmp_path / "run")) == [
        ".reports",
        ".run",
        ".trainer",
        *(f"checkpoint_{step:06d}" for step in range(4)),
        "progress.jsonl",
    ]
    said = capfd.readouterr().err
    assert (
        f"run run: rank {rank}: " in said
        and "all 2 workers are started again from checkpoint_000001 (failure 1 of 1)" in said
    ), said


def test_too_many_failures(idle: Home, tmp_path: Path) -> None:
    """The error is of the worker's own type; the rank that waits for it in a collective is no
    cause. A run of this name then goes on."""
    with pytest.raises(train.TrainingFailedError) as raised:
        trainer(
            counting, tmp_path, failures=1, path=str(tmp_path), what="raise", rank=1, always=True
        ).fit()
    error = raised.value
    assert (
        isinstance(error, (train.WorkerGroupError))
        and isinstance(error, LookupError)
        and error.rank == 1
    )
    assert isinstance(error.worker_failures[1], LookupError) and error.path == str(tmp_path / "run")
    text = str(error)
    assert (
        text.startswith("rank 1 of 2 on ")
        and "failed: LookupError: batch 7 is not there" in text.splitlines()[0]
    ), text
    assert (
        "in counting" in text
        and "attempt 2, max_failures=1; the run is in" in text
        and "its latest checkpoint is checkpoint_000001" in text
    )
    assert (
        troupe.get(troupe.remote(num_cpus=0)(lambda: 1).remote()) == 1
    )  # nothing else has suffered
    result = trainer(counting, tmp_path, path=str(tmp_path), what="raise", rank=5).fit()
    assert result.return_value == 2 and result.metrics == {"step": 3}
    assert [each["step"] for each in result.metrics_history] == [0, 1, 2, 3]


def test_a_killed_worker_is_the_cause_and_not_who_missed_it(idle: Home, tmp_path: Path) -> None:
    with pytest.raises(train.WorkerGroupError) as raised:
        trainer(counting, tmp_path, workers=3, path=str(tmp_path), what="kill", rank=2).fit()
    assert (
        isinstance(raised.value, exceptions.ActorDiedError)
        and raised.value.rank == 2
        and "SIGKILL" in str(raised.value).splitlines()[0]
    )


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (
            "return",
            "rank 1 returned after 1 calls of report() in this attempt, and rank 0 called it once "
            "more",
        ),
        ("exit", "the training loop of rank 1 called sys.exit(3)"),
        ("metrics", "takes a dict of metrics"),
        ("checkpoint", "a Checkpoint, as Checkpoint.from_directory(folder) makes one"),
        ("no folder", "there is no such folder on"),
        ("name", "the name of a folder, without '/'"),
        ("taken", "there is a 'same' in"),
        ("forked", "which the process that trains ("),
    ],
)
def test_what_a_loop_does_wrong_is_said(idle: Home, tmp_path: Path, how: str, words: str) -> None:
    def loop(config: dict) -> None:
        rank = train.get_context().get_world_rank()
        mine = checkpoint_of(Path(config["path"]) / f"mine-{rank}", a="a")
        train.report({}, checkpoint=mine, checkpoint_dir_name="same")
        if rank == 1:
            if config["how"] == "return":
                return
            if config["how"] == "exit":
                sys.exit(3)
            if config["how"] == "forked":
                import multiprocessing

                with multiprocessing.get_context("fork").Pool(1) as pool:
                    pool.apply(train.get_context)
            wrong: dict[str, tuple] = {
                "metrics": ([1],),
                "checkpoint": ({}, "path"),
                "no folder": ({}, Checkpoint("/nowhere")),
                "name": ({}, mine, "a/b"),
                "taken": ({}, mine, "same"),
            }
            train.report(*wrong[config["how"]])
        train.report({})

    with pytest.raises(train.WorkerGroupError) as raised:
        trainer(loop, tmp_path, path=str(tmp_path), how=how).fit()
    assert words in str(raised.value), raised.value


def test_a_loop_may_go_on_after_a_checkpoint_that_could_not_be_kept(
    idle: Home, tmp_path: Path
) -> None:
    """The file system refuses a rank's part, then the whole; what follows is kept, and nothing is
    left of either."""

    def loop(config: dict) -> None:
        rank = train.get_context().get_world_rank()
        mine = checkpoint_of(Path(config["path"]) / f"mine-{rank}", a=f"{rank}")
        if rank == 1:
            real, train._run_folder.copy_to_disk = (
                train._run_folder.copy_to_disk,
                lambda *_: os.truncate("/nowhere", 0),
            )
            with pytest.raises(OSError):
                train.report({}, mine)
            train._run_folder.copy_to_disk = real
        train.report({"n": 1}, mine, "same")
        with pytest.raises(FileExistsError):
            train.report({"n": 2}, mine, "same")
        train.report({"n": 3}, mine if rank else None)

    result = trainer(loop, tmp_path, path=str(tmp_path)).fit()
    assert [Path(each.path).name for each, _ in result.best_checkpoints] == [
        "same",
        "checkpoint_000000",
    ]
    assert [Path(each.path, "a").read_text() for each, _ in result.best_checkpoints] == ["0", "1"]
    assert [each["n"] for each in result.metrics_history] == [1, 3] and sorted(
        os.listdir(tmp_path / "run")
    ) == [".reports", ".run", ".trainer", "checkpoint_000000", "progress.jsonl", "same"]
    again = trainer(lambda: None, tmp_path).fit()
    assert again.metrics == {"n": 3} and again.checkpoint == result.checkpoint


def test_sys_exit_0_is_an_end(idle: Home, tmp_path: Path) -> None:
    assert trainer(lambda: sys.exit(0), tmp_path).fit().return_value is None


def test_exit_handlers_of_workers_run(idle: Home, tmp_path: Path) -> None:
    def loop(config: dict) -> None:
        import atexit

        def leave() -> None:
            threading.Event().wait(0.5)  # others' ends come before
            (Path(config["path"]) / f"left-{os.environ['RANK']}").write_text("")

        atexit.register(leave)

    trainer(loop, tmp_path, path=str(tmp_path)).fit()
    assert len(list(tmp_path.glob("left-*"))) == 2


def test_what_cannot_be_placed_is_refused(idle: Home, tmp_path: Path) -> None:
    with pytest.raises(
        train.ControllerError,
        match=r"run run: 9 workers cannot be placed: 9 x \{CPU: 1\} can never be placed",
    ) as raised:
        trainer(lambda: None, tmp_path, workers=9).fit()
    assert isinstance(raised.value, exceptions.PlacementError) and isinstance(
        raised.value, train.TrainingFailedError
    )
    with pytest.raises(
        train.ControllerError, match=r"GPU(.|\n)*ScalingConfig\(use_gpu=False\) trains on CPUs"
    ):
        TorchTrainer(
            lambda: None,
            scaling_config=ScalingConfig(use_gpu=True),
            run_config=RunConfig(storage_path=tmp_path),
        ).fit()
    with pytest.raises(train.ControllerError, match="accelerator|gpu_type|H100"):
        TorchTrainer(
            lambda: None,
            scaling_config=ScalingConfig(accelerator_type="H100"),
            run_config=RunConfig(storage_path=tmp_path),
        ).fit()


def test_what_is_held_is_waited_for_and_said(
    idle: Home, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group waits for what an actor holds; its end lets it begin."""
    from troupe.train import _gang

    said = threading.Event()
    monkeypatch.setattr(_gang, "PATIENCE_S", 0.01)
    monkeypatch.setattr(
        _gang.status_lines,
        "say",
        lambda text, quiet=False: (
            print(text, file=sys.stderr),
            "waits for" in text and said.set(),
        ),
    )
    holder = troupe.remote(num_cpus=8)(type("Holder", (), {"ready": lambda self: True})).remote()
    troupe.get(holder.ready.remote())
    found: list[Result] = []
    thread = threading.Thread(target=lambda: found.append(trainer(lambda: 7, tmp_path).fit()))
    thread.start()
    assert said.wait(60)
    troupe.kill(holder)
    thread.join(60)
    assert found[0].return_value == 7
    assert (
        "run run waits for 2 x (1 CPU), which others hold: `troupe explain"
        in capfd.readouterr().err
    )


def test_a_rank_that_does_not_come_to_its_report_is_named(
    idle: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once; it goes on then."""
    from troupe.train import _fit

    def loop(config: dict) -> None:
        here = Path(config["path"]) / "go"
        while train.get_context().get_world_rank() == 1 and not here.exists():
            threading.Event().wait(0.01)
        train.report({"a": 1})

    said: list[str] = []
    monkeypatch.setattr(_fit, "LATE_S", 0.05)
    monkeypatch.setattr(
        _fit.status_lines,
        "say",
        lambda text, quiet=False: (
            said.append(text),
            "waits in" in text and (tmp_path / "go").write_text(""),
        ),
    )
    assert trainer(loop, tmp_path, path=str(tmp_path)).fit().metrics == {"a": 1}
    late = [text for text in said if "waits in" in text]
    assert (
        len(late) == 1
        and (
            "nothing is heard for 0.05 s: rank 0 waits in report() number 1 of this attempt for "
            "rank 1; `troupe list actors`"
        )
        in late[0]
    )


def test_a_run_has_one_trainer(idle: Home, tmp_path: Path) -> None:
    from troupe.train._run_folder import RunFolder

    folder = RunFolder(tmp_path, "run")
    with pytest.raises(BlockingIOError, match="another process trains in .*: pid"):
        trainer(lambda: None, tmp_path).fit()
    folder.close()
    assert trainer(lambda: 1, tmp_path).fit().return_value == 1


def test_resume_from_a_checkpoint_of_elsewhere(idle: Home, tmp_path: Path) -> None:
    given = checkpoint_of(tmp_path / "given", step="2")
    result = trainer(
        counting, tmp_path, resume=given, path=str(tmp_path), what="raise", rank=5
    ).fit()
    assert result.return_value == 3
    with pytest.raises(FileNotFoundError, match="there is no such folder"):
        trainer(counting, tmp_path, resume=Checkpoint(tmp_path / "nothing")).fit()


def test_what_cannot_travel_is_named(idle: Home, tmp_path: Path) -> None:
    lock = threading.Lock()

    def loop() -> None:
        lock.acquire()

    with pytest.raises(exceptions.LaunchError, match="`lock`"):
        trainer(loop, tmp_path).fit()


@pytest.mark.parametrize(
    "call",
    [
        lambda: train.report({}),
        train.get_checkpoint,
        train.get_context,
        lambda: __import__("troupe.train.torch", fromlist=["x"]).get_device(),
    ],
)
def test_outside_of_a_worker(call: Callable[[], Any]) -> None:
    with pytest.raises(
        RuntimeError,
        match=r"is for code that a trainer's workers or a sweep's trials run: TorchTrainer\(train_loop_per_worker, ...\)\.fit\(\)",
    ):
        call()


def test_a_training_in_an_actor_ends_with_it(idle: Home, tmp_path: Path) -> None:
    """The workers' resources are given back when the process that trains is killed."""

    def loop(config: dict) -> None:
        (Path(config["path"]) / f"here-{train.get_context().get_world_rank()}").write_text("")
        threading.Event().wait()

    path = str(tmp_path)

    class Driver:
        def drive(self) -> None:
            trainer(loop, Path(path), path=path).fit()

    driver = troupe.remote(num_cpus=1)(Driver).remote()
    running = driver.drive.remote()
    eventually(lambda: len(list(tmp_path.glob("here-*"))) == 2, what="the workers' beginning")
    troupe.kill(driver)
    with pytest.raises(exceptions.ActorDiedError):
        troupe.get(running)


INTERRUPTED = """
import sys, threading
from pathlib import Path
import troupe
from troupe import train
from troupe.train.torch import TorchTrainer

def loop(config):
    (Path(config["path"]) / f"here-{train.get_context().get_world_rank()}").write_text("")
    threading.Event().wait()

troupe.init(sys.argv[1])
try:
    TorchTrainer(loop, train_loop_config={"path": sys.argv[2]}, scaling_config=train.ScalingConfig(num_workers=2),
                 run_config=train.RunConfig(name="run", storage_path=sys.argv[2], failure_config=train.FailureConfig(max_failures=-1))).fit()
except KeyboardInterrupt:
    troupe.get([troupe.util.placement_group([{"CPU": 8}]).ready()])  # the workers have given back what they held
    print("interrupted")
"""


def test_ctrl_c_ends_the_workers(idle: Home, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(INTERRUPTED)
    address = troupe.get_runtime_context().gcs_address
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "script.py"), address, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        eventually(lambda: len(list(tmp_path.glob("here-*"))) == 2, what="the workers' beginning")
        program.send_signal(signal.SIGINT)
        assert (
            program.communicate(timeout=TIMEOUT_S)[0].splitlines()[-1] == "interrupted"
            and program.returncode == 0
        )
