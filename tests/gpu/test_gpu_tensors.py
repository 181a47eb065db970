"""Tensors of a GPU that stay in the actor whose method returned them: to itself, to another process
of the card, to one without a GPU.

Method: actors that share the card; this process makes no context of CUDA. Who gets what on CPUs:
tests/groups/tensors.
"""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Home, eventually

import troupe
from troupe import exceptions

pytestmark = pytest.mark.gpu
LIMIT_S = 60.0
LARGE = 4_000_000


class Maker:
    """Makes tensors on its GPU, and says what those are that it is given."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    @troupe.method(tensor_transport="auto")
    def make(self, size: int) -> Any:
        import torch

        self.made.append(torch.ones(size, device="cuda"))
        return {"it": self.made[-1], "part": self.made[-1][1:3]}

    def is_own(self, value: dict) -> bool:
        return any(value["it"] is each for each in self.made)

    def look(self, value: dict) -> tuple[str, float, list[float]]:
        return str(value["it"].device), float(value["it"].sum()), value["part"].tolist()

    def change(self) -> None:
        self.made[-1].add_(1)

    def drop(self) -> None:
        self.made.clear()

    def kept(self) -> int:
        from troupe._actors.tensors import server

        table = server.table_or_none()
        return 0 if table is None else table.figures()[0]


@pytest.mark.parametrize("size", [10, LARGE], ids=["small", "large"])
def test_a_tensor_of_the_card_goes_to_another_process_of_it(idle: Home, size: int) -> None:
    one, two = (troupe.remote(num_gpus=0.4)(Maker).remote() for _ in range(2))
    ref = one.make.remote(size)
    assert troupe.get(one.is_own.remote(ref), timeout=LIMIT_S)
    assert troupe.get(two.look.remote(ref), timeout=LIMIT_S) == ("cuda:0", float(size), [1.0, 1.0])
    troupe.get(one.change.remote(), timeout=LIMIT_S)
    with pytest.raises(exceptions.TensorChangedError, match="on cuda:0.* was changed in place"):
        troupe.get(two.look.remote(ref), timeout=LIMIT_S)
    del ref
    troupe.get(one.drop.remote(), timeout=LIMIT_S)
    eventually(
        lambda: troupe.get(one.kept.remote(), timeout=LIMIT_S) == 0,
        what="the end of what the actor keeps",
    )


def test_one_without_a_gpu_has_it_in_the_hosts_memory(idle: Home) -> None:
    one, without = troupe.remote(num_gpus=1)(Maker).remote(), troupe.remote(Maker).remote()
    ref = one.make.remote(LARGE)
    assert troupe.get(without.look.remote(ref), timeout=LIMIT_S) == (
        "cpu",
        float(LARGE),
        [1.0, 1.0],
    )


def test_a_receiver_that_is_killed_leaves_the_owner_unharmed(idle: Home) -> None:
    one, two = (troupe.remote(num_gpus=0.4)(Maker).remote() for _ in range(2))
    ref = one.make.remote(LARGE)
    assert troupe.get(two.look.remote(ref), timeout=LIMIT_S)[0] == "cuda:0"
    troupe.kill(two)
    three = troupe.remote(num_gpus=0.4)(Maker).remote()
    assert troupe.get(three.look.remote(ref), timeout=LIMIT_S) == (
        "cuda:0",
        float(LARGE),
        [1.0, 1.0],
    )
