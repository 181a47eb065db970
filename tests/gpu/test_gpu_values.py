"""Tensors on a GPU as results, arguments and stored values: they arrive on the device of that
number, or the error says what to do.

Method: actors with and without a GPU. What drivers get and give: test_gpu_scripts.py.
"""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Home

import troupe
from troupe import exceptions
from troupe.launch import distributed

pytestmark = pytest.mark.gpu
LIMIT_S = 60.0
NO_GPU = r"on cuda:0 .* this process has no GPU.*\n?.*\.cpu\(\)"


class Worker:
    """Makes tensors, keeps them, and says where those are that it is given."""

    def make(self, size: int) -> Any:
        import torch

        return torch.arange(float(size), device="cuda")

    def host(self, size: int) -> Any:
        return self.make(size).cpu()

    def model(self) -> dict:
        import torch

        torch.manual_seed(0)
        return torch.nn.Linear(64, 64).cuda().state_dict()

    def look(self, value: Any) -> tuple[str, float]:
        return str(value.device), float(value.sum())

    def look_inside(self, value: dict) -> list[str]:
        return sorted({str(each.device) for each in value.values()})


@pytest.mark.parametrize("size", [10, 1_000_000], ids=["small", "large"])
def test_a_tensor_goes_from_one_process_with_a_gpu_to_another(idle: Home, size: int) -> None:
    one, two = (troupe.remote(num_gpus=0.5)(Worker).remote() for _ in range(2))
    right = float(sum(range(size)))
    assert troupe.get(two.look.remote(one.make.remote(size)), timeout=LIMIT_S)[0] == "cuda:0"
    if size < 1000:
        assert troupe.get(two.look.remote(one.make.remote(size)), timeout=LIMIT_S) == (
            "cuda:0",
            right,
        )
    assert troupe.get(two.look_inside.remote(one.model.remote()), timeout=LIMIT_S) == ["cuda:0"]
    host = one.host.remote(size)
    assert troupe.get(two.look.remote(host), timeout=LIMIT_S)[0] == "cpu"
    assert float(troupe.get(host, timeout=LIMIT_S)[-1]) == size - 1


def test_a_process_without_one_says_what_to_do(idle: Home) -> None:
    with_one, without = troupe.remote(num_gpus=1)(Worker).remote(), troupe.remote(Worker).remote()
    with pytest.raises(RuntimeError, match=NO_GPU):
        troupe.get(without.look.remote(with_one.make.remote(10)), timeout=LIMIT_S)
    with pytest.raises(exceptions.TaskError, match=NO_GPU):
        troupe.get(without.look_inside.remote(with_one.model.remote()), timeout=LIMIT_S)
    assert troupe.get(without.look.remote(with_one.host.remote(10)), timeout=LIMIT_S) == (
        "cpu",
        45.0,
    )


def test_results_of_ranks_without_cuda_are_plain_values(idle: Home) -> None:
    def rank() -> dict:
        import torch

        x = torch.arange(6.0, device="cuda")
        return {
            "tensor": x.cpu(),
            "number": x.sum().item(),
            "array": x.cpu().numpy(),
            "dtype": x.dtype,
        }

    [value] = distributed(gpus=1, remote=True, timeout=LIMIT_S)(rank).distributed()
    assert (
        value["tensor"].tolist() == list(range(6)) == value["array"].tolist()
        and value["number"] == 15.0
    )
