"""Jobs of embedded clusters, as `MLClient.jobs` finds them in another program than the one that
submitted them.

A job whose program still runs is asked of its cluster, which other programs of the user reach. Of a
job whose cluster has ended there is its record, and its directory in this host's cache. View: any
process of the user on this host.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from troupe import exceptions
from troupe._base import visible as _visible
from troupe._cluster import connect, status_lines
from troupe._code import disk
from troupe.azure import _files
from troupe.azure._jobs.job import Job, made_at
from troupe.azure._past import keeper, records

_STATUS = {"succeeded": "Completed", "failed": "Failed", "cancelled": "Canceled"}
Operations = Callable[[Any], Any]
"""Makes JobOperations of a session."""


def find(name: str, launches: Sequence[dict[str, Any]], operations: Operations) -> PastJob | None:
    """Return the latest job with this name, or the one with an id that begins so; None for one of
    `launches`, which the caller's cluster has, or none at all.

    Raises:
        NotFoundError: if several jobs have an id that begins so.
    """
    if not isinstance(name, str) or not name or any(each["name"] == name for each in launches):
        return None
    own = {each["launch"] for each in launches}
    known = [each for each in records.read_all() if each.launch not in own]
    found = [each for each in known if each.name == name][:1] or [
        each for each in known if each.launch.startswith(name.lower())
    ]
    if not found or (found[0].name != name and any(each.startswith(name.lower()) for each in own)):
        return None
    if len(found) > 1:
        raise exceptions.NotFoundError(
            f"several jobs have an id that begins with {_visible.name(name)}\n  troupe azure job "
            "list shows those there are"
        )
    return PastJob(found[0], operations)


def list_all(launches: Sequence[dict[str, Any]]) -> list[tuple[int, Job]]:
    """Return all jobs that are none of `launches`, each with the time of its submission in
    microseconds."""
    own = {each["launch"] for each in launches}
    return [
        (each.submitted_us, _job_of(each)) for each in records.read_all() if each.launch not in own
    ]


def kept_here(names: Set[str]) -> dict[str, Callable[[], _files.Kept]]:
    """Return by the name of a job what opens its files on this host, of those that left some."""
    latest = {each.name: each for each in reversed(records.read_all()) if each.name in names}
    found: dict[str, Callable[[], _files.Kept]] = {}
    for name, record in latest.items():
        place = records.folder_of(record.launch)
        if place is not None:
            found[name] = partial(_files.KeptHere, name, record.outcome, place)
    return found


def describe_place(launch: str, name: str) -> str:
    """Return a line that says where a job's files are, now that its cluster ends with this
    program."""
    folder = records.folder_of(launch)
    if folder is None:
        return f"job {name} · kept for a week: troupe azure job show -n {name}"
    return (
        f"job {name} · kept for a week: troupe azure job download -n {name} --all brings what "
        f"it wrote, from {folder / 'code'}"
    )


class PastJob:
    """A job of an embedded cluster that is not this process's own.

    Its methods are those of JobOperations, without the name.
    """

    def __init__(self, record: records.Record, operations: Operations) -> None:
        self._record, self._operations = record, operations

    def get(self) -> Job:
        """Return it with its status."""
        with self._live() as jobs:
            return _job_of(self._record) if jobs is None else jobs.get(self._record.launch)

    def stream(self) -> None:
        """Print what its processes printed, and raise what it ended with."""
        with self._live() as jobs:
            if jobs is not None:
                jobs.stream(self._record.launch)
                return
        for rank, path in enumerate(self._logs()):
            with (
                contextlib.suppress(FileNotFoundError),
                open(path, encoding="utf-8", errors="replace") as file,
            ):
                for line in file:
                    print(_visible.output(f"[{rank}] {line.rstrip(chr(10))}"), flush=True)
        if self._record.outcome != "succeeded":
            raise _error_of(self._record.error)

    def cancel(self) -> None:
        """Cancel it where it still runs."""
        with self._live() as jobs:
            if jobs is not None:
                jobs.cancel(self._record.launch)

    def download(self, folder: Path, output_name: str | None, everything: bool) -> None:
        """Bring what it wrote.

        Raises ValueError while it runs, or for an output that it has not, ObjectLostError, OSError.
        """
        with self._live() as jobs:
            if jobs is not None:
                jobs.download(
                    self._record.launch,
                    download_path=folder,
                    output_name=output_name,
                    all=everything,
                )
                return
        name = self._record.name
        place = records.folder_of(self._record.launch)
        if place is None and not records.logs_of(self._record).is_dir():
            raise exceptions.ObjectLostError(
                f"job {name} has no files here: it never began, or nobody has asked for them for a "
                "week"
            )
        if place is not None:
            _files.bring(
                _files.KeptHere(name, self._record.outcome, place), folder, output_name, everything
            )
        elif output_name is not None:
            raise exceptions.ObjectLostError(
                f"output {output_name!r} of job {name} is not here: its processes never began, or "
                "nobody has asked for it for a week"
            )
        if output_name is None:
            with disk.arriving(
                folder / "artifacts" / "user_logs",
                f"what the processes of job {name} printed",
                remedy=_files.ELSEWHERE,
            ) as made:
                for each in self._logs():
                    with contextlib.suppress(FileNotFoundError):
                        shutil.copyfile(each, made / each.name)

    @contextlib.contextmanager
    def _live(self) -> Iterator[Any]:
        """Give the operations on its cluster; None where that has ended, and what it left is in the
        record then."""
        session = None
        if self._record.is_running:
            with contextlib.suppress(exceptions.TroupeError):  # the job may end just now
                session = connect.connect(self._record.address)
        if session is None:
            self._record = _settle(
                next(
                    (each for each in records.read_all() if each.launch == self._record.launch),
                    self._record,
                )
            )
            yield None
            return
        try:
            yield self._operations(session)
        finally:
            session.close()

    def _logs(self) -> list[Path]:
        return [
            records.logs_of(self._record) / _files.log_name(rank, self._record.processes)
            for rank in range(self._record.processes)
        ]


def _settle(record: records.Record) -> records.Record:
    """Return the record of a job whose cluster has ended.

    Of one whose program was killed it takes what its processes printed from what is left of the
    cluster.
    """
    if record.outcome:
        return record
    error = exceptions.LaunchError(
        f"job {record.name} has ended with its program (pid {record.pid}), which was killed: its "
        "cluster was a part of it\n"
        "  on a cluster (troupe start --head) a job outlives its submitter"
    )
    ended = replace(
        record, outcome="failed", error=keeper.describe_error(error), ended_s=time.time()
    )
    try:
        _rescue_logs(record)
        records.write(ended)
    except OSError as failed:
        status_lines.say(f"troupe: what is left of job {record.name} cannot be kept: {failed}")
    return ended


def _rescue_logs(record: records.Record) -> None:
    left = Path(record.cluster) / "node" / "logs" / record.launch
    epochs = sorted(left.glob("epoch-*"), key=lambda each: each.stat().st_mtime_ns)
    if not epochs or records.logs_of(record).exists():
        return
    with disk.arriving(
        records.logs_of(record), f"what the processes of job {record.name} printed"
    ) as made:
        for rank in range(record.processes):
            with open(made / _files.log_name(rank, record.processes), "wb") as kept:
                for ending in ("out", "err"):
                    with (
                        contextlib.suppress(FileNotFoundError),
                        open(epochs[-1] / f"rank-{rank}.{ending}", "rb") as file,
                    ):
                        shutil.copyfileobj(file, kept)


def _job_of(record: records.Record) -> Job:
    status = "Running" if record.is_running else _STATUS.get(record.outcome, "Failed")
    job = Job(
        record.name,
        record.launch,
        status,
        nodes=record.nodes,
        processes=record.processes,
        about=record.about,
        created=made_at(record.submitted_us / 1e6, record.user),
    )
    if not record.is_running:
        found = records.printed(record.launch)
        job.log_files = {f"user_logs/{each.name}": each.as_uri() for each in found} or None
    return job


def _error_of(told: dict[str, Any]) -> exceptions.TroupeError:
    kind = getattr(exceptions, str(told.get("kind", "")), exceptions.LaunchError)
    error = kind(told.get("text", "it is not known why it failed"))
    for name in ("rank", "host", "exit_code", "signal", "launch"):
        if told.get(name) is not None:
            setattr(error, name, told[name])
    return error
