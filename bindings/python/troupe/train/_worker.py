"""A worker of a training: an actor that runs the user's loop in a thread of its own, and carries
its reports to who trains."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import importlib
import os
import socket
import struct
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import troupe
from troupe import _pickled
from troupe._base.identity import boot_id
from troupe._code import user_main
from troupe._process import store_host
from troupe.launch import _parts
from troupe.train import _here, _run_folder
from troupe.train._checkpoint import Checkpoint
from troupe.train._reports import TrainReport

_SIOCGIFADDR = 0x8915


@dataclass(frozen=True)
class TrainAttempt:
    """The data that the workers of one attempt receive: where they meet, the checkpoint they
    continue from, where parts of checkpoints go."""

    address: str
    port: int
    one_host: bool
    backend: str
    timeout_s: float
    start: Checkpoint | None
    staging: str
    nonce: str
    devices: Mapping[int, list[int | str]]
    """rank -> the GPUs that the workers of its node hold, and all of them see."""


class TrainWorker(_here.Loop):
    """A training rank.

    `run` has the default group's thread from the loop's beginning to its end, `next` that of the
    group "control".
    """

    def __init__(self, context: _here.TrainContext) -> None:
        self.context = context
        self._latest: Checkpoint | None = None
        self._attempt: TrainAttempt | None = None
        self._store: Any = None
        self._one_report = threading.Lock()
        self._changed = threading.Condition()
        self._said: TrainReport | None = None  # by the loop, not carried yet
        self._answer: tuple[Checkpoint | None, Exception | None] | None = None
        self._over = False
        self._number = 0

    def __repr__(self) -> str:
        return f"train rank {self.context.world_rank}"

    def about(self) -> dict[str, Any]:
        """Return the host of the worker, and the GPUs it holds.

        Loads torch, in all workers at once, where the process has not been forked with it.
        """
        importlib.import_module("torch.distributed")
        return {
            "host": socket.gethostname(),
            "boot_id": boot_id(),
            "gpus": list(troupe.get_gpu_ids()),
        }

    def serve_store(self, address: str, peers: list[str]) -> int:
        """Serves the store where all ranks meet, on that address alone, for nodes with these
        addresses alone; its port. Rank 0's, in a thread of torch's, as long as the process lives.
        """
        self._store, port = store_host.serve(address, peers)
        return port

    def run(
        self, payload: bytes, attempt: TrainAttempt, own_address: str, shards: Mapping[str, Any]
    ) -> Any:
        """Forms the group and runs the loop to its end; rank 0's value.

        `own_address`: of this node. `shards`: of datasets, by name. Raises what the loop raises.
        """
        self._attempt, self._latest, self.shards = attempt, attempt.start, shards
        _here.enter(self)
        try:
            self._join(attempt, own_address)
            loop, args, _ = user_main.loads(payload)
            with _parts.part(f"{attempt.nonce}.{attempt.port}"):
                value = self._run_loop(loop, args)
            return value if self.context.world_rank == 0 else None
        finally:
            _here.enter(None)
            with self._changed:
                self._over = True
                self._changed.notify_all()

    def _run_loop(self, loop: Any, args: tuple[Any, ...]) -> Any:
        """Run the loop inside the rank's part: one that leaves by `sys.exit(0)` has returned
        None."""
        try:
            return loop(*args)
        except SystemExit as left:
            if left.code not in (None, 0):
                raise RuntimeError(
                    f"the training loop of rank {self.context.world_rank} called "
                    f"sys.exit({left.code!r})"
                ) from None
            return None

    def _join(self, attempt: TrainAttempt, own_address: str) -> None:
        context = self.context
        os.environ.update(
            {
                "RANK": str(context.world_rank),
                "WORLD_SIZE": str(context.world_size),
                "LOCAL_RANK": str(context.local_rank),
                "LOCAL_WORLD_SIZE": str(context.local_world_size),
                "NODE_RANK": str(context.node_rank),
                "GROUP_RANK": str(context.node_rank),
                "MASTER_ADDR": attempt.address,
                "MASTER_PORT": str(attempt.port),
                "TORCHELASTIC_USE_AGENT_STORE": "True",
            }
        )
        interface = "lo" if attempt.one_host else interface_of(own_address)
        if interface:
            os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
            os.environ.setdefault(
                "NCCL_SOCKET_IFNAME", f"={interface}"
            )  # else NCCL takes others whose names begin so as well
        if attempt.devices.get(
            context.world_rank
        ):  # CUDA has not read it yet: all of a node see the same ones, as NCCL wants it
            os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(
                map(str, attempt.devices[context.world_rank])
            )
        import torch
        import torch.distributed as dist

        from troupe.train import _torch_loop

        if attempt.devices.get(context.world_rank) and torch.cuda.is_available():
            _torch_loop.devices = [
                torch.device("cuda", attempt.devices[context.world_rank].index(each))
                for each in troupe.get_gpu_ids()
            ]
            torch.cuda.set_device(_torch_loop.devices[0])
            self.device_index = _torch_loop.devices[0].index
        dist.init_process_group(
            attempt.backend, timeout=datetime.timedelta(seconds=attempt.timeout_s)
        )

    def report(
        self, metrics: dict[str, Any], checkpoint: Checkpoint | None, dir_name: str | None
    ) -> None:
        """See Loop: stages this rank's part, says so, and waits for the answer, which comes when
        all ranks have."""
        with self._one_report:
            self._number += 1
            rank, attempt = self.context.world_rank, self._attempt
            assert attempt is not None
            staged = ""
            if checkpoint is not None:
                with checkpoint.as_directory() as folder:
                    staged = _run_folder.stage(
                        Path(attempt.staging), attempt.nonce, self._number, rank, Path(folder)
                    )
            with self._changed:
                self._said = TrainReport(metrics if rank == 0 else None, staged, dir_name)
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._answer is not None)
                assert self._answer is not None
                latest, error = self._answer
                self._answer = None
            if error is not None:
                raise error
            self._latest = latest if latest is not None else self._latest

    def latest(self) -> Checkpoint | None:
        """See Loop."""
        return self._latest

    @troupe.method(concurrency_group="control")
    def next(self, answer: tuple[Checkpoint | None, Exception | None] | None) -> TrainReport | None:
        """Gives the loop the answer to its report, waits for its next one, and returns that; None:
        the loop is over."""
        with self._changed:
            if answer is not None:
                self._answer = answer
                self._changed.notify_all()
            self._changed.wait_for(lambda: self._said is not None or self._over)
            said, self._said = self._said, None
            return said


def interface_of(address: str) -> str:
    """The name of this host's network interface that has the address; "": it is not known."""
    if ":" in address:
        digits = socket.inet_pton(socket.AF_INET6, address).hex()
        with contextlib.suppress(OSError):
            return next(
                (
                    line.split()[-1]
                    for line in Path("/proc/net/if_inet6").read_text().splitlines()
                    if line.startswith(digits)
                ),
                "",
            )
        return ""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):
                found = fcntl.ioctl(
                    asking.fileno(), _SIOCGIFADDR, struct.pack("256s", name.encode()[:15])
                )
                if socket.inet_ntoa(found[20:24]) == address:
                    return name
    return ""


_pickled.named_in("troupe._pickled", TrainAttempt, TrainWorker)
