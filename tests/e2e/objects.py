"""Parts shared by tests of objects: whether anything is held still; arrays of every kind, and where
their memory starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import troupe
from troupe._base.bridge import native


def nothing_held(figures: Callable[[], dict]) -> Callable[[], bool]:
    return lambda: all(figures()[what] == 0 for what in ("owned", "borrowed", "pool_in_use"))


def all_released(*actors: Any) -> None:
    """Nobody holds an object any more, here and there."""
    from conftest import eventually  # not where an actor imports this module

    eventually(nothing_held(native._object_figures), what="the end of all objects here")
    for made in actors:
        eventually(
            nothing_held(lambda made=made: troupe.get(made.figures.remote(), timeout=20)),
            what="the end of all objects there",
        )


def arrays_of(size: int) -> dict[str, Any]:
    """Return arrays and tensors of so many bytes, a multiple of 64, by their kind."""
    import numpy as np
    import torch

    numbers = np.arange(size // 4, dtype=np.float64)
    half = numbers[: size // 8].copy()
    return {
        "float64": half,
        "bool": np.arange(size) % 3 == 0,
        "dates": half.astype("M8[s]"),
        "every other": numbers[::2],
        "fortran": np.asfortranarray(half.reshape(8, -1)),
        "turned": numbers.reshape(8, -1)[:, ::2].T,
        "text": np.full(size // 8, "ab"),
        "structured": np.zeros(size // 16, dtype=[("a", "i8"), ("b", "f8")]),
        "records": np.rec.array(np.zeros(size // 8, dtype=[("a", "i8")])),
        "tensor": torch.arange(size // 8, dtype=torch.float64),
        "part of a tensor": torch.arange(size // 4, dtype=torch.float64)[::2],
    }


def unaligned(value: Any, name: str = "value") -> list[str]:
    """Return where inside `value` arrays and tensors lie whose memory does not start on 64
    bytes."""
    if isinstance(value, dict):
        return [
            each for key, inside in value.items() for each in unaligned(inside, f"{name}[{key!r}]")
        ]
    if isinstance(value, (list, tuple)):
        return [
            each for i, inside in enumerate(value) for each in unaligned(inside, f"{name}[{i}]")
        ]
    if hasattr(value, "__array_interface__"):
        return [name] if value.__array_interface__["data"][0] % 64 else []
    return [name] if hasattr(value, "data_ptr") and value.data_ptr() % 64 else []


def differing(got: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """Return the kinds of `arrays_of` of which `got` has another class, type, shape or order, or
    other elements."""

    def form(each: Any) -> tuple:
        order = (
            (each.flags.f_contiguous, each.flags.c_contiguous)
            if hasattr(each, "flags")
            else each.is_contiguous()
        )
        return (
            type(each),
            each.dtype,
            each.shape,
            order,
            each.tobytes() if hasattr(each, "tobytes") else each.tolist(),
        )

    import numpy as np

    packed = {
        name: each.copy(order="A") if isinstance(each, np.ndarray) else each
        for name, each in wanted.items()
    }
    return [name for name in packed if form(got[name]) != form(packed[name])]
