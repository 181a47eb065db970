"""Other ways to call an actor's method that takes nothing, on one machine, as
jobs/ray_compare_program.py calls Troupe's and Ray's.

Run by ray_compare.py: `ray_compare_peers.py graph|rpc|monarch SECONDS ROW`; prints one JSON object
of rates. `graph`: Ray's compiled graph of one actor's method; one call at a time, as it is made
for. `rpc`: torch.distributed.rpc between two processes. `monarch`: an endpoint of an actor of
torchmonarch, in a process of its own.
"""

import json
import multiprocessing
import socket
import sys

from report import rate

SYNC, ASYNC = "1:1 actor calls sync", "1:1 actor calls async"
BATCH = 1000


def graph(seconds: float, row: str) -> float:
    """Ray's compiled graph."""
    import ray
    from ray.dag import InputNode

    @ray.remote(num_cpus=0)
    class Actor:
        def small_value(self, _: bytes) -> bytes:
            return b"ok"

    ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False)
    actor = Actor.remote()
    with InputNode() as given:
        compiled = actor.small_value.bind(given).experimental_compile()
    measured = rate(lambda: ray.get(compiled.execute(b"")), 1, seconds)
    compiled.teardown()
    ray.shutdown()
    return measured


def small_value() -> bytes:
    """Return a small value, for rpc calls."""
    return b"ok"


def join(rank: int, port: int) -> None:
    """Becomes one of two processes of torch.distributed.rpc."""
    from torch.distributed import rpc

    options = rpc.TensorPipeRpcBackendOptions(init_method=f"tcp://127.0.0.1:{port}")
    rpc.init_rpc(f"process{rank}", rank=rank, world_size=2, rpc_backend_options=options)


def serve(port: int) -> None:
    """The process that is called."""
    from torch.distributed import rpc

    join(1, port)
    rpc.shutdown()


def rpc(seconds: float, row: str) -> float:
    """torch.distributed.rpc."""
    from torch.distributed import rpc as torch_rpc

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    other = multiprocessing.get_context("spawn").Process(target=serve, args=(port,))
    other.start()
    join(0, port)

    def batch() -> None:
        for answer in [torch_rpc.rpc_async("process1", small_value) for _ in range(BATCH)]:
            answer.wait()

    measured = (
        rate(batch, BATCH, seconds)
        if row == ASYNC
        else rate(lambda: torch_rpc.rpc_sync("process1", small_value), 1, seconds)
    )
    torch_rpc.shutdown()
    other.join()
    return measured


def monarch(seconds: float, row: str) -> float:
    """An actor of torchmonarch."""
    from monarch.actor import Actor, endpoint, this_host

    class Small(Actor):
        @endpoint
        async def small_value(self) -> bytes:
            return b"ok"

    actor = this_host().spawn_procs(per_host={"gpus": 1}).spawn("small", Small)

    def batch() -> None:
        for answer in [actor.small_value.call_one() for _ in range(BATCH)]:
            answer.get()

    return (
        rate(batch, BATCH, seconds)
        if row == ASYNC
        else rate(lambda: actor.small_value.call_one().get(), 1, seconds)
    )


if __name__ == "__main__":
    which, wanted = {"graph": graph, "rpc": rpc, "monarch": monarch}[sys.argv[1]], sys.argv[3]
    print(json.dumps({wanted: which(float(sys.argv[2]), wanted)}), flush=True)
