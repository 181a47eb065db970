"""Tensors in values.

The memory of large CPU tensors travels beside the pickle, and is read as a private view; what lies
on a device travels by way of the host, and arrives on the device of that number.
"""

from __future__ import annotations

import os
import pickle
from typing import Any

from troupe import _pickled
from troupe._base.bridge import native

LARGE_BYTES = 100 << 10


class TensorMemory:
    """The memory of tensors: shared by all tensors of a value that shared it, here and there."""

    __slots__ = ("buffer",)

    def __init__(self, buffer: Any) -> None:
        self.buffer = buffer

    def __reduce__(self) -> tuple[Any, ...]:
        native._take_writable(self.buffer)
        return _pickled.tensor_memory, (self.buffer,)


def reduce(tensor: Any, shared: dict[int, TensorMemory]) -> Any:
    """How a plain, contiguous CPU tensor that fills its memory is pickled; NotImplemented: as torch
    does it."""
    import torch

    plain = (
        type(tensor) is torch.Tensor
        and tensor.device.type == "cpu"
        and tensor.layout is torch.strided
        and not tensor.requires_grad
        and not tensor.is_quantized
        and tensor.is_contiguous()
        and not tensor.is_conj()
        and not tensor.is_neg()
        and not tensor.__dict__
    )
    if (
        not plain
        or tensor.nbytes < LARGE_BYTES
        or tensor.untyped_storage().nbytes() != tensor.nbytes
    ):
        return NotImplemented
    storage = tensor.untyped_storage()
    memory = shared.get(storage.data_ptr())
    if memory is None:
        array = torch.empty(0, dtype=torch.uint8).set_(storage).numpy()
        memory = shared[storage.data_ptr()] = TensorMemory(pickle.PickleBuffer(array))
    return _pickled.tensor, (memory, tensor.dtype, tuple(tensor.shape))


def is_storage(value: Any) -> bool:
    """Return True if `value` is a torch storage; does not import torch."""
    kind = type(value)
    return kind.__module__ == "torch.storage" and kind.__name__ in (
        "TypedStorage",
        "UntypedStorage",
    )


def reduce_storage(storage: Any) -> Any:
    """How one that lies on a device is pickled; NotImplemented: as torch, or whoever made what is
    called so, does it."""
    if not is_storage(storage):
        return NotImplemented
    device = getattr(
        storage, "_untyped_storage", storage
    ).device  # a TypedStorage's own says that it is deprecated
    if device.type == "cpu":
        return NotImplemented
    _, (data,) = storage.__reduce__()
    return _pickled.device_storage, (data, str(device))


def device_storage(data: bytes, device: str) -> Any:
    """Rebuild a storage on `device`, in the receiving process. Raises RuntimeError where that has
    no such device."""
    import torch

    kind, _, number = device.partition(":")
    if kind == "cuda":
        there = torch.cuda.device_count()
        if int(number or 0) >= there:
            has = {0: "no GPU", 1: "one GPU, cuda:0"}.get(there, f"{there} GPUs")
            mask = os.environ.get("CUDA_VISIBLE_DEVICES")
            raise RuntimeError(
                f"a tensor on {device} was sent here, and this process has {has}"
                f"{'' if mask is None else f' (CUDA_VISIBLE_DEVICES={mask!r})'}: send tensor.cpu() "
                "instead, or give what "
                "receives it a GPU"
            )
    return torch.storage._load_from_bytes(data)


@_pickled.maker("tensor_memory")
def _tensor_memory(buffer: Any) -> Any:
    """Rebuild the memory that tensors of a value share."""
    return TensorMemory(buffer)


@_pickled.maker("tensor")
def _tensor(memory: Any, dtype: Any, shape: tuple[Any, ...]) -> Any:
    """A tensor there, as a private view."""
    import torch

    return torch.frombuffer(memory.buffer, dtype=dtype).reshape(shape)


@_pickled.maker("device_storage")
def _device_storage(data: bytes, device: str) -> Any:
    """Rebuild the storage of a tensor on a GPU."""
    return device_storage(data, device)
