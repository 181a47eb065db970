"""Tensors of a GPU that come to a process without one: the error says so, and what to do, whichever
way they came.

Method: torch is told that a tensor of the host lies on a device, as it would write down one that
does; what arrives is loaded by whoever gets it. Real tensors of a GPU: tests/gpu.
"""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Home

import troupe
from troupe.launch import distributed

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(), reason="there is a GPU here: tests/gpu has these"
)
WITHIN_S = 60.0
TOLD = (
    r"a tensor on cuda:3 was sent here, and this process has no GPU.*: send tensor.cpu\(\) instead"
)


def on_device() -> Any:
    """A tensor that this process takes for one of a device, as it does all others from now on."""
    import torch

    torch.UntypedStorage.device = property(lambda self: torch.device("cuda:3"))
    return torch.arange(3.0)


class Holder:
    def give(self) -> Any:
        return on_device()

    def take(self, value: Any) -> str:
        return type(value).__name__


def take(value: Any) -> str:
    return type(value).__name__


@pytest.fixture
def tensor(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A tensor of a device, here."""
    monkeypatch.setattr(torch.UntypedStorage, "device", torch.UntypedStorage.device)
    return on_device()


def taken(value: Any) -> Any:
    return distributed(processes=1, remote=True, timeout=WITHIN_S)(take).distributed(value)


@pytest.mark.filterwarnings("error")
def test_one_that_is_given(idle: Home, tensor: Any) -> None:
    holder = troupe.remote(Holder).remote()
    for way in (
        lambda: troupe.get(holder.take.remote(tensor), timeout=WITHIN_S),
        lambda: troupe.get(troupe.remote(take).remote(tensor), timeout=WITHIN_S),
        lambda: troupe.get(troupe.remote(take).remote({"model": [tensor]}), timeout=WITHIN_S),
        lambda: troupe.get(troupe.remote(lambda: take(tensor)).remote(), timeout=WITHIN_S),
        lambda: troupe.get(troupe.put(tensor), timeout=WITHIN_S),
        lambda: taken(tensor),
    ):
        with pytest.raises(RuntimeError, match=TOLD):
            way()
    assert troupe.get(holder.take.remote(3), timeout=WITHIN_S) == "int", "the actor goes on"


@pytest.mark.filterwarnings("error")
def test_one_of_the_host_travels_without_a_word(idle: Home) -> None:
    assert troupe.get(troupe.remote(take).remote(torch.ones(3)), timeout=WITHIN_S) == "Tensor"
    assert taken({"model": torch.nn.Linear(2, 2).state_dict()}) == ["dict"]


def test_one_that_is_got(idle: Home) -> None:
    giver, holder = troupe.remote(Holder).remote(), troupe.remote(Holder).remote()
    for way in (
        lambda: troupe.get(giver.give.remote(), timeout=WITHIN_S),
        lambda: troupe.get(holder.take.remote(giver.give.remote()), timeout=WITHIN_S),
        lambda: troupe.get(troupe.remote(on_device).remote(), timeout=WITHIN_S),
        distributed(processes=1, remote=True, timeout=WITHIN_S)(on_device).distributed,
    ):
        with pytest.raises(RuntimeError, match=TOLD):
            way()
    assert troupe.get(holder.take.remote(torch.ones(3)), timeout=WITHIN_S) == "Tensor", (
        "the actor goes on"
    )
