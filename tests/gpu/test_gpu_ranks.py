"""Abilities of a rank with a GPU: the group, collectives, the device, training, compiling, loading
data.

Method: launches of one rank on a node that has found its GPU; ranks are forked from a zygote that
has torch loaded.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import Home, eventually
from waiting import waiting_launch

from troupe.launch import distributed

pytestmark = pytest.mark.gpu
LIMIT_S = 60.0


def ran(function: Any, *args: Any) -> Any:
    """Return the result of a launch's only rank."""
    [value] = distributed(gpus=1, remote=True, timeout=LIMIT_S)(function).distributed(*args)
    return value


def test_a_rank_is_a_fork_in_which_cuda_begins(idle: Home) -> None:
    def rank() -> dict:
        import sys

        import torch

        assert not torch.cuda.is_initialized() and not torch.cuda._is_in_bad_fork()
        a, b = torch.randn(64, 64), torch.randn(64, 64)
        there = (a.cuda() @ b.cuda()).cpu()
        return {
            "forked": "troupe._process.zygote" in " ".join(sys.orig_argv),
            "right": torch.allclose(there, a @ b, atol=1e-3),
            "mask": os.environ["CUDA_VISIBLE_DEVICES"],
            "count": torch.cuda.device_count(),
            "local": os.environ["LOCAL_RANK"],
        }

    assert ran(rank) == {"forked": True, "right": True, "mask": "0", "count": 1, "local": "0"}


def test_a_group_is_nccl_and_reduces(idle: Home) -> None:
    """init_process_group() as torchrun's users write it."""

    def rank() -> tuple:
        import torch
        import torch.distributed as dist

        dist.init_process_group()
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        value = torch.full((3,), 2.0, device="cuda")
        dist.all_reduce(value)
        gathered = [torch.empty_like(value)]
        dist.all_gather(gathered, value)
        objects = [{"epoch": 3}]
        dist.broadcast_object_list(objects)
        dist.barrier()
        return dist.get_backend_config(), value.tolist(), gathered[0].tolist(), objects

    assert ran(rank) == ("cuda:nccl", [2.0] * 3, [2.0] * 3, [{"epoch": 3}])


def test_a_group_of_both_reduces_on_the_host_too(idle: Home) -> None:
    def rank() -> tuple:
        import torch
        import torch.distributed as dist

        dist.init_process_group("cpu:gloo,cuda:nccl")
        here, there = torch.full((3,), 2.0, device="cuda"), torch.full((3,), 2.0)
        dist.all_reduce(here)
        dist.all_reduce(there)
        return here.tolist(), there.tolist()

    assert ran(rank) == ([2.0] * 3, [2.0] * 3)


def test_a_group_by_name_of_its_device_and_one_after_another(idle: Home) -> None:
    def rank() -> list:
        import torch
        import torch.distributed as dist

        made = []
        for _ in range(2):
            dist.init_process_group("nccl", device_id=torch.device("cuda", 0))
            value = torch.ones(1, device="cuda")
            dist.all_reduce(value)
            dist.barrier()
            made.append((dist.get_backend(), dist.get_world_size(), value.item()))
            dist.destroy_process_group()
        return made

    assert ran(rank) == [("nccl", 1, 1.0)] * 2


def test_ddp_trains_to_a_loss(idle: Home) -> None:
    def rank() -> tuple[float, float]:
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel

        dist.init_process_group()
        torch.manual_seed(0)
        x = torch.randn(512, 16, device="cuda")
        y = x @ torch.randn(16, 1, device="cuda")
        model = DistributedDataParallel(
            torch.nn.Linear(16, 1).cuda(), device_ids=[int(os.environ["LOCAL_RANK"])]
        )
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
        losses = []
        for _ in range(300):
            loss = (model(x) - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses[0], losses[-1]

    first, last = ran(rank)
    assert first > 1 and last < 0.01


def test_sharded_training_and_a_checkpoint_of_it(idle: Home, tmp_path: Path) -> None:
    """FSDP over a device mesh, saved and loaded by torch.distributed.checkpoint."""

    def rank(folder: str) -> tuple[bool, str]:
        import torch
        import torch.distributed as dist
        import torch.distributed.checkpoint as dcp
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cuda", (1,))
        model = torch.nn.Sequential(
            torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)
        ).cuda()
        fully_shard(model, mesh=mesh)
        optimizer = torch.optim.AdamW(model.parameters())
        model(torch.ones(4, 32, device="cuda")).sum().backward()
        optimizer.step()
        saved = {name: value.full_tensor().clone() for name, value in model.state_dict().items()}
        dcp.save({"model": model.state_dict()}, checkpoint_id=folder)
        with torch.no_grad():
            for each in model.parameters():
                each.zero_()
        state = {"model": model.state_dict()}
        dcp.load(state, checkpoint_id=folder)
        model.load_state_dict(state["model"])
        same = all(
            torch.equal(value.full_tensor(), saved[name])
            for name, value in model.state_dict().items()
        )
        return same, dist.get_backend_config()

    assert ran(rank, str(tmp_path / "checkpoint")) == (True, "cuda:nccl")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_a_loader_feed_a_rank(idle: Home, method: str) -> None:
    """The workers start after CUDA has, and the batches come by pinned memory."""

    def rank(method: str) -> float:
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        total = torch.zeros(1, device="cuda")
        loader = DataLoader(
            TensorDataset(torch.arange(64.0)),
            batch_size=8,
            num_workers=2,
            pin_memory=True,
            multiprocessing_context=method,
            persistent_workers=True,
        )
        for _ in range(2):
            for [batch] in loader:
                assert batch.is_pinned()
                total += batch.cuda(non_blocking=True).sum()
        return total.item()

    assert ran(rank, method) == 2 * sum(range(64))


def test_a_function_is_compiled(idle: Home) -> None:
    """By Inductor for Triton, whose compilers are processes of their own; a graph of CUDA too."""

    def rank() -> tuple[bool, bool, bool]:
        import torch

        def f(x: Any) -> Any:
            return torch.nn.functional.gelu(x) * x.sin() + 1

        x = torch.randn(1000, device="cuda")
        compiled = torch.compile(f)(x)
        reduced = torch.compile(f, mode="reduce-overhead")(x).clone()
        graph, out = torch.cuda.CUDAGraph(), None
        with torch.cuda.graph(graph):
            out = f(x)
        graph.replay()
        torch.cuda.synchronize()
        return tuple(torch.allclose(each, f(x), atol=1e-5) for each in (compiled, reduced, out))

    assert ran(rank) == (True, True, True)


def test_variables_of_the_allocator_are_there_when_it_begins(idle: Home) -> None:
    """The values torch reads when it is loaded differ between a rank that asks for it and the
    zygote."""

    def rank() -> bool:
        import torch

        torch.ones(1, device="cuda")
        return torch.cuda.memory._snapshot()["allocator_settings"]["expandable_segments"]

    with_it = distributed(
        gpus=1,
        remote=True,
        timeout=LIMIT_S,
        runtime_env={"env_vars": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}},
    )(rank)
    assert with_it.distributed() == [True]
    assert ran(rank) is False


def test_a_second_launch_waits_for_the_gpu_and_runs(idle: Home, tmp_path: Path) -> None:
    def rank(go_on: str) -> float:
        import time

        import torch

        value = torch.ones(1, device="cuda")
        while go_on and not os.path.exists(go_on):
            time.sleep(0.02)  # lint-ok: what the test writes
        return value.item()

    job = distributed(gpus=1, remote=True, timeout=LIMIT_S)(rank)
    go_on = tmp_path / "go on"
    first = job.submit(str(go_on))
    eventually(lambda: first.status()["state"] == "running", what="the first launch")
    second = job.submit("")
    waits = eventually(lambda: second.status()["waiting_for"], what="a reason")
    assert "GPU" in waits, waits
    assert "waiting" in idle.run("status").stdout
    go_on.write_text("")
    assert first.result(LIMIT_S) == [1.0] and second.result(LIMIT_S) == [1.0]


def test_launches_of_threads_take_turns(idle: Home) -> None:
    def rank(number: int) -> int:
        import torch

        return int(torch.full((1,), number, device="cuda").item())

    job, found = distributed(gpus=1, remote=True, timeout=LIMIT_S)(rank), {}
    threads = [
        threading.Thread(target=lambda n=n: found.update({n: job.distributed(n)})) for n in range(3)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == {n: [n] for n in range(3)}


def test_where_a_rank_is_that_waits_for_the_device(idle: Home) -> None:
    """The stack is read from outside while the main thread is in the driver of the card."""
    handle = waiting_launch(LIMIT_S)
    eventually(lambda: "synchronize" in idle.run("stack", handle.id).stdout, what="its stack")
    assert "waits" in idle.run("stack", handle.id).stdout
    handle.cancel(grace=0)
