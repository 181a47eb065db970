"""64 bits of what a tensor holds: equal for equal bytes, whatever device they are on.

Each word of 32 bits is mixed with its place, and all are summed: the order of summation does not
matter, so that a GPU computes the same as a CPU, and words that have changed places do. The mixing
is the finalizer of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
2014).

On a GPU of NVIDIA's one kernel reads the memory once (actors/train/device_digest.cu); elsewhere
torch's operations compute the same.
"""

from __future__ import annotations

import warnings

import torch

from troupe import _native
from troupe.exceptions import TroupeError

_AT_ONCE = 1 << 22  # words: what is computed at once takes a few times their memory
_PLACE, _FIRST, _SECOND = (
    -0x61C8864680B583EB,
    -0x40A7B892E31B1A47,
    -0x6B2FB644ECCEEE15,
)  # odd numbers of splitmix64, as signed ones


def of(tensor: torch.Tensor) -> torch.Tensor:
    """The digest, of one int64 on the tensor's own device, where it is computed.

    Does not wait for a GPU.
    """
    flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    if flat.is_cuda and torch.version.cuda is not None:
        try:
            return of_cuda(flat, tensor.numel())
        except (RuntimeError, TroupeError) as error:
            warnings.warn(
                f"the digest's kernel cannot be used on {flat.device}, torch's operations compute "
                f"it instead: {error}",
                RuntimeWarning,
                stacklevel=2,
            )
    return by_torch(flat, tensor.numel())


def of_cuda(flat: torch.Tensor, count: int) -> torch.Tensor:
    """By the kernel, of bytes in memory of a CUDA device.

    Raises RuntimeError and TroupeError where that cannot be started.
    """
    if flat.data_ptr() % 4:
        flat = flat.clone()
    found = torch.full((), count, dtype=torch.int64, device=flat.device)
    stream = torch.cuda.current_stream(flat.device)
    _native.device_digest(
        found.data_ptr(), flat.data_ptr(), flat.numel(), flat.device.index, stream.cuda_stream
    )
    return found


def by_torch(flat: torch.Tensor, count: int) -> torch.Tensor:
    """By torch's operations, of bytes on any device."""
    if rest := flat.numel() % 4:
        flat = torch.nn.functional.pad(flat, (0, 4 - rest))
    words = flat.view(torch.int32)
    found = torch.full((), count, dtype=torch.int64, device=words.device)
    for start in range(0, words.numel(), _AT_ONCE):
        part = words[start : start + _AT_ONCE].to(torch.int64)
        part += torch.arange(
            start + 1, start + 1 + part.numel(), dtype=torch.int64, device=words.device
        ).mul_(_PLACE)
        found += _mixed(part).sum()
    return found


def _mixed(words: torch.Tensor) -> torch.Tensor:
    for shift, factor in ((30, _FIRST), (27, _SECOND)):
        words ^= _shifted(words, shift)
        words *= factor
    words ^= _shifted(words, 31)
    return words


def _shifted(words: torch.Tensor, shift: int) -> torch.Tensor:
    """To the right, with zeros from the left."""
    return (words >> shift) & ((1 << (64 - shift)) - 1)
