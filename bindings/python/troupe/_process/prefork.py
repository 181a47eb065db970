"""Children of the zygote: forked, made ready, and given what they are to be.

A child has a socket to the zygote. On it comes the worker's ForkRequest, as it was sent, with three
descriptors (control, stdout, stderr); until then the child is parked. One that was forked ahead has
done by then what every process must do: its session and signals, its seeds, the copies of the pages
that a start writes to. What a request says (environment, directory, import path, threads) is
applied when it comes, so a parked child knows nothing of what it will be and no user code has run
in it.

The worker is a child's parent, the zygote is not: what has been given its request lives on without
the zygote. The zygote's end of the socket is the zygote's: a child that is parked ends with it, by
an exit code that tells the worker so, should it have been meant for a request already. The child
sends nothing on it, so that its end, or that of whoever holds it, is all that the zygote can read
there.
"""

from __future__ import annotations

import array
import gc
import os
import socket
import sys
from dataclasses import dataclass
from typing import Any, NoReturn

from troupe._process import bootstrap, finish, os_calls, preimports

DATAGRAM_BYTES_MAX = 1 << 20
SOCKET_BUFFER_BYTES = 4 << 20
PARKED_VARIABLE = "TROUPE_PARKED_PROCESSES"
PARKED_MIN, PARKED_MAX = 6, 16
_FDS = 3  # control, stdout, stderr
# the exit code of a child that had no request: the worker starts its process anew
# (`worker/zygote.h`)
NEVER_GIVEN = 79


def default_count() -> int:
    """How many children are kept: one per CPU within 6 and 16, or what TROUPE_PARKED_PROCESSES
    says."""
    wanted = os.environ.get(PARKED_VARIABLE, "")
    if wanted.isdigit():
        return min(int(wanted), PARKED_MAX)
    return max(PARKED_MIN, min(PARKED_MAX, len(os.sched_getaffinity(0))))


@dataclass(frozen=True)
class Loaded:
    """The state that all children of a zygote share: its import path, and the files of its loaded
    libraries, by name."""

    base_path: list[str]
    libraries: dict[str, str]


class Child:
    """The zygote's side of one child. Main thread only."""

    def __init__(self, pid: int, sock: socket.socket) -> None:
        self.pid = pid
        self.socket = sock
        self.given = False

    def alive(self) -> bool:
        """Return True if the child still waits, as far as its socket says."""
        try:
            return self.socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def give(self, data: bytes, fds: list[int]) -> None:
        """Hands it its request; one that cannot be given it is let go of, and ends: its end
        tells."""
        self.given = True
        try:
            socket.send_fds(self.socket, [data], fds)
        except OSError as error:
            print(
                f"process {self.pid} could not be given its request: {error}",
                file=sys.stderr,
                flush=True,
            )
            self.socket.shutdown(socket.SHUT_RDWR)


def fork(
    native: Any, loaded: Loaded, announce: socket.socket, *, worker: int, ahead: bool
) -> Child:
    """Forks a child that waits for its request; `ahead` of one, it also warms itself up.

    Its parent is the worker, whose process id is `worker` and which is told of it over `announce`.
    Raises OSError when the system refuses.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for each in (ours, theirs):
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_BYTES)
        each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BUFFER_BYTES)
    try:
        pid = native.fork_child(announce.fileno())
    except OSError:
        ours.close()
        theirs.close()
        raise
    if pid == 0:
        _run(native, loaded, theirs.detach(), worker, ahead)
    theirs.close()
    return Child(pid, ours)


def receive(sock: socket.socket) -> tuple[bytes, list[int]]:
    """Return a datagram and its descriptors, which the caller closes; empty when the other end is
    closed."""
    fds = array.array("i")
    data, ancillary, _, _ = sock.recvmsg(
        DATAGRAM_BYTES_MAX, socket.CMSG_SPACE(_FDS * fds.itemsize), socket.MSG_CMSG_CLOEXEC
    )
    for level, kind, raw in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(raw[: len(raw) - len(raw) % fds.itemsize])
    return data, list(fds)


def _run(native: Any, loaded: Loaded, descriptor: int, worker: int, ahead: bool) -> NoReturn:
    try:
        bootstrap.become_child(descriptor, worker)
        finish.forget_inherited()
        gc.enable()
        if ahead:
            _warm_up(native)
            os_calls.set_title("troupe: parked")
        bootstrap.prepare(worker)
        zygote = socket.socket(fileno=descriptor)
        data, fds = receive(zygote)
        if not data:
            os._exit(NEVER_GIVEN)
        request = native.decode_message(data)[1]
        control = bootstrap.take_descriptors(fds)
        if preimports.replaced(loaded.libraries, bootstrap.path_of_program(request)):
            bootstrap.start_anew(control, data)
        bootstrap.apply_request(request, loaded.base_path)
        bootstrap.serve(control, request["kind"], zygote)
    except BaseException as error:
        os.write(2, f"troupe: the process could not start: {error}\n".encode())
    os._exit(70)


class _Sample:
    """A class for the warm-up's pickle."""


def _warm_up(native: Any) -> None:
    """Does once what every start does, so that its pages are this process's own before anyone
    waits.

    A page of the zygote is copied at its first write: measured, a start then takes a third of the
    time. Nothing of it lasts: threads are joined, descriptors closed, the environment is the same.
    """
    import cloudpickle

    from troupe._code import cloudpickle as _cloudpickle
    from troupe._process.channel import ProcessChannel

    os.environ.update(dict(os.environ))
    cloudpickle.loads(_cloudpickle.dumps((_Sample, (), {})))
    ours, theirs = socket.socketpair()
    channel = ProcessChannel(theirs.detach())
    ours.sendall(native.encode_message("ActorBegin", {}, b""))
    channel.first()
    channel.read_on()
    channel.send("ActorReady", {"failed": False})
    channel.finish()
    channel.join()
    ours.close()
