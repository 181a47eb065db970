"""Batches of torch tensors: views of a block's memory where nobody else has it, else copies, so
that a tensor may always be written to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from troupe.data import _columns


class Tensors:
    """A dict of tensors on the CPU. `dtypes`: of all columns, or by name."""

    def __init__(self, dtypes: torch.dtype | Mapping[str, torch.dtype] | None) -> None:
        self._dtypes = dtypes

    def of(self, table: pa.Table, *, own: bool) -> dict[str, tuple[torch.Tensor, bool]]:
        """See Form: with each tensor whether its rows are to be copied when they are handed out."""
        found = {}
        for index, field in enumerate(table.schema):
            tensor, shared = _tensor(table.column(index), field)
            wanted = (
                self._dtypes.get(field.name) if isinstance(self._dtypes, Mapping) else self._dtypes
            )
            if wanted is not None and tensor.dtype != wanted:
                tensor, shared = tensor.to(wanted), False
            found[field.name] = tensor, shared and not own
        return found

    def cut(
        self, whole: dict[str, tuple[torch.Tensor, bool]], start: int, stop: int
    ) -> dict[str, torch.Tensor]:
        """See Form."""
        return {
            name: tensor[start:stop].clone() if shared else tensor[start:stop]
            for name, (tensor, shared) in whole.items()
        }

    def join(self, parts: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
        """See Form. Raises ValueError for arrays of several shapes."""
        try:
            return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
        except RuntimeError as error:
            raise ValueError(
                f"rows of one batch are arrays of several shapes: {error}\n  read_images(size=(H, "
                "W)) makes them one; a collate_fn is given arrays "
                "as they are"
            ) from None


def _tensor(column: pa.ChunkedArray, field: pa.Field) -> tuple[torch.Tensor, bool]:
    """The tensor, and whether its memory is the block's."""
    array = _columns.one_chunk(column)
    flat, shape = array, None
    if array.null_count:
        pass
    elif isinstance(array.type, pa.FixedShapeTensorType):
        if array.type.permutation is None:
            flat, shape = array.storage.flatten(), tuple(array.type.shape)
    elif pa.types.is_fixed_size_list(array.type):
        flat, shape = array.flatten(), (array.type.list_size,)
    elif (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)) and len(
        lengths := array.value_lengths().unique()
    ) == 1:
        flat, shape = array.flatten(), (lengths[0].as_py(),)
    kind = flat.type
    if (
        (pa.types.is_integer(kind) or pa.types.is_floating(kind))
        and not flat.null_count
        and len(flat)
    ):
        tensor = torch.from_dlpack(flat)
        return (tensor if shape is None else tensor.reshape(len(array), *shape)), True
    values = _columns.numpy_of(array, field)
    if values.dtype == object or values.dtype.kind not in "biuf":
        what = (
            "arrays of several shapes"
            if _columns.is_ragged(field)
            else (
                f"values of type {field.type}{', and nulls among them' if array.null_count else ''}"
            )
        )
        more = "; read_images(size=(H, W)) makes them one" if _columns.is_ragged(field) else ""
        raise TypeError(
            f"column {field.name!r} has {what}, which are no tensor: "
            f"drop_columns([{field.name!r}]) leaves it out, map_batches makes numbers of it, "
            f"and a collate_fn is given it as an array{more}"
        )
    return torch.from_numpy(np.array(values)), False


def to_device(batch: Any, device: torch.device | None, *, pin: bool) -> Any:
    """The batch with its tensors there; in containers of the same kinds."""
    if isinstance(batch, torch.Tensor):
        if pin and batch.device.type == "cpu" and torch.cuda.is_available():
            batch = batch.pin_memory()
        return (
            batch
            if device is None or batch.device == device
            else batch.to(device, non_blocking=pin)
        )
    if isinstance(batch, Mapping):
        return {name: to_device(value, device, pin=pin) for name, value in batch.items()}
    if isinstance(batch, (list, tuple)) and not hasattr(batch, "_fields"):
        return type(batch)(to_device(value, device, pin=pin) for value in batch)
    return batch


def device_of(given: Any) -> torch.device | None:
    """The device that batches go to; None: they stay where they are.

    "auto": the worker's own in a training, else the CPU.
    """
    if given is None:
        return None
    if given != "auto":
        return torch.device(given)
    from troupe.train import _here

    index = _here.device_index()
    return None if index is None else torch.device("cuda", index)
