"""A trial that holds a part of a GPU: its torch takes no more of the card's memory than that
(G9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from troupe import _pickled
from troupe._base.after_import import after_import

CONTEXT_BYTES = 640 << 20
"""What a process has on a card before its first tensor, kernels included: it is no part of the
allocator's, and must fit beside the others' too."""


def fraction_of(amount: float, total_bytes: int) -> float:
    """Return the fraction of a GPU's memory that torch's allocator may use, in a process that holds
    that part of the GPU.

    >>> fraction_of(0.5, 80 << 30)
    0.4921875
    """
    return max(0.0, amount - CONTEXT_BYTES / total_bytes)


def cap(amount: float) -> None:
    """Torch in this process keeps to it, from when it first uses a GPU; nothing where that is all
    of one. Makes no context."""
    if 0 < amount < 1:
        after_import({"torch.cuda": lambda cuda: _cap(cuda, amount)})


def _cap(cuda: Any, amount: float) -> None:
    def set_fractions() -> None:
        for device in range(cuda.device_count()):
            cuda.set_per_process_memory_fraction(
                fraction_of(amount, cuda.get_device_properties(device).total_memory), device
            )

    cuda._lazy_call(
        set_fractions
    )  # torch's own way for what waits until a GPU is used, as seeds do


@dataclass(frozen=True)
class Capped:
    """A trial's function, in whose process torch keeps to the trial's part of its GPU."""

    function: Callable[..., Any]

    def __call__(self, config: Mapping[str, Any], **parameters: Any) -> Any:
        from troupe.tune._context import get_context

        cap(float((get_context().get_trial_resources() or {}).get("GPU", 0.0)))
        return self.function(config, **parameters)

    @property
    def __name__(self) -> str:
        return getattr(self.function, "__name__", "trial")


def check(given: Any, what: str, gpus: float | None) -> None:
    """`gpus`: None: not known yet.

    Raises TypeError, or ValueError where there is no part of a GPU to keep to.
    """
    if not isinstance(given, bool):
        raise TypeError(f"{what}(gpu_memory_fraction={given!r}): True or False")
    if given and gpus is not None and not 0 < gpus < 1:
        raise ValueError(
            f"{what}(gpu_memory_fraction=True) caps torch's memory at the part of a GPU that a "
            f"trial holds, 0.5 perhaps, and it holds {gpus:g}"
        )


_pickled.named_in("troupe._pickled", Capped)
