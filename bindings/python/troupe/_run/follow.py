"""A node that serves a run: joins the head, works, waits for the marker, and ends as it says.

The head may be up long after this node: it is dialled until `--wait` seconds have passed. A session
that ends is dialled again for `--lost-after` seconds; then nobody knows how the run ended (exit
75).
"""

from __future__ import annotations

import random
import threading
import time
from typing import Any

from troupe import exceptions
from troupe._cluster import session as _session
from troupe._run import node, secret
from troupe._run.lead import claim, resolve
from troupe._run.node import RunOptions, Stopped, say

DIAL_FIRST_S, DIAL_MAX_S = 0.05, 1.0


class WrongCluster(Exception):
    """Somebody else answers at the run's address."""


class NotWanted(Exception):
    """The run has no place for this node."""


def follow(options: RunOptions, derived: secret.Derived) -> int:
    """Serves the run from this node; its exit code."""
    programs = node.Programs()
    try:
        return _Follower(options, derived, programs).run()
    except WrongCluster as error:
        say(str(error))
        return node.EXIT_WRONG_CLUSTER
    except NotWanted as error:
        say(str(error))
        return node.EXIT_USAGE
    except Stopped as stopped:
        say(f"{options.node_name} leaves the run at {stopped.name}; the run goes on without it")
        return node.EXIT_CANCELLED
    finally:
        programs.close()


class _Follower:
    def __init__(
        self, options: RunOptions, derived: secret.Derived, programs: node.Programs
    ) -> None:
        self._options = options
        self._derived = derived
        self._programs = programs
        self._port = options.place.port or derived.port
        self._pause = threading.Event()
        self._rank = options.place.rank
        self._claimed = False
        self._name = options.node_name  # the head may give it another one
        self._last_error = ""

    @property
    def _where(self) -> str:
        return f"{self._options.place.host}:{self._port}"

    def run(self) -> int:
        """Everything, in order."""
        found = self._dial(self._options.wait_s)
        if found is None:
            say(
                f"nobody leads at {self._where}: no answer within {self._options.wait_s:g} s "
                f"({self._last_error})\n"
                f"  node 0 was to lead ({self._options.place.source}); how the run ended is unknown"
            )
            return node.EXIT_UNKNOWN
        try:
            while True:
                session, info = found
                try:
                    if info["state"] != "terminal":
                        self._take_part(session, info)
                    return self._serve(session, info)
                except exceptions.ConnectionError as error:  # while it was joining
                    self._last_error = str(error).splitlines()[0]
                    found = self._dial_again(session, info["launch"])
                    if found is None:
                        return node.EXIT_UNKNOWN
        finally:
            self._programs.end_worker()

    # ---- reaching the head ----

    def _dial(self, seconds: float) -> tuple[_session.Session, dict[str, Any]] | None:
        """A session and the run's record, tried until `seconds` have passed."""
        deadline, pause = time.monotonic() + seconds, DIAL_FIRST_S
        while True:
            try:
                return self._open()
            except exceptions.JoinError as error:
                raise WrongCluster(f"{self._where} is not the head of this run: {error}") from None
            except (exceptions.ConnectionError, exceptions.GetTimeoutError, OSError) as error:
                self._last_error = str(error).splitlines()[0]
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            # Nothing tells that a port of another host has opened: it is dialled, at growing
            # distances.
            self._pause.wait(min(left, pause * random.uniform(0.5, 1.0)))
            pause = min(2 * pause, DIAL_MAX_S)

    def _open(self) -> tuple[_session.Session, dict[str, Any]]:
        from troupe._base.bridge import native

        control = native.ControlClient.connect(
            resolve(self._options.place.host), self._port, token=self._derived.client_token
        )
        session = _session.Session.over_client(control, namespace="")
        try:
            for launch in session.request("ListLaunches", {})[1]["launches"]:
                if launch["mode"] == "command":
                    info = session.request("WatchLaunch", {"launch": launch["launch"]})[1]["info"]
                    session.board.post_reply("launch", info["launch"], info)
                    return session, info
        except BaseException:
            session.close()
            raise
        session.close()
        raise exceptions.ConnectionError("the head is up and its run not yet")

    # ---- a place in it ----

    def _take_part(self, session: _session.Session, info: dict[str, Any]) -> None:
        """Takes a rank and joins; what was done before the head was lost is not done again."""
        if not self._claimed:
            self._claim(session, info)
            self._claimed = True
        if self._programs.worker is None:
            self._name = self._join()
        node.note_joined(
            session, info["launch"], self._rank or 0, {**claim(self._options), "name": self._name}
        )
        say(f"{self._name} joined {self._where} as node {self._rank} of {info['ranks']}")

    def _claim(self, session: _session.Session, info: dict[str, Any]) -> None:
        count = info["ranks"]
        ranks = range(1, count) if self._rank is None else [self._rank]
        held: list[str] = []
        for rank in ranks:
            other = node.claim_rank(session, info["launch"], rank, lambda: claim(self._options))
            if other is None or _is_mine(other, claim(self._options)):
                self._rank = rank
                return
            held.append(
                f"  node {rank} is {other['name']} (host {other['host']}, pid {other['pid']})"
            )
        if self._rank is None:
            raise NotWanted(
                "\n".join(
                    [
                        f"all {count} nodes of the run at {self._where} are there already; this "
                        "one, "
                        f"{self._options.node_name}, is one too many and leaves",
                        *held,
                    ]
                )
            )
        raise NotWanted(
            "\n".join(
                [
                    f"two nodes say they are node {self._rank} ({self._options.place.source}); "
                    "this one, "
                    f"{self._options.node_name}, came second and leaves",
                    *held,
                ]
            )
        )

    def _join(self) -> str:
        """Starts the worker; the name the head gave it."""
        args = list(self._options.node_args)
        if self._options.listen:
            args.append(f"--listen={self._options.listen}")
        with secret.TokenFile(self._derived.worker_token) as token:
            worker = self._programs.start_worker(
                f"{resolve(self._options.place.host)}:{self._port}", args, token.path
            )
        return str(worker.ready.get("name", self._options.node_name))

    # ---- until the marker ----

    def _serve(self, session: _session.Session, info: dict[str, Any]) -> int:
        launch = info["launch"]
        while True:
            end = self._await_end(session, launch)
            if end is not None:
                node.ignore_signals()
                node.say_marker(end)
                session.close()  # the head stays until every node has said so
                value: int = end["exit_code"]
                return value
            found = self._dial_again(session, launch)
            if found is None:
                return node.EXIT_UNKNOWN
            session, info = found

    def _dial_again(
        self, session: _session.Session, launch: str
    ) -> tuple[_session.Session, dict[str, Any]] | None:
        """A session and the record of the same run after one was lost; None, said, when the head is
        not back in time."""
        session.close()
        say(f"lost the head at {self._where}; dialling it for {self._options.lost_after_s:g} s")
        found = self._dial(self._options.lost_after_s)
        if found is None:
            say(
                f"the head at {self._where} could not be reached for "
                f"{self._options.lost_after_s:g} s "
                f"({self._last_error}): how the run ended is unknown"
            )
        elif found[1]["launch"] != launch:
            raise WrongCluster(
                f"another run is led at {self._where} now: how this one ended is unknown"
            )
        return found

    def _await_end(self, session: _session.Session, launch: str) -> dict[str, Any] | None:
        """The run's end, or None when the session ended first."""
        watch = node.Watch(session, launch)
        worker: Any = self._programs.worker
        if worker is not None and worker.process.poll() is None:
            watch.process(worker.pid, "worker")
        try:
            while True:
                end = node.terminal(session, launch)
                if end is not None or session.closed:
                    return end
                if "worker" in watch.next():
                    self._note_worker(session, launch)
        finally:
            watch.close()

    def _note_worker(self, session: _session.Session, launch: str) -> None:
        if node.terminal(session, launch) is None and not session.closed:
            say(
                "this node's worker ended; the run goes on without "
                f"it\n{self._programs.last_words('worker')}"
            )


def _is_mine(holder: dict[str, Any], mine: dict[str, Any]) -> bool:
    """Return True if a claim is this process's own, made before the head was lost without an
    answer."""
    return all(holder.get(field) == mine[field] for field in ("host", "pid"))
