"""B5: errors of NCCL and Gloo that come from what lies between ranks are told from others, with
    what to do about each kind.

Method: texts of real errors, of the public issues that are named beside them, with the addresses
changed.
"""

from __future__ import annotations

import pytest

from troupe.launch import _interface_words, _network_errors

BY_TORCH = (
    "NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.hpp:268, {what}, NCCL "
    "version {version}\n{name}\nLast error:\n{last}"
)
SYSTEM = (
    "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or "
    "device error."
)
REMOTE = (
    "ncclRemoteError: A call failed possibly due to a network error or a remote process "
    "exiting prematurely."
)
INTERNAL = "ncclInternalError: Internal check failed."


def by_torch(name: str, last: str) -> str:
    return BY_TORCH.format(
        what="unhandled system error (run with NCCL_DEBUG=INFO for details)",
        version="2.21.5",
        name=name,
        last=last,
    )


KNOWN = [
    (
        "interface",
        by_torch(INTERNAL, "Bootstrap : no socket interface found"),
    ),  # codefuse-ai/MFTCoder#31
    (
        "interface",
        by_torch(
            INTERNAL,
            "ncclSocketInit: connecting to address  with family 59936 is neither AF_INET(2) nor "
            "AF_INET6(10)",
        ),
    ),  # NVIDIA/nccl#1837
    (
        "interface",
        "gpu617:22841:22841 [0] bootstrap.cc:37 NCCL WARN Bootstrap : no socket interface found",
    ),  # pytorch/pytorch#29482
    (
        "connection",
        by_torch(
            SYSTEM,
            "socketStartConnect: Connect to 127.0.0.1<45069> failed : Software caused connection "
            "abort",
        ),
    ),  # awslabs/awsome-distributed-ai#192
    (
        "connection",
        by_torch(
            SYSTEM,
            "socketPollConnect: connect to 10.0.0.2<41113> returned No route to host, exceeded "
            "error retry count after 35 attempts",
        ),
    ),
    (
        "connection",
        "[0] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to fe80::1%ib1<17943> failed "
        ": Software caused connection abort",
    ),  # NVIDIA/nccl#975
    (
        "remote end",
        by_torch(
            REMOTE,
            "socketProgressOpt: Call to recv from 10.0.0.2<33759> failed : Connection reset by "
            "peer",
        ),
    ),  # NVIDIA/nccl#2076
    (
        "remote end",
        "node2:13571 [0] NCCL WARN socketProgress: Connection closed by remote peer node2<42830>",
    ),  # NVIDIA/nccl#1232
    (
        "RDMA",
        "[0] transport/net_ib.cc:839 NCCL WARN NET/IB : Got completion with error 12, opcode 1, "
        "len 0, vendor err 129",
    ),  # NVIDIA/nccl#426
    (
        "RDMA",
        "[4] ib_plugin.c:1615 NCCL WARN NET/IB : Got completion from peer 10.0.0.4<54862> with "
        "status=12 opcode=0 len=0 vendor err 129 (Recv)",
    ),  # NVIDIA/nccl#1405
    (
        "RDMA",
        by_torch(
            SYSTEM,
            "Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1, curr "
            "state INIT, next state RTR",
        ),
    ),  # NVIDIA/nccl#2013
    (
        "RDMA",
        by_torch(SYSTEM, "Call to ibv_modify_qp failed with error Network is unreachable"),
    ),  # NVIDIA/nccl-tests#185
    (
        "locked memory",
        "misc/ibvwrap.cc:278 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate "
        "memory",
    ),  # NVIDIA/nccl-tests#206
    (
        "locked memory",
        "[5] register_mr_buffers:465 NCCL WARN NET/OFI Unable to register memory (type = 1) for "
        "device 0. RC: 12, Error: Cannot allocate memory",
    ),  # NVIDIA/nccl#563
    (
        "locked memory",
        "misc/ibvwrap.cc:190 NCCL WARN Call to ibv_create_cq failed with error Cannot allocate "
        "memory",
    ),  # NVIDIA/nccl#1191
    (
        "shared memory",
        by_torch(
            SYSTEM,
            "Error while creating shared memory segment /dev/shm/nccl-WU88OE (size 9637888), "
            "error: No space left on device (28)",
        ),
    ),  # pytorch/ci-infra#490
    (
        "shared memory",
        "[1] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device",
    ),  # NVIDIA/nccl#290
    (
        "versions",
        by_torch(INTERNAL, "Message truncated : received 524288 bytes instead of 65536"),
    ),  # NVIDIA/nccl#1328
    ("unknown", by_torch(INTERNAL, "")),
    ("unknown", by_torch(SYSTEM, "")),  # NVIDIA/nccl#834
]
GLOO = [
    (
        "interface",
        "[enforce fail at ../gloo/transport/tcp/device.cc:208] ifa != nullptr. Unable to find "
        "interface for: x",
    ),
    ("connection", "Gloo connectFullMesh failed with [../gloo/transport/tcp/pair.cc:144] no error"),
]
# Texts that do not concern the network: there is another remedy, or none.
OTHERS = [
    "CUDA error: an illegal memory access was encountered",
    "KeyError: 'lr'",
    "CUDA out of memory. Tried to allocate 20.00 MiB",
    "[../gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:1234",
    BY_TORCH.format(
        what="invalid usage",
        version="2.20.5",
        name="ncclInvalidUsage: This usually reflects invalid usage of NCCL library.",
        last="Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 10",
    ),  # verl-project/verl#161
    BY_TORCH.format(
        what="unhandled cuda error",
        version="2.20.5",
        name="ncclUnhandledCudaError: Call to CUDA function failed.",
        last="Cuda failure 'out of memory'",
    ),
    "node0:123:456 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>",
]
TRY = {
    "interface": 'os.environ["NCCL_SOCKET_IFNAME"]',
    "connection": 'os.environ["NCCL_SOCKET_IFNAME"]',
    "remote end": "`troupe logs LAUNCH`",
    "RDMA": "NCCL_IB_GID_INDEX",
    "locked memory": "LimitMEMLOCK=infinity",
    "shared memory": "--shm-size",
    "versions": "one version of NCCL",
    "unknown": "NCCL_DEBUG",
}


@pytest.mark.parametrize(("kind", "text"), KNOWN)
def test_b5_each_kind_with_its_remedy(kind: str, text: str) -> None:
    assert _network_errors.library_of(text) == "NCCL" and _network_errors.kind_of(text).name == kind
    said = _network_errors.remedy(text, "NCCL", "node-a: ranks 0-7, node-b: ranks 8-15")
    assert (
        "node-a: ranks 0-7, node-b: ranks 8-15" in said
        and TRY[kind] in said
        and 'os.environ["NCCL_DEBUG"] = "INFO"' in said
    )
    assert "{" not in said.replace("{medium: Memory}", "").replace('{"pip": [...]}', "")


@pytest.mark.parametrize(("kind", "text"), GLOO)
def test_b5_of_gloo(kind: str, text: str) -> None:
    said = _network_errors.remedy(text, "GLOO", "node-a: rank 0")
    assert _network_errors.library_of(text) == "GLOO" and _network_errors.kind_of(text).name == kind
    assert 'os.environ["GLOO_SOCKET_IFNAME"]' in said and "NCCL" not in said


@pytest.mark.parametrize("text", OTHERS)
def test_others_are_not_meant(text: str) -> None:
    assert _network_errors.library_of(text) == ""


def failure(**changed: object) -> dict:
    return {"traceback": "", "cause": "exit code 1", "log_tail": "", "signal": 0, **changed}


def test_of_a_program_of_its_own_its_last_lines_tell() -> None:
    info = {
        "rank_infos": [
            {"rank": rank, "node_name": f"node-{rank // 2}", "host": f"h{rank // 2}"}
            for rank in range(4)
        ]
    }
    lines = (
        f"Traceback (most recent call last):\ntorch.distributed.DistBackendError: {KNOWN[10][1]}"
    )
    for ended in (failure(log_tail=lines), failure(log_tail=lines, signal=6)):
        assert (
            "RDMA between these hosts, which do not reach each other by it: node-0 (h0): ranks 0, "
            "1, node-1 (h1): ranks 2, 3" in _interface_words.remedy(info, ended)
        )
    assert _interface_words.remedy(info, failure(log_tail=lines, signal=9)) == "", (
        "what the kernel killed did not end of a network"
    )
    assert _interface_words.remedy(info, failure(traceback="KeyError: 'lr'", log_tail=lines)) == ""
