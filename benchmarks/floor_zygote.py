"""The floor of a launch: a bare zygote that forks ranks, with nothing of Troupe in it.

It imports torch once, then forks one rank per request; each rank joins a Gloo group over a store
that the launching process serves, does one all-reduce (or one DDP step) and sends its result
through a pipe. No security, no supervision, no durability, no logs: what the operating system and
torch cost.

Measured by benchmarks/launch.py in the same run as Troupe and torchrun.
"""

import gc
import os
import pickle
import socket
import struct
import sys
import time
from datetime import timedelta

WORK = {"all_reduce", "ddp_step"}


def rank_main(rank: int, world_size: int, port: int, work: str) -> float:
    """Run the work of every rank of every contender: form a group, do the work, return the sum."""
    import torch
    import torch.distributed as dist

    store = dist.TCPStore(
        "127.0.0.1", port, world_size, False, timedelta(seconds=60), wait_for_workers=False
    )
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
    if work == "ddp_step":
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
        optimizer = torch.optim.AdamW(model.parameters())
        model(torch.ones(4, 64)).sum().backward()
        optimizer.step()
    value = torch.ones(1)
    dist.all_reduce(value)
    return float(value)


def child(request: dict, pipe: int) -> None:
    os.environ.update(RANK=str(request["rank"]), WORLD_SIZE=str(request["world_size"]))
    result = rank_main(request["rank"], request["world_size"], request["port"], request["work"])
    payload = pickle.dumps(result)
    os.write(pipe, struct.pack("<I", len(payload)) + payload)
    os._exit(0)


def serve(path: str) -> None:
    import numpy.random  # noqa: F401
    import torch._dynamo
    import torch.distributed
    import torch.nn.parallel

    torch.set_num_threads(1)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen(1)
    gc.collect()
    gc.freeze()
    print("ready", flush=True)
    connection, _ = listener.accept()
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, 1)
        if not message:
            return
        pid = os.fork()
        if pid == 0:
            listener.close()
            connection.close()
            child(pickle.loads(message), descriptors[0])
        os.close(descriptors[0])


class FloorZygote:
    """Drives serve() from the measuring process."""

    def __init__(self, directory: str) -> None:
        import subprocess

        path = os.path.join(directory, "floor.sock")
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, __file__, path], env=environment, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None and self.process.stdout.readline().strip() == "ready"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(path)

    def launch(self, world_size: int, work: str) -> float:
        """Seconds from the request to all results collected."""
        import torch.distributed as dist

        begin = time.perf_counter()
        store = dist.TCPStore(
            "127.0.0.1", 0, world_size, True, timedelta(seconds=60), wait_for_workers=False
        )
        pipes = []
        for rank in range(world_size):
            read_end, write_end = os.pipe()
            request = {"rank": rank, "world_size": world_size, "port": store.port, "work": work}
            socket.send_fds(self.socket, [pickle.dumps(request)], [write_end])
            os.close(write_end)
            pipes.append(read_end)
        for read_end in pipes:
            data = b""
            while chunk := os.read(read_end, 1 << 16):
                data += chunk
            os.close(read_end)
            assert pickle.loads(data[4:]) == world_size
        return time.perf_counter() - begin

    def close(self) -> None:
        self.socket.close()
        self.process.wait(10)


if __name__ == "__main__":
    serve(sys.argv[1])
