"""Ranks of these tests: they wait for each other until some die, and report their state
afterwards."""

from __future__ import annotations

import fcntl
import os
import signal as signals
import socket
import struct
import termios
import threading
import time
from pathlib import Path
from typing import Any

_MESSAGES = 20  # messages of 64 MB: more than any process receives before it is stopped


def reduce_for_ever() -> None:
    """Until a death ends the attempt."""
    import torch
    import torch.distributed as dist

    values = torch.ones(1 << 14)
    while True:
        dist.all_reduce(values)
        values.fill_(1)


def who_am_i(attempt: Any) -> dict:
    """Return this rank's number from each source, and the sum over all that live."""
    import torch
    import torch.distributed as dist

    from troupe.launch import current

    one = torch.ones(1)
    dist.all_reduce(one)
    said = {
        (dist.get_rank(), dist.get_world_size()),
        (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])),
        (current().rank, current().world_size),
        (attempt.rank, attempt.world_size),
    }
    assert len(said) == 1, said
    return {
        "was": current().launch_rank,
        "is": said.pop(),
        "sum": int(one),
        "attempt": attempt.number,
        "epoch": current().group_epoch,
        "launch_epoch": current().epoch,
        "replaces": current().replaces,
        "aborted": attempt.aborted,
        "pid": os.getpid(),
    }


def die(signal: int = 9) -> None:
    os.kill(os.getpid(), signal)


def exchange(operation: str, rank: int, values: Any) -> None:
    """Run the operation among the ranks that live: rank 0 sends to rank 2 and the other one waits
    for the end, or both reduce with it."""
    import torch.distributed as dist

    if operation == "all_reduce":
        for _ in range(_MESSAGES):
            dist.all_reduce(values)
    elif rank == 0 and operation == "send":
        for _ in range(_MESSAGES):
            dist.send(values, 2)
    elif rank == 0:
        for each in [dist.isend(values, 2) for _ in range(_MESSAGES)]:
            each.wait()


def stop_amid_messages(operation: str, values: Any, says: Path) -> None:
    """Begin to take part in `exchange`, write this process's id to `says`, and stop."""
    import torch.distributed as dist

    begun = [
        dist.all_reduce(values, async_op=True)
        if operation == "all_reduce"
        else dist.irecv(values, 0)
        for _ in range(_MESSAGES)
    ]
    says.with_suffix(".new").write_text(str(os.getpid()))
    says.with_suffix(".new").rename(says)
    os.kill(os.getpid(), signals.SIGSTOP)
    raise AssertionError(f"went on with {len(begun)} operations")


def kill_once_stopped(operation: str, says: Path) -> None:
    """Kill the rank of `stop_amid_messages` once it has stopped and this process's connections take
    no more bytes, from a thread of this process. The parts of an all-reduce may fit in whole."""

    def unsent() -> list[int]:
        from troupe._process import gloo_sockets

        none = b"\0" * 4
        return [
            struct.unpack("i", fcntl.ioctl(each.fileno(), termios.TIOCOUTQ, none))[0]
            for _, each in gloo_sockets._sockets()
            if not each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        ]

    def watch() -> None:
        while not says.exists():
            time.sleep(0.01)  # lint-ok: a look at what another rank has written
        pid = int(says.read_text())
        while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            time.sleep(0.01)  # lint-ok: the kernel has no event for a stop of another's child
        before: list[int] = []
        while (now := unsent()) != before or not (any(now) or operation == "all_reduce"):
            before = now
            time.sleep(0.2)  # lint-ok: what the kernel could not send yet stands still
        os.kill(pid, signals.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
