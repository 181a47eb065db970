"""A loop's calls of torch on a model and a loader: each worker's share, its settings, batches on
the device.

Method: this process enters a loop as a rank of several; the device "meta" stands for a GPU where
batches move.
"""

from __future__ import annotations

import warnings
from collections import namedtuple
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import (  # noqa: E402
    BatchSampler,
    DataLoader,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from troupe.train import TrainContext, _here, _torch_loop  # noqa: E402
from troupe.train.torch import get_devices, prepare_data_loader, prepare_model  # noqa: E402

DATA = TensorDataset(torch.arange(10))


class Rank(_here.Loop):
    """A loop that reports nowhere."""

    def __init__(self, rank: int, size: int) -> None:
        self.context = TrainContext(rank, size)

    def report(self, metrics: dict[str, Any], checkpoint: Any, dir_name: str | None) -> None:
        """Nothing."""

    def latest(self) -> None:
        """None."""


@pytest.fixture(params=[0, 1])
def rank(request: pytest.FixtureRequest) -> Iterator[int]:
    _here.enter(Rank(request.param, 2))
    yield request.param
    _here.enter(None)


def items(loader: DataLoader) -> list[int]:
    return [int(each) for (batch,) in loader for each in batch]


def test_each_worker_has_its_share(rank: int) -> None:
    collate = lambda rows: [torch.stack([each for (each,) in rows])]  # noqa: E731
    given = DataLoader(
        DATA, batch_size=2, drop_last=True, collate_fn=collate, num_workers=0, pin_memory=False
    )
    made = prepare_data_loader(given)
    assert items(made) == [*range(rank, 10, 2)][:4]
    assert (
        isinstance(made.sampler, DistributedSampler)
        and not made.sampler.shuffle
        and (made.batch_size, made.drop_last) == (2, True)
    )
    assert made.collate_fn is collate and made.dataset is DATA
    shuffled = prepare_data_loader(DataLoader(DATA, batch_size=3, shuffle=True))
    assert shuffled.sampler.shuffle and len(items(shuffled)) == 5
    first = items(shuffled)
    shuffled.sampler.set_epoch(7)
    assert items(shuffled) != first
    several = prepare_data_loader(
        DataLoader(DATA, num_workers=1, prefetch_factor=3, persistent_workers=True)
    )
    assert (several.num_workers, several.prefetch_factor, several.persistent_workers) == (
        1,
        3,
        True,
    )


def test_loaders_that_stay_as_they_are(rank: int) -> None:
    class Stream(IterableDataset):
        def __iter__(self) -> Iterator[int]:
            return iter(range(3))

    own = DistributedSampler(DATA, 2, 0)
    for loader in (
        DataLoader(Stream()),
        DataLoader(DATA, sampler=own),
        DataLoader(DATA, batch_sampler=BatchSampler(own, 2, False)),
        DataLoader(DATA, batch_sampler=Pairs(own)),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert prepare_data_loader(loader) is loader
    for sampler in (WeightedRandomSampler([1.0] * 10, 5), SubsetRandomSampler([1, 2])):
        loader = DataLoader(DATA, sampler=sampler)
        with pytest.warns(
            UserWarning,
            match=f"a {type(sampler).__name__} chooses the rows, and each of the 2 workers has all",
        ):
            assert prepare_data_loader(loader) is loader
    loader = DataLoader(DATA)
    assert prepare_data_loader(loader, add_dist_sampler=False) is loader
    with pytest.raises(TypeError, match="takes a torch DataLoader, not"):
        prepare_data_loader(DATA)


class Pairs(BatchSampler):
    """A batch sampler of a program's own."""

    def __init__(self, sampler: Any) -> None:
        super().__init__(sampler, 2, False)


def test_batches_of_a_batch_sampler_are_shared(rank: int) -> None:
    made = prepare_data_loader(
        DataLoader(DATA, batch_sampler=BatchSampler(SequentialSampler(DATA), 2, True))
    )
    assert [batch.tolist() for (batch,) in made] == [[rank, rank + 2], [rank + 4, rank + 6]]
    shuffled = prepare_data_loader(
        DataLoader(DATA, batch_sampler=BatchSampler(RandomSampler(DATA), 3, False))
    )
    shuffled.sampler.set_epoch(1)
    assert shuffled.sampler.shuffle and len(shuffled) == 2 and len(set(items(shuffled))) == 5
    assert [int(row) for (row,) in prepare_data_loader(DataLoader(DATA, batch_size=None))] == [
        *range(rank, 10, 2)
    ]
    for given, name in (
        (Pairs(SequentialSampler(DATA)), "Pairs"),
        (
            BatchSampler(SubsetRandomSampler([1, 2]), 2, False),
            "BatchSampler over a SubsetRandomSampler",
        ),
        ([[0, 1], [2, 3]], "list"),
    ):
        loader = DataLoader(DATA, batch_sampler=given)
        with pytest.raises(
            ValueError,
            match=f"batch_sampler is a {name}, which would give each of the 2 workers all rows. "
            "Make it over",
        ):
            prepare_data_loader(loader)
        assert prepare_data_loader(loader, add_dist_sampler=False) is loader


def test_one_worker_has_all() -> None:
    _here.enter(Rank(0, 1))
    try:
        loader, model = DataLoader(DATA, shuffle=True), torch.nn.Linear(1, 1)
        assert (
            prepare_data_loader(loader) is loader
            and prepare_model(model) is model
            and get_devices() == [torch.device("cpu")]
        )
        assert (
            next(
                prepare_model(
                    torch.nn.Linear(1, 1), move_to_device=torch.device("meta")
                ).parameters()
            ).device.type
            == "meta"
        )
        with pytest.raises(ValueError, match="'ddp', 'fsdp' or None"):
            prepare_model(model, parallel_strategy="deepspeed")
    finally:
        _here.enter(None)


def test_batches_come_to_the_device(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_torch_loop, "devices", [torch.device("meta")])
    Pair = namedtuple("Pair", "x y")
    collate = lambda rows: {"x": [torch.ones(2)], "pair": Pair(torch.ones(1), "text"), "n": 3}  # noqa: E731
    made = prepare_data_loader(DataLoader(DATA, batch_size=5, collate_fn=collate))
    assert (
        isinstance(made, DataLoader)
        and isinstance(made.sampler, DistributedSampler)
        and len(made) == 1
        and made.dataset is DATA
    )
    (batch,) = made
    assert (
        batch["x"][0].device.type == batch["pair"].x.device.type == "meta"
        and batch["pair"].y == "text"
        and batch["n"] == 3
    )
    assert len(list(made)) == 1  # again
    assert (
        prepare_data_loader(DataLoader(DATA, collate_fn=collate), move_to_device=False).__class__
        is DataLoader
    )
