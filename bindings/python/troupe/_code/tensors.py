"""Large CPU tensors in values: their memory travels beside the pickle, and is read as a private view."""
from __future__ import annotations

import pickle
from typing import Any

from troupe import _pickled
from troupe._bridge import native

LARGE_BYTES = 100 << 10


class TensorMemory:
    """What tensors lie in: shared by all of a value that shared it, here and there."""

    __slots__ = ("buffer",)

    def __init__(self, buffer: Any) -> None:
        self.buffer = buffer

    def __reduce__(self) -> tuple:
        native._take_writable(self.buffer)
        return _pickled.tensor_memory, (self.buffer,)


def reduce(tensor: Any, shared: dict[int, TensorMemory]) -> Any:
    """How a plain, contiguous CPU tensor that fills its memory is pickled; NotImplemented: as torch does it."""
    import torch

    plain = (type(tensor) is torch.Tensor and tensor.device.type == "cpu" and tensor.layout is torch.strided
             and not tensor.requires_grad and not tensor.is_quantized and tensor.is_contiguous()
             and not tensor.is_conj() and not tensor.is_neg() and not tensor.__dict__)
    if not plain or tensor.nbytes < LARGE_BYTES or tensor.untyped_storage().nbytes() != tensor.nbytes:
        return NotImplemented
    storage = tensor.untyped_storage()
    memory = shared.get(storage.data_ptr())
    if memory is None:
        array = torch.empty(0, dtype=torch.uint8).set_(storage).numpy()
        memory = shared[storage.data_ptr()] = TensorMemory(pickle.PickleBuffer(array))
    return _pickled.tensor, (memory, tensor.dtype, tuple(tensor.shape))


_tensor = _pickled.tensor  # by this name older pickles know it
