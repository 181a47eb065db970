"""Actors whose methods leave their tensors where they are, and who takes them."""

from __future__ import annotations

import dataclasses
import os
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any

import torch
from conftest import eventually

import troupe
import troupe.experimental
from troupe._actors.tensors import server
from troupe._base.bridge import native

LIMIT_S = 60.0


@dataclasses.dataclass
class Batch:
    """A value with tensors inside."""

    name: str
    data: Any
    more: dict[str, Any]


class Maker:
    """Makes tensors, keeps them in `made` too, and takes others'."""

    def __init__(self) -> None:
        self.made: list[Any] = []
        self.weak: list[weakref.ref] = []

    @troupe.method(tensor_transport="auto")
    def make(self, size: int, value: float = 1.0) -> Any:
        self.made.append(torch.full((size,), value))
        return self.made[-1]

    @troupe.method(tensor_transport="auto")
    def make_and_forget(self, size: int) -> Any:
        made = torch.ones(size)
        self.weak.append(weakref.ref(made))
        return made

    @troupe.method(tensor_transport="auto")
    def tree(self, size: int) -> Any:
        tensor = torch.arange(float(size))
        return Batch(
            "a",
            tensor,
            {
                "same": tensor,
                "list": (torch.nn.Parameter(torch.ones(2, 2)), 3),
                "part": tensor[1:4],
                "text": "x",
            },
        )

    @troupe.method(tensor_transport="auto")
    def give(self, value: Any) -> Any:
        return value

    @troupe.method(tensor_transport="auto", num_returns=2)
    def two(self) -> Any:
        return torch.ones(2), {"it": torch.zeros(3)}

    @troupe.method(tensor_transport="auto")
    def each(self, count: int) -> Iterator[Any]:
        for number in range(count):
            yield torch.full((3,), float(number))

    def plain(self, size: int) -> Any:
        self.made.append(torch.ones(size))
        return self.made[-1]

    def change(self, number: int = -1) -> None:
        self.made[number].add_(1)

    def change_unseen(self) -> None:
        self.made[-1].data[0] = 7.0
        self.made[-1].numpy()[1] = 8.0

    def is_own(self, value: Any) -> bool:
        return any(value is each for each in self.made)

    def total(self, value: Any) -> float:
        return float(value.sum())

    def write(self, value: Any) -> float:
        return float(value.add_(1).sum())

    def kept(self) -> tuple[int, int]:
        table = server.table_or_none()
        return (0, 0) if table is None else table.figures()

    def figures(self) -> dict:
        return native._object_figures()

    def alive(self) -> int:
        return sum(each() is not None for each in self.weak)

    def put(self, size: int) -> list[Any]:
        self.made.append(torch.ones(size))
        return [troupe.put(self.made[-1], _tensor_transport="auto")]

    def freed(self, timeout: float) -> None:
        troupe.experimental.wait_tensor_freed(self.made[-1], timeout)

    def keep(self, held: list[Any]) -> None:
        self.made.append(held)

    def wait_for(self, path: str) -> bool:
        """A method that does not end until somebody writes to a pipe."""
        with open(path) as pipe:
            return pipe.read() == "go"

    def pid(self) -> int:
        return os.getpid()


class Later:
    """A maker whose methods are coroutines."""

    @troupe.method(tensor_transport="auto")
    async def make(self, size: int) -> Any:
        return torch.ones(size)

    @troupe.method(tensor_transport="auto")
    async def each(self, count: int) -> AsyncIterator[Any]:
        for number in range(count):
            yield torch.full((3,), float(number))

    async def total(self, value: Any) -> float:
        return float(value.sum())


def let_go(made: Any) -> None:
    """Waits until the actor keeps nothing."""
    eventually(
        lambda: troupe.get(made.kept.remote(), timeout=LIMIT_S) == (0, 0),
        what="the end of all that the actor keeps",
    )
