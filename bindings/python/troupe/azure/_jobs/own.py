"""Jobs of a cluster that ends with this process: waited for at the process's end, which says where
their files are."""

from __future__ import annotations

import atexit
from typing import TYPE_CHECKING, Any

from troupe import exceptions
from troupe._cluster import status_lines
from troupe.azure import _start
from troupe.azure._jobs.states import TERMINAL, job_of
from troupe.azure._past import jobs as _past_jobs, keeper, page
from troupe.launch._handle import LaunchHandle

if TYPE_CHECKING:
    from troupe.azure._jobs.operations import JobOperations

_PLACES_MAX = 3  # jobs of which a program's end says where their files are


class OwnJobs:
    """The jobs that JobOperations have begun on a cluster that ends with this process."""

    def __init__(self, jobs: JobOperations) -> None:
        self._jobs = jobs
        self._names: list[str] = []  # names of command jobs
        self._told: set[str] = set()  # launches whose place `tell_place` has said
        self._driven: list[tuple[str, str]] = []  # (type, name) of sweeps and pipelines

    def add(self, handle: LaunchHandle, info: dict[str, Any]) -> None:
        """Keep a command job that was submitted just now."""
        if not self._names:
            atexit.register(self._finish)
        self._names.append(info["name"])
        keeper.of_session(handle.session, _start.DOOR).begin(handle, info)

    def expect_driven(self) -> None:
        """Prepare for a sweep or a pipeline, whose jobs this process submits none of."""
        keeper.of_session(self._jobs.cluster(), _start.DOOR)
        if not self._driven:
            atexit.register(self._finish_driven)

    def add_driven(self, kind: str, name: str) -> None:
        """Keep a sweep or a pipeline that was submitted just now."""
        self._driven.append((kind, name))

    def _finish_driven(self) -> None:
        for kind, name in self._driven:
            if self._jobs.get(name).status in TERMINAL:
                continue
            status_lines.say(
                f"troupe: {kind} {name} runs on a cluster of this program, which waits for it; "
                "Ctrl-C cancels it"
            )
            try:
                runs_of(kind).follow(name, self._jobs.cluster())
            except KeyboardInterrupt:
                runs_of(kind).stop(name, self._jobs.cluster())
            except exceptions.TroupeError as error:
                status_lines.say(f"troupe: {error}")

    def _finish(self) -> None:
        """A program that ends does not end its jobs: those of its own cluster are waited for."""
        untold = []
        for name in self._names:
            info = self._jobs.info(name)
            if info["state"] != "terminal":
                status_lines.say(
                    f"troupe: job {name} runs on a cluster of this program, which waits for it; "
                    "Ctrl-C cancels it"
                )
                handle = self._jobs.handle(info)
                try:
                    handle.wait_end()
                except KeyboardInterrupt:
                    handle.cancel("Ctrl-C in the caller")
            if info["launch"] not in self._told:
                untold.append(info)
        for info in untold[:_PLACES_MAX]:
            self.tell_place(info)
        for info in untold[_PLACES_MAX:]:
            page.write(self._jobs.get(info["name"]))
        if len(untold) > _PLACES_MAX:
            status_lines.say(
                f"troupe: {len(untold) - _PLACES_MAX} more jobs of this program are kept for a "
                "week: troupe azure job list"
            )

    def tell_place(self, info: dict[str, Any]) -> None:
        """Say where the files of a job that has ended are, if its cluster ends with this
        process."""
        try:
            session = self._jobs.cluster()
            if session.embedded is None:
                return
            now = session.request("GetLaunch", {"launch": info["launch"]})[1]["info"]
        except exceptions.TroupeError:
            return  # the cluster has ended by itself, which is the caller's error
        if now["state"] == "terminal":
            self._told.add(info["launch"])
            keeper.of_session(session, _start.DOOR).finish(now)
            page.write(job_of(now))
            status_lines.say(_past_jobs.describe_place(info["launch"], info["name"]))


def runs_of(kind: str) -> Any:
    """Return the module that runs jobs of a type: "sweep" or "pipeline"."""
    if kind == "pipeline":
        from troupe.azure._pipeline import runs
    else:
        from troupe.azure._trials import runs  # type: ignore[no-redef]
    return runs
