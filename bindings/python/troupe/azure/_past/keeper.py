"""Keeps what is known of jobs while their embedded cluster still runs.

View: the program whose cluster it is. A job's record is written when it is submitted and when it
has ended; the session's close does that for the other command jobs of the cluster too, which sweeps
and other programs have submitted.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from dataclasses import replace
from typing import Any

from troupe import exceptions
from troupe._cluster import status_lines, view
from troupe._code import travelled
from troupe._typed.per_session import PerSession
from troupe.azure import _files
from troupe.azure._jobs import about
from troupe.azure._past import records
from troupe.launch import _errors
from troupe.launch._handle import LaunchHandle, handle_of_known

_PRUNED_EVERY = 16  # ends of jobs of one program: to read all records at each end is slow
_keepers: PerSession[Keeper] = PerSession("records of command jobs")


def of_session(session: Any, door: str) -> Keeper:
    """Return the keeper of a session with an embedded cluster.

    `door`: which launches are command jobs.
    """
    return _keepers.of(session, lambda: Keeper(session, door))


class Keeper:
    """Keeps the jobs of one embedded cluster.

    Nothing raises: a job whose record cannot be written runs all the same, which is said once.
    """

    def __init__(self, session: Any, door: str) -> None:
        self._session, self._door = session, door
        self._lock = threading.Lock()
        self._ended: set[str] = set()
        self._has_warned = False
        _errors.LOGS_AFTERWARDS.set(session, self._logs_command)
        session.on_close(self._close)

    def _logs_command(self, info: dict[str, Any]) -> str:
        is_kept = travelled.door(info) == self._door
        return f"troupe azure job stream -n {info['name']}" if is_kept else ""

    def begin(self, handle: LaunchHandle, info: dict[str, Any]) -> None:
        """Keep a job that was submitted just now, and its end on a thread."""
        try:
            records.write(self._record(info))
        except (exceptions.TroupeError, OSError) as error:
            self._warn(error)
        threading.Thread(
            target=self._follow, args=(handle,), name="troupe-job-kept", daemon=True
        ).start()

    def finish(self, info: dict[str, Any]) -> None:
        """Keep how a job ended and what its processes printed; nothing if that is kept already."""
        with self._lock:
            if info["launch"] in self._ended:
                return
            self._ended.add(info["launch"])
            try:
                self._write_end(info)
                if len(self._ended) % _PRUNED_EVERY == 1:
                    records.prune()
            except (exceptions.TroupeError, OSError) as error:
                self._warn(error)

    def _write_end(self, info: dict[str, Any]) -> None:
        handle = handle_of_known(self._session, info["launch"])
        record = self._record(info)
        records.write(record)
        if info["rank_infos"]:
            _files.write_logs(handle, info, records.logs_of(record))
        outcome, error = info["outcome"], {}
        if info["state"] != "terminal":
            outcome, error = (
                "cancelled",
                describe_error(
                    exceptions.LaunchCancelledError(
                        f"job {info['name']}: its program closed the cluster before the job ended"
                    )
                ),
            )
        elif outcome != "succeeded":
            error = describe_error(_errors.of_launch(handle, info))
        records.write(replace(record, outcome=outcome, error=error, ended_s=time.time()))

    def _record(self, info: dict[str, Any]) -> records.Record:
        return records.Record(
            info["launch"],
            info["name"],
            info["submitted_us"],
            info["ranks"],
            str(self._session.embedded.folder),
            self._session.embedded.address,
            os.getpid(),
            nodes=len(info["nodes"]),
            about=about.told(info),
            user=info.get("user", ""),
        )

    def _follow(self, handle: LaunchHandle) -> None:
        try:
            info = handle.wait_end()
        except exceptions.TroupeError:
            return  # the session was closed, which keeps it
        self.finish(info)

    def _close(self) -> None:
        try:
            launches = list(itertools.islice(view.iter_launches(self._session), records.JOBS_MAX))
        except exceptions.TroupeError:
            return  # the cluster has ended by itself: the next reader says so
        for info in launches:
            if travelled.door(info) == self._door:
                self.finish(info)

    def _warn(self, error: BaseException) -> None:
        if not self._has_warned:
            self._has_warned = True
            status_lines.say(
                "troupe: what is known of this program's jobs is not kept once it has ended: "
                f"{error}"
            )


def describe_error(error: exceptions.TroupeError) -> dict[str, Any]:
    """Return an error of a job as its record has it."""
    kind = next(
        each
        for each in (
            exceptions.LaunchCancelledError,
            exceptions.GetTimeoutError,
            exceptions.LaunchError,
            exceptions.TroupeError,
        )
        if isinstance(error, each)
    )
    return {
        "kind": kind.__name__,
        "text": str(error),
        **{
            name: getattr(error, name, None)
            for name in ("rank", "host", "exit_code", "signal", "launch")
        },
    }
