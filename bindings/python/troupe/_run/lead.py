"""The node that leads a run: head, its own worker, the command, and the marker that ends the run
everywhere.

head up, worker joined --> record submitted, driver's lease taken --> N nodes there --> command runs
--> its end is the marker --> the other nodes' programs have seen it and left --> worker and head
end
"""

from __future__ import annotations

import ipaddress
import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from typing import Any

from troupe import exceptions
from troupe._base.identity import new_id
from troupe._cluster import connect, executables, session as _session
from troupe._process import os_calls
from troupe._run import node, secret
from troupe._run.node import RunOptions, Stopped, say
from troupe._wire import FailureKind

LINGER_S = 10.0  # for the other nodes to learn how it ended
NAMED_MAX = 16


class PortTaken(Exception):
    """Somebody else listens at the run's address."""


def lead(options: RunOptions, derived: secret.Derived | None) -> int:
    """Runs the run from this node; its exit code.

    Raises PortTaken, and what keeps a head from starting.
    """
    programs = node.Programs()
    try:
        return _Leader(options, derived, programs).run()
    finally:
        programs.close()


class _Leader:
    def __init__(
        self, options: RunOptions, derived: secret.Derived | None, programs: node.Programs
    ) -> None:
        self._options = options
        self._derived = derived
        self._programs = programs
        self._place = options.place
        self._started = time.monotonic()
        self._launch = ""
        self._address = ""
        self._session: _session.Session

    def run(self) -> int:
        """Everything, in order."""
        self._start()
        session = self._session
        try:
            self._submit()
            try:
                late = self._await_nodes()
                code = self._give_up(late) if late else self._run_command()
            except Stopped as stopped:
                code = self._cancelled(f"{stopped.name} on {self._options.node_name}")
            node.ignore_signals()
            self._linger()
            return code
        except exceptions.ConnectionError as error:
            say(
                "the head ended; how the run ended is unknown: "
                f"{error}\n{self._programs.last_words('head')}"
            )
            return node.EXIT_UNKNOWN
        finally:
            session.close()

    # ---- start ----

    def _start(self) -> None:
        alone = self._place.nodes == 1
        listen = (
            "127.0.0.1"
            if alone and not self._options.listen
            else self._options.listen or own_address(self._place.host)
        )
        args = [f"--listen={listen}", f"--port={self._port()}", *self._options.head_args]
        if self._derived is not None:
            args += [
                f"--run_secret_file={os.path.abspath(self._options.secret_file)}",
                f"--run={self._place.run}",
            ]
        try:
            head = self._programs.start_head(args)
        except exceptions.TroupeError as error:
            raise self._explained(error) from None
        self._address = str(head.ready["address"])
        args = list(self._options.node_args)
        if not alone:
            args.append(f"--listen={listen if listen != '0.0.0.0' else outward_address()}")
        self._programs.start_worker(f"unix:{head.ready['socket']}", args)
        self._session = connect.connect(f"unix:{head.ready['socket']}")

    def _port(self) -> int:
        if self._place.port:
            return self._place.port
        return self._derived.port if self._derived is not None else 0

    def _explained(self, error: exceptions.TroupeError) -> BaseException:
        if isinstance(error, exceptions.AlreadyExistsError):
            return PortTaken(str(error))
        if not may_lead(self._options.listen or self._place.host, 0):
            return exceptions.ConnectionError(
                f"this is node 0 ({self._place.source}), but {self._place.host} is no address of "
                f"this host: {error}\n"
                "  give the address of this host on every node: troupe run --address HOST:PORT ..."
            )
        return error

    def _submit(self) -> None:
        spec = {
            "name": shlex.join(self._options.command)[:200],
            "mode": "command",
            "ranks": self._place.nodes,
            "attempts_max": 1,
            "detached": True,
        }  # the head ends with this process: then nobody can tell
        accepted = self._session.request("SubmitLaunch", {"spec": spec, "request": new_id()})[1]
        self._launch = accepted["launch"]
        lease = {"launch": self._launch, "epoch": 1, "nonce": new_id()}
        self._session.request("AcquireDriver", lease)
        node.claim_rank(self._session, self._launch, 0, lambda: claim(self._options))

    # ---- nodes ----

    def _await_nodes(self) -> str:
        """Waits until all nodes are there; when they are not in time, who is missing."""

        def settled(info: dict[str, Any]) -> bool:
            return info["state"] in ("running", "terminal")

        if self._place.nodes > 1:
            say(
                f"{self._options.node_name} leads at {self._address}; waiting for "
                f"{self._place.nodes - 1} more "
                f"node{'s' * (self._place.nodes > 2)}"
            )
        try:
            self._session.board.wait("launch", self._launch, settled, self._options.wait_s)
        except TimeoutError:
            return self._missing()
        say(
            f"{self._options.node_name} leads at {self._address} · {self._place.nodes} of "
            f"{self._place.nodes} nodes in "
            f"{time.monotonic() - self._started:.1f} s · running "
            f"{shlex.join(self._options.command)}"
        )
        return ""

    def _missing(self) -> str:
        lines = []
        alive = {
            each["name"]
            for each in self._session.request("GetStatus", {})[1]["nodes"]
            if each["state"] == "alive"
        }
        missing = 0
        for rank in range(1, self._place.nodes):
            claimed = node.claim_of(self._session, self._launch, rank)
            if claimed is not None and claimed.get("joined") and claimed["name"] in alive:
                continue
            missing += 1
            if missing > NAMED_MAX:
                continue
            lines.append(
                f"  {self._place.name_of(rank)}: "
                + (
                    "never came"
                    if claimed is None
                    else f"{claimed['name']} (pid {claimed['pid']}) asked to join "
                    + ("and is gone" if claimed.get("joined") else "and has not joined")
                )
            )
        if missing > NAMED_MAX:
            lines.append(f"  and {missing - NAMED_MAX} more")
        head = (
            f"{missing} of {self._place.nodes} nodes did not come within {self._options.wait_s:g} "
            "s, counted from "
            "the start of the head"
        )
        return "\n".join([head, *lines])

    def _give_up(self, text: str) -> int:
        return self._complete("failed", node.EXIT_FAILED, text, FailureKind.NOT_STARTED)

    # ---- command ----

    def _run_command(self) -> int:
        command = list(self._options.command)
        if shutil.which(command[0]) is None:
            there = os.path.exists(command[0]) and not os.access(command[0], os.X_OK)
            why = "it is not executable" if there else "there is no such program"
            return self._complete(
                "failed",
                126 if there else 127,
                f"{command[0]} cannot be run: {why}",
                FailureKind.NOT_STARTED,
            )
        os_calls.adopt_orphans()
        process = self._programs.start_command(command, self._environment())
        watch = node.Watch(self._session, self._launch)
        watch.process(process.pid, "command")
        for started, name in ((self._programs.head, "head"), (self._programs.worker, "worker")):
            if started is not None:
                watch.process(started.pid, name)
        try:
            return self._follow(process, watch)
        except Stopped as stopped:
            self._end(process, stopped.number)
            return self._cancelled(f"{stopped.name} on {self._options.node_name}")
        finally:
            self._end(process, signal.SIGTERM)
            watch.close()

    def _follow(self, process: subprocess.Popen[bytes], watch: node.Watch) -> int:
        while True:
            ended = watch.next()
            if "command" in ended:
                return self._ended(process.wait())
            if "head" in ended or self._session.closed:
                self._end(process, signal.SIGTERM)
                raise exceptions.ConnectionError("its process is gone")
            if "worker" in ended:
                say(
                    "this node's worker ended; the run goes on without its "
                    f"resources\n{self._programs.last_words('worker')}"
                )
            info = node.terminal(self._session, self._launch)
            if info is not None:  # somebody cancelled it
                self._end(process, signal.SIGTERM)
                node.say_marker(info)
                found: int = info["exit_code"]
                return found

    def _environment(self) -> dict[str, str]:
        head = self._programs.head
        address = f"unix:{head.ready['socket']}" if head is not None else ""
        return {
            **executables.environment(),
            "TROUPE_ADDRESS": address,
            "RAY_ADDRESS": address,
            "TROUPE_RUN_NODES": str(self._place.nodes),
            "TROUPE_RUN_LAUNCH": self._launch,
        }

    def _end(self, process: subprocess.Popen[bytes], number: int) -> None:
        """Ends the command and what it left behind, except head and worker."""
        keep = {
            each.pid for each in (self._programs.head, self._programs.worker) if each is not None
        }
        if process.poll() is None:
            # Ctrl-C on a terminal has reached the command by itself; its keeper passes SIGTERM on.
            if number != signal.SIGINT or not os.isatty(0):
                process.send_signal(signal.SIGTERM)
            if not executables.wait([process], self._options.grace_s):
                say(
                    f"the command did not end within {self._options.grace_s:g} s of "
                    f"{signal.Signals(number).name}: killed"
                )
                process.kill()
                process.wait()
        os_calls.kill_children(keep)

    def _ended(self, status: int) -> int:
        if status == 0:
            return self._complete("succeeded", 0)
        if status > 0:
            return self._complete(
                "failed",
                status,
                f"{self._options.command[0]} exited with {status}",
                FailureKind.EXITED,
            )
        name = signal.Signals(-status).name
        return self._complete(
            "failed",
            128 - status,
            f"{self._options.command[0]} was killed by {name}",
            FailureKind.KILLED,
        )

    # ---- end ----

    def _complete(self, outcome: str, code: int, cause: str = "", kind: str = "") -> int:
        fields: dict[str, Any] = {
            "launch": self._launch,
            "epoch": 1,
            "request": new_id(),
            "outcome": outcome,
            "exit_code": code,
        }
        if cause:
            fields["failure"] = {
                "kind": kind,
                "cause": cause,
                "exit_code": code,
                "host": self._options.node_name,
            }
        marker = self._session.request("Complete", fields)[1]["marker"]
        node.say_marker(marker)
        found: int = marker["exit_code"]
        return found

    def _cancelled(self, reason: str) -> int:
        info = self._session.request(
            "CancelLaunch", {"launch": self._launch, "hard": True, "reason": reason}
        )[1]["info"]
        node.say_marker(info)
        found: int = info["exit_code"]
        return found

    def _linger(self) -> None:
        """The head stays until the other nodes' programs have seen the marker and left."""
        try:
            self._session.board.wait(
                "launch",
                self._launch,
                lambda info: info["state"] == "terminal" and info["watchers"] <= 1,
                LINGER_S,
            )
        except TimeoutError:
            say(f"not every node has confirmed the marker within {LINGER_S:g} s")


def claim(options: RunOptions) -> dict[str, Any]:
    """Return the record that a node writes when it takes its rank."""
    return {
        "name": options.node_name,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "since": time.time(),
    }


# ---- addresses ----


def resolve(host: str) -> str:
    """The numeric address of a name; raises OSError. One that is not loopback is preferred."""
    found = [entry[4][0] for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]
    return str(
        next((each for each in found if not ipaddress.ip_address(each).is_loopback), found[0])
    )


def own_address(host: str) -> str:
    """Return the address on which a leader listens whose nodes dial `host`."""
    try:
        address = resolve(host)
    except OSError as error:
        raise exceptions.ConnectionError(
            f"the address of node 0, {host}, cannot be resolved: {error}"
        ) from None
    # Debian's own name of a host is 127.0.1.1 to itself; others resolve it to what they can reach.
    named = host not in ("localhost", address)
    return "0.0.0.0" if ipaddress.ip_address(address).is_loopback and named else address


def outward_address() -> str:
    """This host's address on the way out; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


def may_lead(host: str, port: int) -> bool:
    """Return True if `host:port` is this host's and free: among nodes without a known rank, that
    one leads."""
    try:
        address = own_address(host)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address, port))
            return True
    except (OSError, exceptions.ConnectionError):
        return False
