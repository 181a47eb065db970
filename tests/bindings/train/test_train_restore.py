"""`TorchTrainer.restore`: what a run's folder keeps of its trainer, and what is said where that is
damaged, missing or somebody else's.

Method: trainers are kept as `fit()` keeps them, without a cluster. Through processes:
tests/doors/test_train_ray.py.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from troupe import data
from troupe.train import (
    Checkpoint,
    CheckpointConfig,
    DataConfig,
    FailureConfig,
    RunConfig,
    ScalingConfig,
    _restore,
)
from troupe.train._records import DamagedFileError
from troupe.train.torch import TorchConfig, TorchTrainer


def loop(config: dict) -> Any:
    return config["lr"]


def kept(storage: Path, **more: Any) -> Path:
    """The folder of a run whose `fit()` has begun."""
    folder = storage / "run"
    folder.mkdir(parents=True, exist_ok=True)
    TorchTrainer(
        more.pop("loop", loop), train_loop_config=more.pop("config", {"lr": (1, 2)}), **more
    )._keep(folder)
    return folder


def test_a_trainer_comes_back_with_all_that_it_was_given(tmp_path: Path) -> None:
    scaling = ScalingConfig(
        num_workers=3,
        resources_per_worker={"CPU": 2},
        placement_strategy="SPREAD",
        label_selector={"zone": "a"},
    )
    run = RunConfig(
        name="other",
        storage_path="/elsewhere",
        failure_config=FailureConfig(max_failures=2),
        worker_runtime_env={"env_vars": {"A": "1"}},
        checkpoint_config=CheckpointConfig(
            num_to_keep=1, checkpoint_score_attribute="loss", checkpoint_score_order="min"
        ),
    )
    path = kept(
        tmp_path,
        scaling_config=scaling,
        run_config=run,
        torch_config=TorchConfig(timeout_s=5),
        resume_from_checkpoint=Checkpoint("/tmp/c"),
    )
    again = TorchTrainer.restore(path)
    assert (
        again._loop(*again._arguments) == (1, 2)
        and again.scaling_config == scaling
        and again._torch_config == TorchConfig(timeout_s=5)
    )
    assert (again.run_config.name, Path(again.run_config.storage_path)) == ("run", tmp_path), (
        "where it is now"
    )
    assert [
        getattr(again.run_config, name) == getattr(run, name)
        for name in ("failure_config", "checkpoint_config", "worker_runtime_env")
    ] == [True] * 3
    assert again._resume_from is not None and again._resume_from.path == "/tmp/c"
    changed = TorchTrainer.restore(
        path,
        lambda config: config["lr"] * 2,
        {"lr": 4},
        scaling_config=ScalingConfig(num_workers=1),
    )
    assert (
        changed._loop(*changed._arguments) == 8
        and changed.scaling_config.num_workers == 1
        and changed.run_config.failure_config.max_failures == 2
    )


def test_datasets_are_given_again(tmp_path: Path) -> None:
    train, test = data.range(4), data.range(2)
    path = kept(
        tmp_path,
        datasets={"train": train, "test": test},
        dataset_config=DataConfig(datasets_to_split=["train"]),
    )
    with pytest.raises(ValueError, match=r"datasets=\{'test': \.\.\.\}"):
        TorchTrainer.restore(path, datasets={"train": train})
    assert TorchTrainer.restore(path, datasets={"train": train, "test": test})._datasets.split == {
        "train"
    }


def test_a_folder_without_a_trainer(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "nothing", tmp_path / "file"):
        assert not TorchTrainer.can_restore(path)
        with pytest.raises(ValueError, match="there is no trainer of a run in that folder"):
            TorchTrainer.restore(str(path))
    with pytest.raises(ValueError, match="a folder, not a URI"):
        TorchTrainer.can_restore("s3://bucket/run")


def test_the_second_trainer_of_a_run_takes_the_place_of_the_first(tmp_path: Path) -> None:
    kept(tmp_path)
    path = kept(tmp_path, loop=lambda: 5, config=None)
    assert TorchTrainer.restore(path)._loop() == 5 and TorchTrainer.restore(path)._arguments == ()
    assert len(list((path / _restore.FOLDER).iterdir())) == 2, "the record and the loop"


@pytest.mark.parametrize(
    "kind", ["empty", "half", "zeros at its end", "other bytes", "another digit"]
)
@pytest.mark.parametrize("which", ["trainer.json", "loop", "config"])
def test_a_damaged_file_is_an_error_that_names_it_and_the_repair(
    tmp_path: Path, which: str, kind: str
) -> None:
    path = kept(tmp_path)
    (file,) = (path / _restore.FOLDER).glob(f"{which}*")
    whole = file.read_bytes()
    middle = len(whole) // 2
    file.write_bytes(
        {
            "empty": b"",
            "half": whole[:middle],
            "zeros at its end": whole[:middle] + bytes(len(whole) - middle),
            "other bytes": b"\x80\xff{" * 9,
            "another digit": whole.replace(b"1", b"3", 1) if b"1" in whole else b"1" + whole[1:],
        }[kind]
    )
    assert TorchTrainer.can_restore(path)
    with pytest.raises(DamagedFileError, match="is damaged at offset 0") as error:
        TorchTrainer.restore(path)
    assert str(file) in str(error.value) and "make the trainer anew, with the run's name" in str(
        error.value
    )
    if which != "trainer.json":
        assert TorchTrainer.restore(path, loop, {"lr": 3})._arguments == ({"lr": 3},), (
            "what is given is not read"
        )


def test_a_pickle_that_others_may_write_to_is_not_loaded(tmp_path: Path) -> None:
    path = kept(tmp_path)
    (file,) = (path / _restore.FOLDER).glob("loop*")
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o666)
    with pytest.raises(
        PermissionError,
        match=r"may have been written by another user .* give restore\(train_loop_per_worker=\.\.\.\)",
    ):
        TorchTrainer.restore(path)


def test_what_cannot_be_kept_is_given_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """Configs that cannot be pickled, or are too large; a runtime_env that JSON cannot hold leaves
    no trainer there, and a line says so."""
    lock = threading.Lock()
    with pytest.raises(
        ValueError,
        match=r"does not have the trainer's config, which cannot be kept \(.*: give restore\(train_loop_config=\.\.\.\)",
    ):
        TorchTrainer.restore(kept(tmp_path, config={"lock": lock}))
    monkeypatch.setattr(_restore, "LIMIT_BYTES", 100)
    with pytest.raises(
        ValueError, match="does not have the trainer's config, which cannot be kept"
    ):
        TorchTrainer.restore(kept(tmp_path, config={"lr": "1" * 200}), loop)
    path = kept(
        tmp_path, run_config=RunConfig(worker_runtime_env={"worker_process_setup_hook": lock})
    )
    assert not TorchTrainer.can_restore(path)
    assert "TorchTrainer.restore will not find its trainer" in capsys.readouterr().err
