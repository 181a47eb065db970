"""`MLClient.jobs`: command jobs, sweeps and pipelines, begun, found, followed and ended."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from troupe import exceptions
from troupe._base import visible as _visible
from troupe._cluster import session as _session, status_lines, view
from troupe._code import field_checks
from troupe.azure import _files, _start
from troupe.azure._command import Command
from troupe.azure._jobs.job import Job, made_at, services_of
from troupe.azure._jobs.not_here import INSTEAD_OF, NO_METHODS, NOT_HERE
from troupe.azure._jobs.own import OwnJobs, runs_of
from troupe.azure._jobs.poller import Poller
from troupe.azure._jobs.states import TERMINAL, job_of, status_of
from troupe.azure._past import jobs as _past_jobs, page
from troupe.azure._pipeline.job import PipelineJob
from troupe.azure._sweep_job import Sweep
from troupe.azure.constants import ListViewType
from troupe.launch import _progress, _submit, _vendor_place
from troupe.launch._handle import LaunchHandle, handle_of_known

_PATIENCE_S = 600.0  # for who reads the output more slowly than it was written

Submitted = TypeVar("Submitted")
_METHODS = ("create_or_update", "get", "list", "stream", "cancel", "begin_cancel", "download")


class JobOperations:
    """`MLClient.jobs`. Methods may be called from any thread."""

    def __init__(self, session: _session.Session | None = None) -> None:
        self._session = session
        self._own = OwnJobs(self)

    def __getattr__(self, name: str) -> Any:
        if name in NO_METHODS:
            raise AttributeError(f"jobs has no {name} here: {NO_METHODS[name]}")
        raise AttributeError(f"jobs has no {name!r}{field_checks.or_nearest(name, _METHODS)}")

    def cluster(self) -> _session.Session:
        """Return the session of the cluster, one of this machine where none is known."""
        if self._session is not None:
            return self._session
        session, found = _vendor_place.find_session(remote=True)
        _vendor_place.tell(found)
        return session

    def _known(self) -> _session.Session | None:
        """Return the cluster's session; None where no cluster is known here and none was
        started."""
        if self._session is not None:
            return self._session
        session, found = _vendor_place.find_known_session()
        _vendor_place.tell(found)
        return session

    def _launches(self) -> list[dict[str, Any]]:
        session = self._known()
        return [] if session is None else list(view.iter_launches(session))

    def _past(self, name: str) -> _past_jobs.PastJob | None:
        """Return the job with that name of an embedded cluster that is not this process's; None:
        this cluster has it, or nobody."""
        return _past_jobs.find(name, self._launches(), JobOperations)

    def create_or_update(
        self,
        job: Submitted,
        *,
        description: str | None = None,
        compute: str | None = None,
        tags: Mapping[str, str] | None = None,
        experiment_name: str | None = None,
        skip_validation: bool = False,
        idempotency_key: str | None = None,
    ) -> Submitted:
        """Submits a job, and returns it with name and status; what it runs on goes on without this
        process, but for a cluster that ends with it.

        Does not block for the job. Raises what is wrong with it before anything starts: TypeError,
        ValueError (the nearest name with it), FileNotFoundError (code or an input),
        NotImplementedError (what is not run here, with what to use), TooLargeError, PlacementError,
        ConnectionError.

        `description`, `compute`, `tags`, `experiment_name`: in place of the job's own.
        `skip_validation` is taken: a job is checked all the same, as the service checks it.

        `idempotency_key`: a second submission with that key returns the first one's job, for as
        long as the cluster keeps it.

            job = ml_client.jobs.create_or_update(command(command="python train.py", code="./src"))
        """
        del skip_validation
        if not isinstance(job, Sweep | Command | PipelineJob):
            instead = INSTEAD_OF.get(type(job).__name__, "")
            raise TypeError(
                f"a job is what command() or load_job() makes, not {type(job).__name__}"
                + (f": {NOT_HERE[instead]}" if instead else "")
            )
        for name, value in (
            ("description", description),
            ("compute", compute),
            ("tags", tags),
            ("experiment_name", experiment_name),
        ):
            if value is not None:
                setattr(job, name, value)
        if not isinstance(job, Command):
            if idempotency_key is not None:
                raise NotImplementedError(
                    f"idempotency_key= is for command jobs; a {job.type} with a name of its own is "
                    "refused the second time: "
                    f"{job.type}.name = ..."
                )
            self._begin(job)
            return job
        if job.swept:
            name, drawn = next(iter(job.swept.items()))
            raise ValueError(
                f"inputs: {name} is {drawn!r}, which a sweep draws from: "
                f"job.sweep(primary_metric=..., goal=...), or job({name}=...) with a value"
            )
        _submit.refuse_inside_a_rank()
        session = self.cluster()
        own = session.embedded is not None
        handle = _start.start(job, session, detach=not own, idempotency_key=idempotency_key)
        info = session.request("GetLaunch", {"launch": handle.id})[1]["info"]
        job.id, job.name, job.status = handle.id, info["name"], status_of(info)
        job.creation_context = made_at(info["submitted_us"] / 1e6, info.get("user", ""))
        if own:
            self._own.add(handle, info)
        studio = page.write(job, is_new=idempotency_key is None)
        job.services = {**job.services, **services_of(studio)}
        return job

    def _begin(self, job: Sweep | PipelineJob) -> None:
        """Begin what runs in a process of the cluster: a sweep or a pipeline."""
        _submit.refuse_inside_a_rank()
        session = self.cluster()
        if session.embedded is not None:
            self._own.expect_driven()
        runs_of(job.type).submit(job, session)
        job.creation_context = made_at(time.time())
        job.services = services_of(job.studio_url)
        if session.embedded is not None:
            self._own.add_driven(job.type, str(job.name))

    @staticmethod
    def _pipeline(name: str) -> Any:
        """Return the pipeline with that name, as it is now; None: there is none."""
        return runs_of("pipeline").found(name)

    @staticmethod
    def _sweep(name: str) -> Any:
        """The sweep with that name, as it is now; None: there is none."""
        if not isinstance(name, str) or runs_of("pipeline").found(name) is not None:
            return None
        return runs_of("sweep").found(name)

    def tell_place(self, info: dict[str, Any]) -> None:
        """Say where the files of a job that has ended are, if its cluster ends with this
        process."""
        self._own.tell_place(info)

    def info(self, name: str) -> dict[str, Any]:
        """The launch of the job with that name, or with an id that begins so.

        Raises NotFoundError.
        """
        if not isinstance(name, str):
            raise TypeError(f"a job is found by its name, a text, not by {name!r}: job.name")
        launches = self._launches()
        found = [each for each in launches if each["name"] == name] or [
            each for each in launches if name and each["launch"].startswith(name.lower())
        ]
        if len(found) != 1:
            raise exceptions.NotFoundError(
                f"{'several jobs have' if found else 'there is no job with'} the name "
                f"{_visible.name(name)!r}\n"
                "  troupe azure job list shows those there are"
            )
        return found[0]

    def handle(self, info: dict[str, Any]) -> LaunchHandle:
        """Return the handle of a launch of this cluster."""
        return handle_of_known(self.cluster(), info["launch"])

    def get(self, name: str) -> Job:
        """A job by its name, as the cluster knows it: name, id and status; of a sweep also its best
        child, of a pipeline its steps. Raises NotFoundError."""
        pipeline = self._pipeline(name)
        if pipeline is not None:
            state: Job = runs_of("pipeline").PipelineState(pipeline)
            return state
        seen = self._sweep(name)
        if seen is not None:
            from troupe.azure._trials import runs

            return runs.SweepState(seen)
        past = self._past(name)
        is_known = past is not None or any(each["name"] == name for each in self._launches())
        found: Job | None = None if is_known else runs_of("pipeline").step_job(name)
        if found is None:
            found = past.get() if past is not None else job_of(self.info(name))
        page.write(found)
        return found

    def list(
        self,
        *,
        parent_job_name: str | None = None,
        list_view_type: str = ListViewType.ACTIVE_ONLY,
        max_results: int | None = None,
    ) -> Iterator[Job]:
        """All jobs and other launches that the cluster knows, the latest first; then this user's
        sweeps of jobs, then pipelines.

        `parent_job_name`: only the jobs of that sweep's trials, or of that pipeline's steps; a
        command job has none. `max_results`: so many at most. `list_view_type`: as nothing is
        archived here, ARCHIVED_ONLY gives none. Raises NotFoundError for a parent that there is
        not, TypeError or ValueError for a word that is none.
        """
        words = (ListViewType.ACTIVE_ONLY, ListViewType.ALL, ListViewType.ARCHIVED_ONLY)
        if list_view_type not in words:
            raise ValueError(
                f"list_view_type is {list_view_type!r}, which is "
                f"none{field_checks.or_nearest(str(list_view_type), words)}"
            )
        most = None if max_results is None else field_checks.count("max_results", max_results)
        kind = "" if parent_job_name is None else self.driven(parent_job_name)
        if parent_job_name is not None and not kind:
            self.get(parent_job_name)
            return iter(())
        if list_view_type == ListViewType.ARCHIVED_ONLY:
            return iter(())
        infos = self._launches()
        timed = [
            *((each["submitted_us"], job_of(each)) for each in infos),
            *_past_jobs.list_all(infos),
        ]
        jobs = [each for _, each in sorted(timed, key=lambda each: -each[0])]
        page.find_all(jobs)
        if kind:
            found = runs_of(kind).children(runs_of(kind).found(parent_job_name), jobs)
        else:
            found = [
                *jobs,
                *reversed(runs_of("sweep").known()),
                *reversed(runs_of("pipeline").known()),
            ]
        return iter(found[:most])

    def stream(self, name: str) -> None:
        """Prints the output of a job's processes until it has ended, each line with its rank; then
        fetches outputs that are to be here.

        Blocks. Raises LaunchError with the process that failed, its node and last lines,
        LaunchCancelledError, GetTimeoutError where its timeout ended it, NotFoundError; of a job
        that succeeded OutOfDiskError, or another OSError, where an output cannot be written here:
        nothing of that output is then. Ctrl-C ends the printing, not the job.
        """
        kind = self.driven(name)
        if kind:
            self.follow_driven(kind, name)
            return
        past = self._past(name)
        if past is not None:
            past.stream()
            return
        info = self.info(name)
        try:
            self.follow(self.handle(info))
        finally:
            self.tell_place(info)

    def driven(self, name: str) -> str:
        """Return "sweep" or "pipeline" for the name of one, "" for any other."""
        return (
            "pipeline"
            if self._pipeline(name) is not None
            else "sweep"
            if self._sweep(name) is not None
            else ""
        )

    def follow_driven(self, kind: str, name: str, *, cancels: bool = False) -> None:
        """Do what `stream` does, for a sweep or a pipeline: say what it came to once it has ended.

        `cancels`: Ctrl-C cancels it.
        """
        try:
            runs_of(kind).follow(name, self._known())
        except KeyboardInterrupt:
            if cancels:
                runs_of(kind).stop(name, self.cluster())
            raise

    def follow(self, handle: LaunchHandle, *, quiet: bool = False, cancels: bool = False) -> None:
        """Follow a launch as `stream` does.

        `cancels`: Ctrl-C, and what else raises KeyboardInterrupt, cancels it; Ctrl-C again ends it
        now.
        """
        show = _progress.Display(
            handle, quiet=quiet, patience_s=_PATIENCE_S, asked_by="environment_variables="
        )
        try:
            show.follow()
        except KeyboardInterrupt as told:
            if not cancels:
                show.leave()
                raise
            number = told.args[0] if told.args else signal.SIGINT
            show.stop(
                f"{signal.Signals(number).name} in the caller",
                by=number if number == signal.SIGINT else signal.SIGTERM,
            )
            show.finish()
            raise
        show.finish()
        info = handle.wait_end()
        page.write(job_of(info))
        try:
            _files.collect(handle.session, info)
        except (exceptions.TroupeError, OSError) as error:
            if info["outcome"] == "succeeded":
                raise
            # The error that the job failed with is raised instead
            status_lines.say(f"troupe: {error}")
        handle.succeeded()

    def cancel(self, name: str) -> None:
        """Cancels a job and returns when it has ended; its processes have 10 s from SIGTERM on.

        One that is over stays as it is.
        """
        kind = self.driven(name)
        if kind:
            runs_of(kind).stop(name, self._known())
            return
        past = self._past(name)
        if past is not None:
            past.cancel()
            return
        self.handle(self.info(name)).cancel("cancelled by jobs.cancel")

    def begin_cancel(self, name: str) -> Poller:
        """Begin to cancel a job, and return what waits for its end: `begin_cancel(name).result()`
        is `cancel(name)`. Raises NotFoundError at once."""
        if self.driven(name) or self._past(name) is not None:
            return Poller(lambda: self.cancel(name))
        handle = self.handle(self.info(name))
        return Poller(lambda: handle.cancel("cancelled by jobs.begin_cancel"))

    def download(
        self,
        name: str,
        *,
        download_path: Any = ".",
        output_name: str | None = None,
        all: bool = False,
    ) -> None:
        """Brings what a job that is over has written: `artifacts/` (its outputs/ and logs/, and
        what its processes printed), with `output_name` `named-outputs/NAME/`, with `all` both. Of a
        sweep: what its best child has written. Of a pipeline: what its steps printed, its outputs.

        Each output comes whole or not at all. Blocks. Raises NotFoundError, ValueError for a job
        that is not over or an output that it has not, ObjectLostError where its nodes are gone,
        OutOfDiskError, an OSError, with the bytes that are needed and free, OSError.
        """
        folder, pipeline, seen = Path(download_path), self._pipeline(name), self._sweep(name)
        if pipeline is not None:
            status = self.get(name).status
            if status not in TERMINAL:
                raise ValueError(
                    f"pipeline {name} is {status}: what it writes is downloaded when it is "
                    f"{', '.join(TERMINAL)}"
                )
            runs_of("pipeline").download(pipeline, self._known(), folder, output_name, all)
            return
        if seen is not None:
            name = runs_of("sweep").best_child(seen)
        past = self._past(name)
        if past is not None:
            past.download(folder, output_name, all)
            return
        info = self.info(name)
        status = status_of(info)
        if status not in TERMINAL:
            raise ValueError(
                f"job {name} is {status}: what it writes is downloaded when it is "
                f"{', '.join(TERMINAL)}"
            )
        if not info["rank_infos"]:
            raise ValueError(
                f"job {name} is {status}, and its processes never began: it has written nothing"
            )
        _files.bring(_files.Kept(self.cluster(), info), folder, output_name, all)
        if output_name is None:
            _files.write_logs(self.handle(info), info, folder / "artifacts" / "user_logs")
