"""B5: where NCCL or Gloo cannot connect, the error names hosts, the interfaces that were tried, and
    what to do.

Method: Gloo really fails, by an interface that is none; NCCL's errors are texts that torch has
raised, raised by ranks which have GPUs that are only counted.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import pytest
import torch
from e2e_conftest import Home, eventually
from submits import project

import troupe
from troupe.launch import _interface_words, distributed
from troupe.spark import TorchDistributor

cloudpickle.register_pickle_by_value(sys.modules[__name__])
INTERNAL = (
    "NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:94, internal error - please "
    "report this issue to the NCCL developers, NCCL version 2.27.5\n"
    "ncclInternalError: Internal check failed.\nLast error:\nBootstrap : no socket interface found"
)
UNREACHABLE = (
    "NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:94, unhandled system error, "
    "NCCL version 2.27.5\n"
    "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device "
    "error.\n"
    "Last error:\nsocketPollConnect: connect to 10.0.0.2<41113> returned No route to host, "
    "exceeded error retry count after 35 attempts"
)


@pytest.fixture(scope="module")
def node(shared_home: Home) -> Iterator[Home]:
    started = shared_home.json(
        "start", "--head", "--port", "0", "--num-cpus", "4", "--num-gpus", "2", "--node-name", "one"
    )
    troupe.init(started["address"])
    eventually(
        lambda: all(each["zygote_ready"] for each in troupe.state.list_nodes()), what="the zygote"
    )
    yield shared_home
    troupe.shutdown()


def _nccl() -> str:
    """As torch tells it, where it was built with NCCL."""
    return (
        ".".join(map(str, torch.cuda.nccl.version()))
        if hasattr(torch._C, "_nccl_version")
        else "unknown"
    )


def test_this_hosts_interfaces() -> None:
    there = _interface_words.interfaces()
    assert there["lo"] == "127.0.0.1" and set(there) <= {name for _, name in socket.if_nameindex()}


@pytest.mark.parametrize("text", [INTERNAL, UNREACHABLE], ids=["ncclInternalError", "no route"])
def test_b5_nccl_names_hosts_interfaces_and_the_remedy(node: Home, text: str) -> None:
    """The ranks' interface was chosen for them."""

    def train() -> None:
        import torch.distributed as dist

        raise dist.DistBackendError(text)

    with pytest.raises(RuntimeError) as caught:
        TorchDistributor(2, local_mode=False, use_gpu=True).run(train)
    said = str(caught.value)
    assert (
        "troupe: NCCL on one: NCCL_SOCKET_IFNAME==lo (troupe's choice: by it the node reaches the "
        "others); interfaces there: " in said
    ), said
    assert "lo 127.0.0.1" in said and f"one ({socket.gethostname()}): ranks 0, 1" in said, said
    assert (
        f"troupe: versions on one: NCCL {_nccl()}, driver " in said
        and f"torch {torch.__version__}" in said
    ), said
    assert (
        'os.environ["NCCL_SOCKET_IFNAME"] = "NAME" before the launch' in said
        and 'os.environ["NCCL_DEBUG"] = "INFO"' in said
    ), said


def test_this_hosts_rdma_ports_and_driver(tmp_path: Path) -> None:
    assert (
        _interface_words.rdma_ports(str(tmp_path)) == []
        and _interface_words.driver_version(str(tmp_path)) == ""
    )
    for device, state in (("mlx5_0", "4: ACTIVE"), ("mlx5_1", "1: DOWN")):
        port = tmp_path / "sys/class/infiniband" / device / "ports/1"
        port.mkdir(parents=True)
        (port / "state").write_text(f"{state}\n")
    assert _interface_words.rdma_ports(str(tmp_path)) == ["mlx5_0:1 ACTIVE", "mlx5_1:1 DOWN"]
    version = tmp_path / "proc/driver/nvidia/version"
    version.parent.mkdir(parents=True)
    for said, number in (
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Sat Feb\nGCC version: "
            "12\n",
            "535.161.08",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n",
            "570.86.15",
        ),
    ):
        version.write_text(said)
        assert _interface_words.driver_version(str(tmp_path)) == number


def test_b5_an_interface_of_the_programs(node: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Really of Gloo, which is told one that is none: by the caller, and by the rank itself."""

    def joins(name: str = "") -> None:
        import torch.distributed as dist

        if name:
            os.environ["GLOO_SOCKET_IFNAME"] = name
        dist.init_process_group("gloo")

    with pytest.raises(
        RuntimeError,
        match=r"troupe: GLOO on one: GLOO_SOCKET_IFNAME=none1 \(set by the program there\); interfaces there: ",
    ):
        distributed(processes=2, remote=True)(joins).distributed("none1")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "none2")
    with pytest.raises(
        RuntimeError,
        match=r"GLOO_SOCKET_IFNAME=none2 \(of the caller's environment\)[\s\S]*try: another interface, where GLOO could not connect",
    ):
        distributed(processes=2, remote=True)(joins).distributed()


def test_b5_a_script_prints_it_too(
    node: Home, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    folder = project(
        tmp_path / "w",
        joins="import os\nimport torch.distributed as dist\nos.environ['GLOO_SOCKET_IFNAME'] = "
        "'none3'\ndist.init_process_group('gloo')\n",
    )
    with pytest.raises(RuntimeError, match="try: another interface, where GLOO could not connect"):
        TorchDistributor(2, local_mode=False, use_gpu=False).run(str(folder / "joins.py"))
    assert (
        "] troupe: GLOO on one: GLOO_SOCKET_IFNAME=none3 (set by the program there)"
        in capfd.readouterr().err
    )
