"""LaunchHandle: what `submit` returns."""

from __future__ import annotations

import signal
import time
import weakref
from collections.abc import Iterator
from typing import Any

from troupe import _pickled, exceptions
from troupe._base import checks as _checks, visible as _visible
from troupe._base.identity import short
from troupe._cluster import resources, session as _session
from troupe._typed import ElementT, LaunchOf
from troupe.launch._large_result import KeptValue


class LaunchHandle(LaunchOf[ElementT]):
    """A launch, seen from the process that submitted it. Methods may be called from any thread."""

    def __init__(
        self,
        session: _session.Session,
        launch: str,
        *,
        waiting_for: str = "",
        returns: int | None = None,
        stop_grace: float = 10.0,
        ends_with_program: bool = False,
        tracked: Any = None,
    ) -> None:
        self.id = launch
        self._tracked = tracked  # run in MLflow
        self.stop_grace = stop_grace
        self.ends_with_program = ends_with_program  # submitted here, and not detached
        self.session = session
        self.waiting_for = waiting_for
        session.follow("launch", launch, session.returns if returns is None else returns)
        weakref.finalize(self, session.board.leave, "launch", launch).atexit = False
        self._values: list[ElementT] | None = None
        if waiting_for:  # no push says so: nothing has changed
            info = session.request("GetLaunch", {"launch": launch})[1]["info"]
            session.board.post_reply("launch", launch, info)

    def __repr__(self) -> str:
        entry = self.session.board.get("launch", self.id)
        return f"<launch {short(self.id)} {entry[0]['state'] if entry else 'submitted'}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.launch_handle, (self.id,)

    def done(self) -> bool:
        """Return True if the launch has ended: succeeded, failed or cancelled. Does not block."""
        entry = self.session.board.get("launch", self.id)
        return entry is not None and entry[0]["state"] == "terminal"

    def wait_state(self, accept: Any, timeout: float | None = None) -> dict[str, Any]:
        """Blocks until the launch's state satisfies `accept(info)`; raises TimeoutError."""
        return self.session.board.wait("launch", self.id, accept, timeout)[0]

    def wait_end(self, timeout: float | None = None) -> dict[str, Any]:
        """Wait for the marker, and return the LaunchInfo; raises TimeoutError. Blocks."""
        return self.wait_state(lambda info: info["state"] == "terminal", timeout)

    def result(self, timeout: float | None = None) -> list[ElementT]:
        """Waits for the marker and returns the results by rank; of one that died, and that the
        launch went on without, a troupe.train.RankLost.

        Raises LaunchError (also an instance of the failing rank's exception type),
        LaunchCancelledError, GetTimeoutError when `timeout` seconds pass first (the launch goes on)
        or the launch's own timeout cancelled it, ConnectionError when the cluster cannot be reached
        (which says nothing about the launch's outcome).
        """
        info = self.succeeded(timeout)
        if self._values is None:
            self._values = self._fetch(info)
        return list(self._values)

    def succeeded(self, timeout: float | None = None) -> dict[str, Any]:
        """Waits for the marker, raises what `result` does, and fetches no values; returns the
        LaunchInfo."""
        started = time.monotonic()
        try:
            info = self.wait_end(timeout)
        except TimeoutError:
            raise exceptions.GetTimeoutError(
                f"launch {short(self.id)} has not ended after {time.monotonic() - started:.1f} s; "
                "it goes on: call result() again, or cancel()"
            ) from None
        self.settle()
        if info["outcome"] != "succeeded":
            from troupe.launch import _errors

            raise _errors.of_launch(self, info)
        return info

    def settle(self) -> None:
        """Once it has ended: returns when its run in MLflow, if it has one, has too; 10 s at most,
        which are said."""
        if self._tracked is not None:
            self._tracked.settle()

    def _fetch(self, info: dict[str, Any]) -> list[Any]:
        import cloudpickle

        if info["mode"] == "driver":
            first = cloudpickle.loads(self.raw_result(0))
            if isinstance(first, KeptValue):
                first = cloudpickle.loads(first.fetch(self.session))
            return [first] + [None] * (info["ranks"] - 1)
        lost: dict[int, Any] = {}
        if info["on_rank_death"] != "fail":
            from troupe.launch import _lost

            lost = {each["rank"]: _lost.of_info(each) for each in info["rank_infos"]}
        return [
            lost.get(rank) or cloudpickle.loads(self.raw_result(rank))
            for rank in range(info["ranks"])
        ]

    def raw_result(self, rank: int) -> bytes:
        """A rank's pickled value or exception; b"" where it left none."""
        _, result, data = self.session.request("GetResult", {"launch": self.id, "rank": rank})
        if not result["kept_by"]:
            return data
        from troupe._cluster import blobs

        return blobs.get(
            self.session,
            result["kept_by"],
            result["sha256"],
            result["size_bytes"],
            what=f"the result of rank {rank} (the launch succeeded)",
        )

    def cancel(self, reason: str = "cancel() was called", *, grace: float | None = None) -> None:
        """Cancels the launch and returns when it has ended.

        A marker already there stands.

        The code of its ranks gets SIGTERM (SystemExit in the main thread, unless it has a handler)
        and has `grace` seconds, by default the launch's `stop_grace`, before SIGKILL. 0: at once.
        """
        self.stop(reason, grace=grace)
        self.wait_end()
        self.settle()

    def stop(self, reason: str, *, grace: float | None = None, by: int = signal.SIGTERM) -> None:
        """Cancel the launch without waiting for its end. A second call can only shorten the
        grace."""
        if grace is not None and (
            isinstance(grace, bool) or not isinstance(grace, (int, float)) or not grace >= 0
        ):
            raise ValueError(f"grace must be at least 0 seconds, not {grace!r}")
        self.session.request(
            "CancelLaunch",
            {
                "launch": self.id,
                "hard": True,
                "reason": reason,
                "signal": int(by),
                "grace_ms": -1 if grace is None else round(min(grace, _checks.GRACE_MAX_S) * 1000),
            },
        )

    def status(self) -> dict[str, Any]:
        """The launch as a dict: state, outcome, epoch, ranks with their nodes, what it waits for.

        `state` is "queued", "reserving", "starting", "running" or "stopping", and once it has ended
        its outcome: "succeeded", "failed" or "cancelled". `ready_s` and `duration_s` are seconds;
        of `resources_per_rank`, CPU and GPU are counts and memory is bytes. `inherited_env` lists
        the caller's variables that travelled, `not_inherited_env` those of its variables that did
        not; `environment` is all that came along, by the rule of docs/guides/runtime_env.md,
        without values. `differences`: a row for each library whose version is another on some node
        than here; `slow_paths`: one for each path between its ranks that is slower than it need be
        (docs/guides/networks.md).
        """
        _, update, _ = self.session.request("GetLaunch", {"launch": self.id})
        return {
            **describe(update["info"]),
            "differences": self.differences(update["info"]),
            "slow_paths": self.slow_paths(update["info"]),
        }

    def differences(self, info: dict[str, Any]) -> list[str]:
        """Return a row for Python and each main library whose version on nodes of the launch
        differs from the one here."""
        from troupe._cluster import versions
        from troupe._code import travelled

        names = {each["node"]: each["node_name"] for each in info["rank_infos"]}
        if self.session.embedded is not None or not names:
            return []
        own = travelled.required(info)
        found = versions.of_nodes(self.session, set(names))
        return versions.differences(
            versions.mine(), {names[node]: said for node, said in found.items()}, own
        )

    def slow_paths(self, info: dict[str, Any]) -> list[str]:
        """A row for each path between the nodes of the launch that is slower than it need be, with
        the numbers and what to do; [] while it is not placed."""
        from troupe.launch import _slow_paths

        return _slow_paths.of_launch(self.session, info)

    def logs(self, rank: int | None = None, follow: bool = False) -> Iterator[str]:
        """Lines of the ranks' output; each starts with `[rank]` unless one `rank` is asked for.

        With `follow` the iterator ends when the launch has; otherwise with what is there now.
        """
        from troupe.launch import _logs

        return _logs.lines(self, rank, follow)

    def print_logs(self, rank: int | None = None, follow: bool = False) -> None:
        """Prints what `logs` yields, of escape sequences only those for colours."""
        for line in self.logs(rank, follow):
            print(_visible.output(line), flush=follow)

    def watch(self, *, quiet: bool = False) -> None:
        """Shows where the launch is and what its ranks print, from the start of the present attempt
        on, until it has ended; fetches no result.

        Blocks. For a launch of `submit`, of another program, or one that was detached
        (`troupe.launch.attach`). Ctrl-C ends the watching, not the launch: it returns, and says how
        to come back. `quiet`: no status lines, only the output. Raises no error of the launch,
        which `result()` does; ConnectionError when the cluster cannot be reached.

            handle = train.submit(epochs=3)
            handle.watch()
        """
        from troupe.launch import _progress

        _progress.watch(self, quiet=quiet)

    def found_by(self, method: str, command: str) -> str:
        """How a person comes back to it: by a method of this class in a cluster of this program,
        else by a command, with {} for its id."""
        if self.session.embedded is not None:
            return f'troupe.launch.attach("{short(self.id)}").{method}'
        return command.format(short(self.id))


def describe(info: dict[str, Any]) -> dict[str, Any]:
    """A LaunchInfo as users and scripts see it."""
    from troupe._code import environment, travelled

    return {
        "id": info["launch"],
        "name": info["name"],
        "door": travelled.door(info),
        "mode": info["mode"],
        "state": info["outcome"] if info["state"] == "terminal" else info["state"],
        "outcome": info["outcome"],
        "exit_code": info["exit_code"],
        "cause": info["cause"],
        "epoch": info["epoch"],
        "max_attempts": info["attempts_max"],
        "preemptions": info["preemptions"],
        "priority": info["priority"],
        "ranks": info["ranks"],
        "ready_ranks": info["ready_ranks"],
        "resources_per_rank": resources.from_wire(info["per_rank"]),
        "queue_place": info["queue_place"],
        "waiting_for": info["waiting_for"],
        "started_from": environment.started_from(info["started_from"]),
        "ready_s": info["ready_ms"] / 1000,
        "duration_s": info["duration_ms"] / 1000,
        "nodes": list(info["nodes"]),
        "inherited_env": travelled.variables(info["travelled"]),
        "not_inherited_env": list(info["not_taken"]),
        "environment": travelled.environment(info),
        "rank_infos": [
            {
                "rank": each["rank"],
                "node": each["node_name"],
                "host": each["host"],
                "outcome": each["outcome"],
                "exit_code": each["exit_code"],
                "cause": each["cause"],
                "warning": each["warning"],
            }
            for each in info["rank_infos"]
        ],
    }


def handle_of_known(
    session: _session.Session,
    launch: str,
    *,
    stop_grace: float = 10.0,
    ends_with_program: bool = False,
) -> LaunchHandle:
    """Return the handle of a launch that the head knows, by its whole id; blocks for the head's
    answer.

    Raises:
        NotFoundError: if the head has forgotten the launch.
        ConnectionError: if the head does not answer.
    """
    returns = session.returns
    session.board.post_reply(
        "launch", launch, session.request("WatchLaunch", {"launch": launch})[1]["info"]
    )
    return LaunchHandle(
        session, launch, returns=returns, stop_grace=stop_grace, ends_with_program=ends_with_program
    )
