"""Data and checkpoints in volumes: shares, local copies, positions, and checkpoints that are whole
or not there.

Method: directories in the place of volumes; several ranks are RANK and WORLD_SIZE, and workers of a
loader are real processes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
import torch
import torch.distributed.checkpoint as dcp

from troupe import stand_ins
from troupe.air import data
from troupe.air.data import _dataset


@pytest.fixture
def volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with eleven files in two folders, and hidden ones; copies go beside it."""
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(_dataset.CACHE, str(tmp_path / "cache"))
    folder = tmp_path / "volume"
    (folder / "sub").mkdir(parents=True)
    for number in range(11):
        (folder / ("sub" if number % 2 else ".") / f"{number:02}.txt").write_text(str(number))
    (folder / ".hidden").write_text("x")
    (folder / "_SUCCESS").write_text("x")
    return folder


def numbers(dataset: data.UCVolumeDataset) -> list[int]:
    return [int(Path(each).read_text()) for each in dataset]


def test_every_file_goes_to_one_share_whatever_ranks_and_workers(
    volume: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sorted(numbers(data.UCVolumeDataset(volume))) == list(range(11))
    found: list[int] = []
    for rank in range(2):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", "2")
        loader = data.DataLoader(data.UCVolumeDataset(volume), batch_size=None, num_workers=2)
        found += [int(Path(each).read_text()) for each in loader]
    assert sorted(found) == list(range(11))
    assert len(numbers(data.UCVolumeDataset(volume, equal=True))) == 5
    monkeypatch.delenv("RANK")
    with pytest.raises(ValueError, match="RANK is not set, although WORLD_SIZE is"):
        numbers(data.UCVolumeDataset(volume))


def test_paths_are_local_copies_that_are_kept_while_the_file_is_the_same(
    volume: Path, tmp_path: Path
) -> None:
    first = list(data.UCVolumeDataset(volume))
    assert (
        all(each.startswith(str(tmp_path / "cache")) for each in first)
        and os.path.basename(first[0]) == "00.txt"
    )
    assert list(data.UCVolumeDataset(volume)) == first
    (volume / "00.txt").write_text("changed")
    assert Path(next(iter(data.UCVolumeDataset(volume)))).read_text() == "changed"
    os.chmod(tmp_path / "cache", 0o777)
    with pytest.raises(PermissionError, match="others may write"):
        list(data.UCVolumeDataset(volume))
    with pytest.raises(FileNotFoundError, match="there is no directory"):
        data.UCVolumeDataset(volume / "none")


def test_a_loader_goes_on_behind_the_batches_of_its_state(volume: Path) -> None:
    loader = data.DataLoader(data.UCVolumeDataset(volume), batch_size=2, num_workers=0)
    assert isinstance(loader, data.Checkpointable)
    batches = list(loader)
    running = iter(loader)
    assert [next(running), next(running)] == batches[:2]
    state = loader.state_dict()
    again = data.DataLoader(data.UCVolumeDataset(volume), batch_size=2, num_workers=0)
    again.load_state_dict(state)
    assert again.state_dict() == state and list(again) == batches[2:] and list(again) == batches
    with pytest.raises(ValueError, match="no state of a DataLoader"):
        again.load_state_dict({"batches": -1})


def test_a_checkpoint_comes_back_as_it_was(volume: Path) -> None:
    state = {"weights": torch.arange(1000.0), "step": 7}
    dcp.save(state, storage_writer=data.UCVolumeWriter(volume / "step_1"))
    loaded = {"weights": torch.zeros(1000), "step": 0}
    dcp.load(loaded, storage_reader=data.UCVolumeReader(volume / "step_1"))
    assert torch.equal(loaded["weights"], state["weights"]) and loaded["step"] == 7
    assert not [each for each in os.listdir(volume / "step_1") if "partial" in each]


def test_a_checkpoint_that_was_not_finished_is_none(
    volume: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory had a complete checkpoint before: its metadata would describe files of another
    step."""
    writer = data.UCVolumeWriter(volume / "step_1")
    dcp.save({"weights": torch.ones(10)}, storage_writer=writer)
    module = sys.modules[data.UCVolumeWriter.__module__]
    monkeypatch.setattr(module, "_bring", lambda *_: (_ for _ in ()).throw(OSError("no room")))
    with pytest.raises(BaseException, match="no room"):
        dcp.save(
            {"weights": torch.zeros(10)}, storage_writer=data.UCVolumeWriter(volume / "step_1")
        )
    with pytest.raises(FileNotFoundError, match="never finished"):
        data.UCVolumeReader(volume / "step_1")


def test_the_names_are_there_under_both_packages() -> None:
    names = {"Checkpointable", "DataLoader", "UCVolumeDataset", "UCVolumeReader", "UCVolumeWriter"}
    from troupe.stand_ins import _packages

    assert (
        {*_packages.DATABRICKS_AIR.modules["databricks.air.data"]}
        == {*_packages.SERVERLESS_GPU.modules["serverless_gpu.data"]}
        == names
    )
    assert "databricks" in stand_ins.NAMES
