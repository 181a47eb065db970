"""Makes a fresh process a rank, an actor or a store: one path after fork and after exec.

`become_child` and `take_descriptors` are what only a forked child needs (death signal, session,
descriptors, stdio). `prepare` (streams, seeds, who may read it) and then `apply_request`
(environment, directory, import path, threads) are what both need. Then `serve` reads the first
message of the control channel and becomes what it says.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from troupe._base import identity as _identity
from troupe._code import runtime_env
from troupe._process import main_imports, os_calls, threads
from troupe._tracing import record

if TYPE_CHECKING:
    from troupe._process.channel import ProcessChannel

# The kernel's OOM score adjustment of all processes that run user code, so that it kills the
# largest of them; a half of the memory there is.
OOM_SCORE = 500


def become_child(keep: int, worker: int) -> None:
    """First steps of a forked child of `worker`; of the descriptors, only stdio and `keep` stay.

    Order matters: the death signal first, then the check that the worker did not end before it.
    """
    os_calls.die_with_parent()
    if os.getppid() != worker:
        os._exit(1)
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os_calls.close_all_but({0, 1, 2, keep})
    os.set_inheritable(keep, False)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL if number != signal.SIGPIPE else signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def prepare(worker: int) -> None:
    """Set up the parts of a process that no request changes: its streams, faulthandler, seeds, its
    reader.

    `worker`: its process id. `troupe stack` reads from a child of the worker.
    """
    os_calls.let_read(worker)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(  # type: ignore[union-attr]  # both are Python's own here
            line_buffering=True, errors="backslashreplace"
        )
    faulthandler.enable()
    _seed()


def take_descriptors(fds: list[int]) -> int:
    """Puts stdout and stderr in their places; returns the control descriptor."""
    control, out, err = fds
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.close(out)
    os.close(err)
    os.set_inheritable(control, False)
    return control


def apply_request(request: dict[str, Any], base_path: list[str]) -> None:
    """Environment, working directory, import path, affinity, title, threads of a ForkRequest; and
    who goes first where memory runs out: not the worker, the zygote, what is parked or a store,
    without which others could not go on.

    `base_path` is the sys.path of the interpreter, which has no folder of the program. What is
    loaded already is told how many threads it has (`_process.threads`): it has read its own
    environment.
    """
    os.environ.clear()
    os.environ.update({item["name"]: item["value"] for item in request["env"]})
    runtime_env.begin()
    _enter_directory(request["working_directory"])
    program = path_of_program(request)
    sys.path[:] = program + [entry for entry in base_path if entry not in program]
    sys.argv[:] = ["troupe"]  # until the program's own are there
    if request["kind"] != "store":
        os_calls.raise_oom_score(OOM_SCORE)
        main_imports.watch_pools()
    if request["cpus"]:
        os.sched_setaffinity(0, request["cpus"])
    os_calls.set_title(request["title"] or f"troupe: {request['kind']}")
    threads.follow(os.environ, request["threads"])


def _enter_directory(path: str) -> None:
    """The caller's directory where this host has it; else a line that says so, and where it is."""
    try:
        os.chdir(path or "/")
    except OSError as error:
        os.chdir("/")
        os.write(
            2,
            f"troupe: the caller's directory {path} is not on this host ({error.strerror}); "
            "running in /\n".encode(),
        )


def _seed() -> None:
    """A fork copies the generators' states: without this every rank would draw the same numbers."""
    import random

    random.seed()
    if "numpy.random" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()


def path_of_program(request: dict[str, Any]) -> list[str]:
    """Return the import path of a request's program: the caller's, or the working directory, and
    PYTHONPATH. Empty for a store, which runs none."""
    if request["kind"] == "store":
        return []
    directory = request["working_directory"] if os.path.isdir(request["working_directory"]) else "/"
    variable = next((each["value"] for each in request["env"] if each["name"] == "PYTHONPATH"), "")
    folders = [os.path.join(directory, entry) for entry in variable.split(os.pathsep) if entry]
    return list(
        dict.fromkeys([*(request["import_path"] or [directory]), *map(os.path.normpath, folders)])
    )


def start_anew(control: int, request: bytes) -> NoReturn:
    """Execute a fresh interpreter in this process's place, which becomes what the ForkRequest frame
    `request` says. It keeps its process id."""
    kept = os.memfd_create("request", 0)
    os.write(kept, request)
    os.lseek(kept, 0, os.SEEK_SET)
    os.set_inheritable(control, True)
    os.execv(
        sys.executable,
        [
            sys.executable,
            "-P",
            "-m",
            "troupe._process",
            "--fd",
            str(control),
            "--request-fd",
            str(kept),
        ],
    )


def serve(control_fd: int, kind: str, zygote: socket.socket) -> NoReturn:
    """Becomes what the first message on the control channel says; leaves by os._exit.

    An actor keeps the socket to the zygote until it is ready for calls: its end says so.
    """
    from troupe._process.channel import ProcessChannel

    channel = ProcessChannel(control_fd)
    if kind == "actor":
        channel.when_started(zygote.close)
    else:
        zygote.close()
    become(channel, kind)


def _label(first: str, begin: dict[str, Any]) -> dict[str, Any]:
    """Say what the process of this first message is, for who reads its spans."""
    common = {"launch": begin["launch"], "cluster": begin["cluster_id"], "node": begin["node_name"]}
    if first == "ActorBegin":
        kind = {"kind": "actor", "name": begin["class_name"], "actor": begin["actor"]}
    else:
        kind = {"kind": "rank", "name": begin["name"], "rank": begin["rank"]}
    return {**common, **kind}


def become(channel: ProcessChannel, kind: str) -> NoReturn:
    """Runs the process's role to its end. Any error of ours ends it with a text and code 70."""
    from troupe._cluster import session
    from troupe._process import exit as _leave

    session.refusal = ""  # the process will be in a cluster, or needs none
    try:
        if kind == "store":
            from troupe._process import store_host

            channel.read_on()
            store_host.run(channel)
        first, fields, attachment = channel.first()
        record.open_of_process(_label(first, fields))
        _identity.placed_on(fields["boot_id"])
        channel.read_on()
        if first == "RankBegin" and fields["mode"] == "driver" and fields["rank"] == 0:
            from troupe._process import driver

            driver.run(channel, fields, attachment)
        elif first == "RankBegin":
            from troupe._process import rank

            rank.run(channel, fields, attachment)
        elif first == "ActorBegin":
            from troupe._process import actor

            actor.run(channel, fields, attachment)
        else:
            raise RuntimeError(
                f"the worker's first message is {first}, not RankBegin or ActorBegin"
            )
    except (
        BaseException
    ) as error:  # the process has no one to raise to; its stderr is what people read
        from troupe._process import stopping

        if (
            stopping.verdict_on(error) is not None
        ):  # a process that was stopped before it ran any of the program has nothing to report
            import traceback

            traceback.print_exc()
        _leave.leave(70)
    _leave.leave(0)
