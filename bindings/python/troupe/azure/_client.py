"""`MLClient`: jobs on the cluster that is known here, with the methods that notebooks call."""

from __future__ import annotations

import atexit
import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from troupe import _visible, exceptions
from troupe._cluster import session as _session, status_lines
from troupe._code import field_checks, travelled
from troupe.azure import _start
from troupe.azure._command import Command, Job
from troupe.azure._past import jobs as _past_jobs, keeper
from troupe.azure._pipeline.job import PipelineJob
from troupe.azure._sweep_job import Sweep
from troupe.azure.constants import ListViewType
from troupe.launch import _progress, _submit, _vendor_place
from troupe.launch._handle import LaunchHandle, handle_of_known

TERMINAL = ("Completed", "Failed", "Canceled")
_STATUS = {
    "queued": "Queued",
    "reserving": "Queued",
    "starting": "Preparing",
    "running": "Running",
    "stopping": "CancelRequested",
}
_ENDED = {"succeeded": "Completed", "failed": "Failed", "cancelled": "Canceled"}
_PLACES_MAX = 3  # jobs of which a program's end says where their files are
_PATIENCE_S = 600.0  # for who reads the output more slowly than it was written


def status_of(info: dict) -> str:
    """A launch's state in the service's word."""
    return (
        _ENDED.get(info["outcome"], "Failed")
        if info["state"] == "terminal"
        else _STATUS.get(info["state"], "Running")
    )


class MLClient:
    """Jobs on this cluster: that of `troupe.init()` or TROUPE_ADDRESS, else the only one of
    TROUPE_HOME, else one of this machine, which ends with this program, after its jobs.

    What says which workspace is meant, and how to speak to it, is taken, and means nothing here:
    credential, subscription, resource group, workspace, registry, `cloud`, `show_progress`,
    `enable_telemetry`.

        MLClient(DefaultAzureCredential(), "subscription", "group", "workspace").jobs.create_or_update(job)
    """

    def __init__(
        self,
        credential: Any = None,
        subscription_id: str | None = None,
        resource_group_name: str | None = None,
        workspace_name: str | None = None,
        registry_name: str | None = None,
        *,
        cloud: str | None = None,
        show_progress: bool = True,
        enable_telemetry: bool = True,
    ) -> None:
        del credential, cloud, show_progress, enable_telemetry
        self.subscription_id, self.resource_group_name = subscription_id, resource_group_name
        self.workspace_name, self.registry_name = workspace_name, registry_name
        self.jobs = JobOperations()

    @classmethod
    def from_config(
        cls,
        credential: Any = None,
        *,
        path: Any = None,
        file_name: str | None = None,
        cloud: str | None = None,
        show_progress: bool = True,
        enable_telemetry: bool = True,
    ) -> MLClient:
        """As the constructor: there is no file of a workspace to be read."""
        del path, file_name
        return cls(
            credential, cloud=cloud, show_progress=show_progress, enable_telemetry=enable_telemetry
        )

    def create_or_update(self, entity: Any, **options: Any) -> Command:
        """`jobs.create_or_update` of a job, with its options; a component is returned as it is, for
        it is registered nowhere.

        Raises TypeError for anything else: data, environments and models are not registered here.
        """
        if getattr(entity, "is_component", False) and not options:
            return entity
        return self.jobs.create_or_update(entity, **options)

    def __getattr__(self, name: str) -> Any:
        if name in _NOT_HERE:
            raise AttributeError(f"MLClient has no {name} here: {_NOT_HERE[name]}")
        raise AttributeError(
            f"MLClient has no {name!r}; it has jobs, create_or_update, from_config"
        )


_NOT_HERE = {
    "data": "give a path where a job takes an input: Input(type='uri_folder', path=...)",
    "datastores": "give a path, file:///PATH on the nodes, or an https:// address of a file",
    "environments": "what is installed on the nodes is what jobs run with",
    "compute": "a cluster's nodes are those that joined it (troupe status); instance_types.yml "
    "says what a name of compute means",
    "models": "a job's outputs are files: jobs.download(name, output_name=...)",
    "components": "load_component gives the component of a file, and command(...) makes one; steps "
    "call it with their values",
    "batch_endpoints": "an actor serves: troupe.remote(Class).remote()",
    "online_endpoints": "an actor serves: troupe.remote(Class).remote()",
    "workspaces": "there is one cluster, that of TROUPE_ADDRESS",
    "schedules": "a timer of the system can run `troupe azure job create`",
}


_INSTEAD_OF = {
    "Data": "data",
    "Environment": "environments",
    "AmlCompute": "compute",
    "Model": "models",
    "Workspace": "workspaces",
}
"""By the name of an entity, the operations that would take it."""


class Poller:
    """Something that was begun and goes on by itself, as azure.core.polling.LROPoller.

    A program that ends waits for it.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        executor = ThreadPoolExecutor(1, thread_name_prefix="troupe-poller")
        self._future = executor.submit(work)
        executor.shutdown(wait=False)

    def result(self, timeout: float | None = None) -> None:
        """Block until the end, `timeout` seconds at most, and return None.

        Raises what the work raises, and TimeoutError.
        """
        self._future.result(timeout)

    def wait(self, timeout: float | None = None) -> None:
        """Block until the end, or for `timeout` seconds; `done` says which.

        Raises what the work raises.
        """
        with contextlib.suppress(TimeoutError):
            self.result(timeout)

    def done(self) -> bool:
        """Return True if it has ended."""
        return self._future.done()

    def status(self) -> str:
        """Return "InProgress", "Succeeded" or "Failed"."""
        return (
            "InProgress"
            if not self.done()
            else "Succeeded"
            if self._future.exception() is None
            else "Failed"
        )


class JobOperations:
    """`MLClient.jobs`. Methods may be called from any thread."""

    def __init__(self, session: _session.Session | None = None) -> None:
        self._session = session
        self._own: list[str] = []  # names of those on a cluster that ends with this process
        self._told: set[str] = (
            set()
        )  # of these, by their launch, where `tell_place` has said where their files are
        self._own_driven: list[
            tuple[str, str]
        ] = []  # (type, name) of sweeps and pipelines on such a cluster

    def _cluster(self) -> _session.Session:
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

    def _launches(self) -> Any:
        session = self._known()
        return () if session is None else session.request("ListLaunches", {})[1]["launches"]

    def _past(self, name: str) -> _past_jobs.PastJob | None:
        """Return the job with that name of an embedded cluster that is not this process's; None:
        this cluster has it, or nobody."""
        return _past_jobs.find(name, self._launches(), JobOperations)

    def create_or_update(
        self,
        job: Any,
        *,
        description: str | None = None,
        compute: str | None = None,
        tags: Mapping[str, str] | None = None,
        experiment_name: str | None = None,
        skip_validation: bool = False,
        idempotency_key: str | None = None,
    ) -> Command:
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
            instead = _INSTEAD_OF.get(type(job).__name__, "")
            raise TypeError(
                f"a job is what command() or load_job() makes, not {type(job).__name__}"
                + (f": {_NOT_HERE[instead]}" if instead else "")
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
            return self._begin(job)
        if job.swept:
            name, drawn = next(iter(job.swept.items()))
            raise ValueError(
                f"inputs: {name} is {drawn!r}, which a sweep draws from: "
                f"job.sweep(primary_metric=..., goal=...), or job({name}=...) with a value"
            )
        _submit.refuse_inside_a_rank()
        session = self._cluster()
        own = session.embedded is not None
        handle = _start.start(job, session, detach=not own, idempotency_key=idempotency_key)
        info = session.request("GetLaunch", {"launch": handle.id})[1]["info"]
        job.id, job.name, job.status = handle.id, info["name"], status_of(info)
        if own:
            if not self._own:
                atexit.register(self._finish)
            self._own.append(str(job.name))
            keeper.of_session(session, _start.DOOR).begin(handle, info)
        return job

    def _begin(self, job: Sweep | PipelineJob) -> Any:
        """Begin what runs in a process of the cluster: a sweep or a pipeline."""
        _submit.refuse_inside_a_rank()
        session = self._cluster()
        if session.embedded is not None:
            keeper.of_session(session, _start.DOOR)
            if not self._own_driven:
                atexit.register(self._finish_driven)
        _runs_of(job.type).submit(job, session)
        if session.embedded is not None:
            self._own_driven.append((job.type, str(job.name)))
        return job

    def _finish_driven(self) -> None:
        for kind, name in self._own_driven:
            if self.get(name).status in TERMINAL:
                continue
            status_lines.say(
                f"troupe: {kind} {name} runs on a cluster of this program, which waits for it; "
                "Ctrl-C cancels it"
            )
            try:
                _runs_of(kind).follow(name, self._cluster())
            except KeyboardInterrupt:
                _runs_of(kind).stop(name, self._cluster())
            except exceptions.TroupeError as error:
                status_lines.say(f"troupe: {error}")

    @staticmethod
    def _pipeline(name: str) -> Any:
        """Return the pipeline with that name, as it is now; None: there is none."""
        return _runs_of("pipeline").found(name)

    @staticmethod
    def _sweep(name: str) -> Any:
        """The sweep with that name, as it is now; None: there is none."""
        if not isinstance(name, str) or _runs_of("pipeline").found(name) is not None:
            return None
        return _runs_of("sweep").found(name)

    def _finish(self) -> None:
        """A program that ends does not end its jobs: those of its own cluster are waited for."""
        untold = []
        for name in self._own:
            info = self.info(name)
            if info["state"] != "terminal":
                status_lines.say(
                    f"troupe: job {name} runs on a cluster of this program, which waits for it; "
                    "Ctrl-C cancels it"
                )
                handle = self.handle(info)
                try:
                    handle.wait_end()
                except KeyboardInterrupt:
                    handle.cancel("Ctrl-C in the caller")
            if info["launch"] not in self._told:
                untold.append(info)
        for info in untold[:_PLACES_MAX]:
            self.tell_place(info)
        if len(untold) > _PLACES_MAX:
            status_lines.say(
                f"troupe: {len(untold) - _PLACES_MAX} more jobs of this program are kept for a "
                "week: troupe azure job list"
            )

    def tell_place(self, info: dict) -> None:
        """Say where the files of a job that has ended are, if its cluster ends with this
        process."""
        try:
            session = self._cluster()
            if session.embedded is None:
                return
            now = session.request("GetLaunch", {"launch": info["launch"]})[1]["info"]
        except exceptions.TroupeError:
            return  # the cluster has ended by itself, which is the caller's error
        if now["state"] == "terminal":
            self._told.add(info["launch"])
            keeper.of_session(session, _start.DOOR).finish(now)
            status_lines.say(_past_jobs.describe_place(info["launch"], info["name"]))

    def info(self, name: str) -> dict:
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

    def handle(self, info: dict) -> LaunchHandle:
        """Of a launch of this cluster."""
        return handle_of_known(self._cluster(), info["launch"])

    def get(self, name: str) -> Job:
        """A job by its name, as the cluster knows it: name, id and status; of a sweep also its best
        child, of a pipeline its steps. Raises NotFoundError."""
        pipeline = self._pipeline(name)
        if pipeline is not None:
            return _runs_of("pipeline").PipelineState(pipeline)
        seen = self._sweep(name)
        if seen is not None:
            from troupe.azure._trials import runs

            return runs.SweepState(seen)
        past = self._past(name)
        if past is not None:
            return past.get()
        is_known = any(each["name"] == name for each in self._launches())
        return (None if is_known else _runs_of("pipeline").step_job(name)) or _job_of(
            self.info(name)
        )

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
            *((each["submitted_us"], _job_of(each)) for each in infos),
            *_past_jobs.list_all(infos),
        ]
        jobs = [each for _, each in sorted(timed, key=lambda each: -each[0])]
        if kind:
            found = _runs_of(kind).children(_runs_of(kind).found(parent_job_name), jobs)
        else:
            found = [
                *jobs,
                *reversed(_runs_of("sweep").known()),
                *reversed(_runs_of("pipeline").known()),
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
            _runs_of(kind).follow(name, self._known() if kind == "pipeline" else self._cluster())
        except KeyboardInterrupt:
            if cancels:
                _runs_of(kind).stop(name, self._cluster())
            raise

    def follow(self, handle: LaunchHandle, *, quiet: bool = False, cancels: bool = False) -> None:
        """What `stream` does, of a launch.

        `cancels`: Ctrl-C, and what else raises KeyboardInterrupt, cancels it; Ctrl-C again ends it
        now.
        """
        from troupe.azure import _files

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
        try:
            _files.collect(handle.session, info)
        except (exceptions.TroupeError, OSError) as error:
            if info["outcome"] == "succeeded":
                raise
            status_lines.say(f"troupe: {error}")  # what the job failed with is the error
        handle.succeeded()

    def cancel(self, name: str) -> None:
        """Cancels a job and returns when it has ended; its processes have 10 s from SIGTERM on.

        One that is over stays as it is.
        """
        kind = self.driven(name)
        if kind:
            _runs_of(kind).stop(name, self._known() if kind == "pipeline" else self._cluster())
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
        from troupe.azure import _files

        folder, pipeline, seen = Path(download_path), self._pipeline(name), self._sweep(name)
        if pipeline is not None:
            status = self.get(name).status
            if status not in TERMINAL:
                raise ValueError(
                    f"pipeline {name} is {status}: what it writes is downloaded when it is "
                    f"{', '.join(TERMINAL)}"
                )
            _runs_of("pipeline").download(pipeline, self._known(), folder, output_name, all)
            return
        if seen is not None:
            name = _runs_of("sweep").best_child(seen)
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
        _files.bring(_files.Kept(self._cluster(), info), folder, output_name, all)
        if output_name is None:
            _files.write_logs(self.handle(info), info, folder / "artifacts" / "user_logs")


def _runs_of(kind: str) -> Any:
    """Return the module that runs jobs of a type: "sweep" or "pipeline"."""
    if kind == "pipeline":
        from troupe.azure._pipeline import runs
    else:
        from troupe.azure._trials import runs  # type: ignore[no-redef]
    return runs


def _job_of(info: dict) -> Job:
    job = Job(
        info["name"],
        info["launch"],
        status_of(info),
        nodes=len(info["nodes"]),
        processes=info["ranks"],
    )
    job.is_command_job = travelled.door(info) == _start.DOOR
    return job
