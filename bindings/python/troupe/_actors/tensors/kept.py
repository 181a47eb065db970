"""The tensors that this actor keeps: put here when a value is answered, let go of when nobody holds
a ref of it any more.

Each value has a key that cannot be guessed: who was given the value may ask for its tensors, nobody
else. A tensor's version, which torch counts up with each change in place, is noted when it is kept;
what does not count (an inference tensor) has none.
"""

from __future__ import annotations

import dataclasses
import os
import secrets
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from troupe import exceptions
from troupe._base import background as _background
from troupe._base.context import ActorContext
from troupe._base.identity import boot_id

VALUES_MAX = 65_536
PUT = "troupe.put"
_KINDS = ("cpu", "cuda")

Spec = tuple[tuple[int, ...], str, str, bool, bool]
"""What travels of a tensor: shape, dtype, device, requires_grad, whether it is a Parameter."""


@dataclasses.dataclass(frozen=True)
class Place:
    """The process of an actor that keeps tensors."""

    actor: str
    incarnation: int
    class_name: str
    node_name: str
    boot_id: str
    unix_path: str
    pid: int

    @classmethod
    def here(cls) -> Place:
        """This process, which is an actor's."""
        actor = ActorContext.current
        assert actor is not None, "only an actor keeps tensors"
        return cls(
            actor.actor,
            actor.incarnation,
            actor.class_name,
            actor.node_name,
            boot_id(),
            actor.socket_path,
            os.getpid(),
        )

    @classmethod
    def of(cls, fields: Sequence[Any]) -> Place:
        """The inverse of `fields()`; what a later version adds at their end is left out."""
        return cls(*fields[: len(dataclasses.fields(cls))])

    def fields(self) -> tuple[Any, ...]:
        """Return the fields as a tuple, for pickling."""
        return dataclasses.astuple(self)

    def is_here(self) -> bool:
        """Return True if this process keeps the tensors."""
        actor = ActorContext.current
        return actor is not None and (self.actor, self.incarnation, self.pid) == (
            actor.actor,
            actor.incarnation,
            os.getpid(),
        )

    def __str__(self) -> str:
        return f"actor {self.class_name}({self.actor[:8]}) on {self.node_name}, pid {self.pid}"


@dataclasses.dataclass(frozen=True)
class Kept:
    """A stored tensor, its version when it was stored, and on a GPU the event its contents are
    ready after."""

    tensor: Any
    version: int | None
    written: Any


@dataclasses.dataclass(frozen=True)
class KeptValue:
    """The tensors of one value."""

    method: str  # the method that returned it; PUT for values of put()
    tensors: tuple[Kept, ...]
    bytes: int


class TensorTable:
    """See the module's text. Used by all threads of the process."""

    def __init__(self, bytes_max: int) -> None:
        self._values: dict[str, KeptValue] = {}
        self._bytes = 0
        self._bytes_max = bytes_max
        self._changed = threading.Condition()

    def keep(self, method: str, tensors: Sequence[Any]) -> str:
        """The key of these, from now on. Raises TooLargeError over a limit."""
        size = sum(each.nbytes for each in tensors if each.device.type == "cpu")
        value = KeptValue(
            method, tuple(Kept(each, version_of(each), _written(each)) for each in tensors), size
        )
        key = secrets.token_hex(16)
        with self._changed:
            if len(self._values) >= VALUES_MAX or self._bytes + size > self._bytes_max:
                raise exceptions.TooLargeError(self._full(method, size))
            self._values[key] = value
            self._bytes += size
        _background.begin()
        return key

    def _full(self, method: str, size: int) -> str:
        return (
            f"{method}() returned tensors of {size:,} bytes of the CPU's memory that are to stay "
            f"in {Place.here()}, which keeps "
            f"{len(self._values):,} values with {self._bytes:,} bytes already; at most "
            f"{VALUES_MAX:,} and {self._bytes_max:,} are kept\n"
            "  drop refs of results that are not needed any more, or call the method without "
            "tensor_transport"
        )

    def find(self, key: str) -> KeptValue | None:
        """The tensors of a key; None: they are let go of, or never were."""
        return self._values.get(key)

    def let_go_later(self, key: str) -> None:
        """Nobody holds the value any more. Does not block."""
        _background.later(self.let_go, key)

    def let_go(self, key: str) -> None:
        """Drop the tensors of a key."""
        with self._changed:
            value = self._values.pop(key, None)
            if value is not None:
                self._bytes -= value.bytes
            self._changed.notify_all()

    def wait_until_taken(self) -> None:
        """Blocks until nothing is kept of what methods returned; what the actor put goes with
        it."""
        with self._changed:
            self._changed.wait_for(
                lambda: all(each.method == PUT for each in self._values.values())
            )

    def wait_until_freed(self, tensor: Any, timeout: float | None) -> bool:
        """Blocks until that tensor is kept for nobody; False: `timeout` seconds passed first."""
        ends = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while any(
                kept.tensor is tensor for value in self._values.values() for kept in value.tensors
            ):
                left = None if ends is None else ends - time.monotonic()
                if left is not None and left <= 0:
                    return False
                self._changed.wait(left)
        return True

    def figures(self) -> tuple[int, int]:
        """How many values are kept, and how many bytes of the CPU's memory."""
        with self._changed:
            return len(self._values), self._bytes


def is_tensor(value: Any) -> bool:
    """Return True if `value` is a torch tensor; does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def stays(value: Any) -> bool:
    """Return True if `value` is a tensor that stays in its process; does not import torch."""
    if type(value).__name__ not in ("Tensor", "Parameter"):
        return False
    torch = sys.modules.get("torch")
    return (
        torch is not None
        and type(value) in (torch.Tensor, torch.nn.Parameter)
        and value.layout is torch.strided
        and value.device.type in _KINDS
        and not value.is_quantized
        and not value.is_nested
        and not value.__dict__
    )


def spec_of(tensor: Any) -> Spec:
    """Return the shape, dtype, device and flags of a tensor, which travel in its place."""
    return (
        tuple(tensor.shape),
        str(tensor.dtype).removeprefix("torch."),
        str(tensor.device),
        tensor.requires_grad,
        type(tensor).__name__ == "Parameter",
    )


def text_of(spec: Spec) -> str:
    """A tensor for people."""
    shape, dtype, device = spec[:3]
    return f"{dtype} of shape {tuple(shape)} on {device}"


def version_of(tensor: Any) -> int | None:
    """How often it was changed in place; None: torch does not count that."""
    try:
        found: int | None = tensor._version
        return found
    except RuntimeError:  # an inference tensor
        return None


def changed(value: KeptValue) -> tuple[Spec, int, int] | None:
    """The first of its tensors that was changed since it was kept, and its versions then and
    now."""
    for each in value.tensors:
        now = version_of(each.tensor)
        if each.version is not None and now is not None and now != each.version:
            return spec_of(each.tensor), each.version, now
    return None


def _written(tensor: Any) -> Any:
    """An event of the device that comes once the tensor's contents are there; None of a CPU's,
    which are."""
    if tensor.device.type != "cuda":
        return None
    import torch

    return torch.cuda.current_stream(tensor.device).record_event()


def bytes_max() -> int:
    """Return how many bytes of CPU memory one process may use for kept tensors: as many as for
    objects."""
    given = os.environ.get("TROUPE_OBJECT_STORE_MEMORY", "")
    return (
        int(given)
        if given.isdigit() and int(given)
        else os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    )
