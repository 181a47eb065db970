"""Functions that a training loop with torch calls in a worker: its device, its model in a process
group, its share of the data."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
)

from troupe import _pickled
from troupe.train import _here

devices: list[torch.device] = []
"""The GPUs that this worker holds, as it sees them."""


def get_devices() -> list[torch.device]:
    """The devices that this worker holds: its GPUs, or the CPU.

    Raises RuntimeError outside of a worker.
    """
    _here.current("get_devices()")
    return list(devices) or [torch.device("cpu")]


def get_device() -> torch.device:
    """The first of get_devices(), which is the current one of CUDA where it is a GPU."""
    _here.current("get_device()")
    return get_devices()[0]


def prepare_model(
    model: nn.Module,
    move_to_device: bool | torch.device = True,
    parallel_strategy: str | None = "ddp",
    parallel_strategy_kwargs: Mapping[str, Any] | None = None,
) -> nn.Module:
    """The model on this worker's device and, where there are several workers, in
    DistributedDataParallel ("ddp"), FullyShardedDataParallel ("fsdp") or neither (None), made with
    `parallel_strategy_kwargs`.

    A call of all workers, as making these is. `move_to_device`: the device, or whether to move at
    all. Raises ValueError for another strategy, RuntimeError outside of a worker.

        model = prepare_model(Net())
    """
    context = _here.current("prepare_model()").context
    if parallel_strategy not in ("ddp", "fsdp", None):
        raise ValueError(
            f"prepare_model(parallel_strategy={parallel_strategy!r}): 'ddp', 'fsdp' or None"
        )
    device = move_to_device if isinstance(move_to_device, torch.device) else get_device()
    if move_to_device is not False:
        model = model.to(device)
    if parallel_strategy is None or context.get_world_size() == 1:
        return model
    options = dict(parallel_strategy_kwargs or {})
    if parallel_strategy == "ddp":
        if device.type == "cuda" and move_to_device is not False:
            options = {"device_ids": [device], "output_device": device, **options}
        return nn.parallel.DistributedDataParallel(model, **options)
    from torch.distributed.fsdp import FullyShardedDataParallel

    if device.type == "cpu":
        options = {"device_id": device, **options}
    return FullyShardedDataParallel(model, **options)


def prepare_data_loader(
    data_loader: DataLoader,
    add_dist_sampler: bool = True,
    move_to_device: bool = True,
    auto_transfer: bool = True,
) -> DataLoader:
    """A loader of this worker's share of the data, whose batches are on its device.

    With several workers the loader is made anew with a DistributedSampler, which shuffles where the
    loader did: call `loader.sampler.set_epoch(epoch)` before each epoch. A BatchSampler of torch
    over all rows is made so, too. A loader keeps what it has where its sampler or batch sampler
    knows the workers (it is a DistributedSampler, is made over one, or has `num_replicas`), and
    with an IterableDataset; with a sampler of its own kind as well, and a UserWarning says that
    every worker has all rows of that. `add_dist_sampler=False` keeps any loader as it is.
    `auto_transfer` is taken and means nothing: batches of pinned memory are copied without waiting.

    Raises:
        TypeError: it is no DataLoader.
        ValueError: a batch sampler of its own kind would give every worker all rows.
        RuntimeError: outside of a worker.
    """
    context = _here.current("prepare_data_loader()").context
    if not isinstance(data_loader, DataLoader):
        raise TypeError(f"prepare_data_loader() takes a torch DataLoader, not {data_loader!r}")
    if (
        add_dist_sampler
        and context.get_world_size() > 1
        and not isinstance(data_loader.dataset, IterableDataset)
    ):
        data_loader = _with_share(data_loader, context)
    device = get_device()
    return (
        MovingLoader(data_loader, device)
        if move_to_device and device.type != "cpu"
        else data_loader
    )


def _with_share(loader: DataLoader, context: _here.TrainContext) -> DataLoader:
    batch_size, drop_last, sampler = loader.batch_size, loader.drop_last, loader.sampler
    if (
        batch_size is None and loader.batch_sampler is not None
    ):  # the loader's sampler is one that nobody asks then
        batches = loader.batch_sampler
        if _knows_workers(batches):
            return loader
        if type(batches) is not BatchSampler or type(batches.sampler) not in (
            RandomSampler,
            SequentialSampler,
        ):
            what = type(batches).__name__ + (
                f" over a {type(batches.sampler).__name__}" if type(batches) is BatchSampler else ""
            )
            raise ValueError(
                f"prepare_data_loader(): batch_sampler is a {what}, which would give each of the "
                f"{context.get_world_size()} workers all rows. Make it over "
                "a torch.utils.data.DistributedSampler(dataset), give it batch_size and sampler "
                "instead, or pass add_dist_sampler=False where its "
                "batches are this worker's own"
            )
        batch_size, drop_last, sampler = batches.batch_size, batches.drop_last, batches.sampler
    elif type(sampler) not in (RandomSampler, SequentialSampler):
        if not _knows_workers(sampler):
            warnings.warn(
                f"prepare_data_loader(): a {type(sampler).__name__} chooses the rows, and each of "
                f"the {context.get_world_size()} workers has all that it gives; "
                "add_dist_sampler=False says that this is meant",
                stacklevel=3,
            )
        return loader
    share = DistributedSampler(
        loader.dataset,
        num_replicas=context.get_world_size(),
        rank=context.get_world_rank(),
        shuffle=not isinstance(sampler, SequentialSampler),
    )
    more = (
        {}
        if not loader.num_workers
        else {
            "prefetch_factor": loader.prefetch_factor,
            "persistent_workers": loader.persistent_workers,
            "multiprocessing_context": loader.multiprocessing_context,
        }
    )
    return DataLoader(
        loader.dataset,
        batch_size=batch_size,
        sampler=share,
        num_workers=loader.num_workers,
        collate_fn=loader.collate_fn,
        pin_memory=loader.pin_memory,
        drop_last=drop_last,
        timeout=loader.timeout,
        worker_init_fn=loader.worker_init_fn,
        generator=loader.generator,
        **more,
    )


_WORKERS_NAMED = ("num_replicas", "num_processes", "world_size")
_SAMPLERS_DEEP = 8


def _knows_workers(sampler: Any) -> bool:
    """Return True if a sampler, or one that it is made over, gives each worker its own rows."""
    for _ in range(_SAMPLERS_DEEP):
        if isinstance(sampler, DistributedSampler) or any(
            hasattr(sampler, name) for name in _WORKERS_NAMED
        ):
            return True
        below = [
            each
            for each in (getattr(sampler, name, None) for name in ("sampler", "batch_sampler"))
            if each is not None
        ]
        if not below:
            return False
        sampler = below[0]
    return False


class MovingLoader(DataLoader):  # type: ignore[misc]
    """A loader whose batches come to a device; in all else the loader that it was made of."""

    def __init__(self, loader: DataLoader, device: torch.device) -> None:
        self.__dict__.update(loader.__dict__)
        self._moved_from, self._device = loader, device

    def __iter__(self) -> Iterator[Any]:
        for batch in iter(self._moved_from):
            yield _moved(batch, self._device)

    def __len__(self) -> int:
        return len(self._moved_from)


def _moved(value: Any, device: torch.device) -> Any:
    """Tensors in it on the device, in containers of the same kinds."""
    if hasattr(value, "to"):
        return (
            value.to(device, non_blocking=True)
            if isinstance(value, torch.Tensor)
            else value.to(device)
        )
    if isinstance(value, Mapping):
        moved = {key: _moved(one, device) for key, one in value.items()}
        return moved if type(value) is dict else type(value)(moved)  # type: ignore[call-arg]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_moved(one, device) for one in value))
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return type(value)(_moved(one, device) for one in value)  # type: ignore[call-arg]
    return value


def enable_reproducibility(seed: int = 0) -> None:
    """Seeds random, numpy and torch on this worker, and has torch take deterministic algorithms
    where it has them."""
    random.seed(seed)
    torch.manual_seed(seed)
    try:
        import numpy
    except ImportError:
        pass
    else:
        numpy.random.seed(seed)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False


_pickled.named_in(
    "troupe.train.torch",
    enable_reproducibility,
    get_device,
    get_devices,
    prepare_data_loader,
    prepare_model,
)
