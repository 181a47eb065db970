"""`JobSubmissionClient`, with Ray's names: jobs on the cluster from a program."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from troupe import exceptions
from troupe._cluster import (
    connect,
    home,
    known_clusters,
    local_clusters,
    session as _session,
    workers,
)
from troupe._code import failures
from troupe.job_submission import _jobs, _output
from troupe.job_submission._jobs import JobState
from troupe.job_submission._request import SHELL, JobRequest

_DASHBOARD_PORT = 8265  # port of Ray's own dashboard, which scripts name
_LOCAL = ("127.0.0.1", "localhost", "::1")


class NoSuchJobError(RuntimeError):
    """No job has the id that was asked for."""


class JobStatus(enum.StrEnum):
    """The status of a job, by Ray's names."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    STOPPED = "STOPPED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"

    def is_terminal(self) -> bool:
        """Return True for a status that stays."""
        return self in (JobStatus.STOPPED, JobStatus.SUCCEEDED, JobStatus.FAILED)


class JobType(enum.StrEnum):
    """How a job came to be."""

    SUBMISSION = "SUBMISSION"
    DRIVER = "DRIVER"


@dataclass(frozen=True)
class DriverInfo:
    """The process that runs a job's command."""

    id: str
    node_ip_address: str
    pid: str


@dataclass(frozen=True)
class JobDetails:
    """All that is known of a job. Times are milliseconds since 1970."""

    type: JobType
    submission_id: str
    status: JobStatus
    entrypoint: str
    job_id: str | None = None
    driver_info: DriverInfo | None = None
    message: str | None = None
    error_type: str | None = None
    start_time: int | None = None
    end_time: int | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    runtime_env: dict[str, Any] | None = None
    driver_agent_http_address: str | None = None
    driver_node_id: str | None = None
    driver_exit_code: int | None = None


JobInfo = JobDetails


def status_of(info: Mapping[str, Any]) -> JobStatus:
    """Return the status of the job of this LaunchInfo."""
    state = _jobs.state_of(info)
    return (
        JobStatus.PENDING
        if state in (JobState.QUEUED, JobState.STARTING)
        else JobStatus(state.value)
    )


def _details(info: Mapping[str, Any], hosts: Mapping[str, str]) -> JobDetails:
    seen, status = _jobs.describe(info), status_of(info)
    node = next((each["node"] for each in info["rank_infos"]), None)
    driver = (
        DriverInfo(seen["launch"][:8], hosts.get(node, ""), str(info["failure"]["pid"] or ""))
        if node
        else None
    )
    start = round(seen["submitted_s"] * 1000)
    return JobDetails(
        JobType.SUBMISSION,
        seen["id"],
        status,
        seen["command"],
        seen["launch"][:8],
        driver,
        seen["cause"] or seen["waiting_for"] or None,
        failures.type_name_of(info["failure"]) or None,
        start,
        start + info["duration_ms"] if status.is_terminal() else None,
        seen["metadata"],
        {},
        None,
        node,
        seen["exit_code"],
    )


class JobSubmissionClient:
    """Jobs of a cluster, from any process that can reach it.

    Methods may be called from any thread.

    `address`: "host:port" of the head, with or without "http://" before it; None or "auto" for the
    session of `init()`, else TROUPE_ADDRESS, else TROUPE_CLUSTER, else RAY_ADDRESS, else the
    cluster in use (`troupe cluster use`), else the only cluster of this user on this host, which is
    meant by the address of Ray's dashboard on this host too. A head on another host needs
    TROUPE_TOKEN_FILE, or a name (`troupe cluster add`).
    `create_cluster_if_needed`, `cookies`, `metadata`, `headers` and `verify` belong to Ray's HTTP
    and mean nothing here. Blocks until connected.

    Raises:
        ConnectionError: there is no such cluster.
        JoinError: the cluster refuses this process.

        client = JobSubmissionClient()
        job = client.submit_job(entrypoint="python train.py", runtime_env={"working_dir": "."})
    """

    def __init__(
        self,
        address: str | None = None,
        create_cluster_if_needed: bool = False,
        cookies: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        headers: Mapping[str, Any] | None = None,
        verify: str | bool | None = True,
    ) -> None:
        del create_cluster_if_needed, cookies, headers, verify
        self._metadata = dict(metadata or {})
        self._session = _session_of(address)

    @classmethod
    def over(cls, session: _session.Session) -> JobSubmissionClient:
        """Return a client that uses a session which is there already."""
        client = cls.__new__(cls)
        client._metadata, client._session = {}, session
        return client

    @property
    def session(self) -> _session.Session:
        """The session with the cluster."""
        return self._session

    def get_address(self) -> str:
        """Return the address of the cluster's head."""
        return self._session.address

    def submit_job(
        self,
        *,
        entrypoint: str,
        job_id: str | None = None,
        runtime_env: Mapping[str, Any] | None = None,
        metadata: Mapping[str, str] | None = None,
        submission_id: str | None = None,
        entrypoint_num_cpus: float | None = None,
        entrypoint_num_gpus: float | None = None,
        entrypoint_memory: int | None = None,
        entrypoint_resources: Mapping[str, float] | None = None,
        entrypoint_label_selector: Mapping[str, str] | None = None,
    ) -> str:
        """Submit a line for a shell as a job and return its id; does not wait for the job.

        `submission_id` (`job_id` is its older name): the id; submitting the same job again returns
        it, another one with that id is refused. `runtime_env` is the environment of the command and
        of all that it starts. `entrypoint_num_cpus` and the others: what the command holds, by
        default nothing.

        Raises:
            RuntimeError: the id is that of a job with another content.
            ValueError, TypeError: an argument cannot be meant.
            PlacementError: no node can ever hold it.
            TooLargeError: the working directory is over the limit.
        """
        if not isinstance(entrypoint, str):
            raise TypeError(f"entrypoint is a line for a shell, a text, not {entrypoint!r}")
        if not entrypoint.strip():
            raise ValueError("there is nothing to run: entrypoint is an empty line")
        if entrypoint_label_selector:
            raise NotImplementedError(
                "entrypoint_label_selector= is not supported: a job goes to whichever node has "
                "room for it"
            )
        request = JobRequest(
            (SHELL, "-c", entrypoint),
            submission_id or job_id or "",
            cpus=entrypoint_num_cpus or 0,
            gpus=entrypoint_num_gpus or 0,  # type: ignore[arg-type]
            memory=entrypoint_memory or 0,
            resources=dict(entrypoint_resources or {}),
            runtime_env=dict(runtime_env or {}),
            metadata={**self._metadata, **(metadata or {})},
            name=(metadata or {}).get("job_name", "")[:100],
        )
        try:
            handle = _jobs.start(request, self._session)
        except exceptions.AlreadyExistsError as error:
            raise RuntimeError(str(error)) from error
        return _jobs.id_of(_jobs.info_of(self._session, handle.id))

    def launch_info(self, job_id: str) -> dict[str, Any]:
        """Return the LaunchInfo of the job with exactly that id. Raises NoSuchJobError."""
        found = next(
            (
                each
                for each in _jobs.beginning(self._session, job_id)
                if _jobs.id_of(each) == job_id
            ),
            None,
        )
        if found is None:
            raise NoSuchJobError(f"there is no job {job_id!r}; list_jobs() has those there are")
        return found

    def _hosts(self) -> dict[str, str]:
        return {each["node"]: each["listen_host"] for each in workers.node_infos(self._session)}

    def get_job_status(self, job_id: str) -> JobStatus:
        """Return the status of a job. Raises RuntimeError for an id that no job has."""
        return status_of(self.launch_info(job_id))

    def get_job_info(self, job_id: str) -> JobDetails:
        """Return all that is known of a job. Raises RuntimeError for an id that no job has."""
        return _details(self.launch_info(job_id), self._hosts())

    def list_jobs(self) -> list[JobDetails]:
        """Return the jobs that the cluster keeps, those of other users too, the latest first."""
        hosts = self._hosts()
        return [_details(each, hosts) for each in _jobs.infos(self._session)]

    def get_job_logs(self, job_id: str) -> str:
        """Return what a job has written in its present attempt.

        Raises RuntimeError for an id that no job has, ConnectionError without its node.
        """
        return "".join(
            f"{line}\n" for line in _output.read(self._session, self.launch_info(job_id))
        )

    async def tail_job_logs(self, job_id: str) -> AsyncIterator[str]:
        """Yield what a job writes, as it comes, until it has ended.

        Raises RuntimeError for an id that no job has.
        """
        news = self.follow(job_id)
        while (text := await asyncio.to_thread(next, news, None)) is not None:
            yield text

    def follow(self, job_id: str) -> Iterator[str]:
        """Yield what a job writes, as it comes, until it has ended; blocks.

        Raises RuntimeError for an id that no job has.
        """
        for _, finished, _ in _output.follow(
            _jobs.handle_of(self._session, self.launch_info(job_id))
        ):
            if finished:
                yield "".join(f"{line}\n" for line in finished)

    def stop_job(self, job_id: str) -> bool:
        """Tell a job to stop, without waiting for its end; return False for one that has ended.

        Raises RuntimeError for an id that no job has.
        """
        info = self.launch_info(job_id)
        if info["state"] == "terminal":
            return False
        _jobs.handle_of(self._session, info).stop("stopped by stop_job()")
        return True

    def delete_job(self, job_id: str) -> bool:
        """Forget a job that has ended, and return True.

        Raises RuntimeError for one that has not, and for an id that no job has.
        """
        try:
            _jobs.delete(self._session, self.launch_info(job_id))
        except ValueError as error:
            raise RuntimeError(str(error)) from None
        return True

    def wait(self, job_id: str, timeout: float | None = None) -> int:
        """Wait until a job has ended, and return its exit code.

        Raises TimeoutError after `timeout` seconds.
        """
        handle = _jobs.handle_of(self._session, self.launch_info(job_id))
        return _jobs.exit_code_of(handle.wait_end(timeout))


def _session_of(address: str | None) -> _session.Session:
    current = _session.current_or_none()
    given = "" if address in (None, "auto") else _without_scheme(str(address))
    if not given and current is not None and not current.in_process:
        return current
    choice = known_clusters.choose(given, other_launcher=_address_of_ray)
    if choice is None or choice.address == "auto":
        return connect.kept(local_clusters.numeric(_only_cluster()))
    return connect.kept_chosen(replace(choice, address=local_clusters.numeric(choice.address)))


def _address_of_ray() -> str:
    return _without_scheme(os.environ.get("RAY_ADDRESS", "").replace("auto", ""))


def _only_cluster() -> str:
    """Return the address of the cluster that `ray start` started last, else of the only one of this
    user on this host. Raises ConnectionError."""
    started = ""
    with contextlib.suppress(exceptions.TroupeError):
        from troupe.ray_compat import _clusters

        started = _clusters.started_here()
    return started or connect.only_local_cluster()


def _without_scheme(address: str) -> str:
    """Return host:port of an address that may begin with http://; "" for that of Ray's dashboard on
    this host."""
    if address.startswith("unix:") or "://" not in address:
        return address
    parts = urlsplit(address)
    if parts.hostname in _LOCAL and parts.port in (None, _DASHBOARD_PORT):
        return ""
    host, port = home.host_and_port(parts.netloc)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
