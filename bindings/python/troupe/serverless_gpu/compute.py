"""Types of GPUs, for the `gpu_type` of `distributed` and `ray_launch`."""

from __future__ import annotations

import enum


class GPUType(str, enum.Enum):  # noqa: UP042  # as Databricks' own, str() of it too
    """Types with a name of their own.

    Any other type that nodes of a cluster have is given as a text: `gpu_type="L40S"`.

    A text may be in upper or lower case: `GPUType("h100") is GPUType.H100`.
    """

    A10 = "A10"
    H100 = "H100"

    @classmethod
    def _missing_(cls, value: object) -> GPUType | None:
        return next(
            (each for each in cls if isinstance(value, str) and each.value == value.upper()), None
        )

    def __str__(self) -> str:
        return self.value


__all__ = ["GPUType"]
