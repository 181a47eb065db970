"""Training with torch: TorchTrainer, and what its loops call. By the names of `ray.train.torch`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from troupe.train._trainer import TorchConfig, TorchTrainer

if TYPE_CHECKING:
    from troupe.train._torch_loop import (
        enable_reproducibility,
        get_device,
        get_devices,
        prepare_data_loader,
        prepare_model,
    )

_IN_A_LOOP = (
    "enable_reproducibility",
    "get_device",
    "get_devices",
    "prepare_data_loader",
    "prepare_model",
)
__all__ = [
    "TorchConfig",
    "TorchTrainer",
    "enable_reproducibility",
    "get_device",
    "get_devices",
    "prepare_data_loader",
    "prepare_model",
]


def __getattr__(name: str) -> Any:
    """Import a name that needs torch, so that a program that only starts a training need not load
    it."""
    if name not in _IN_A_LOOP:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}"
        )
    from troupe._code import extras

    with extras.needed("torch", f"troupe.train.torch.{name}", "'troupe[torch]'"):
        from troupe.train import _torch_loop
    return getattr(_torch_loop, name)
