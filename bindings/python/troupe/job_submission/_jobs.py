"""Jobs on a cluster: started, found again, described.

What a job is: docs/guides/jobs.md.

A job is a detached launch of one process, so the launch's journal, queue, attempts and completion
marker are the job's. What is a job's alone travels with the launch as texts (`_code.travelled`):
its id, who submitted it, its command, its metadata.
"""

from __future__ import annotations

import contextlib
import enum
import getpass
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from troupe import exceptions
from troupe._base.identity import short
from troupe._cluster import resources, view
from troupe._code import travelled
from troupe._code.program import COMMAND
from troupe._wire import FailureKind
from troupe.job_submission._request import JobRequest
from troupe.job_submission._start import JobStart
from troupe.launch import _function, _program, _submit
from troupe.launch._handle import LaunchHandle, handle_of_known

DOOR = "job"
SCOPE = "jobs"
"""Of values at the head: by the id of a launch, that its job was deleted; by `id/JOB`, the launch
of the latest deleted job with that id."""
_TOKEN_S = 10 * 365 * 24 * 3600  # the token ends with the job
_TOKEN_TRIES = 3


class JobState(enum.StrEnum):
    """States of a job."""

    QUEUED = "QUEUED"  # waits for a place, or for the jobs that it starts after
    STARTING = "STARTING"  # the node makes the environment
    RUNNING = "RUNNING"  # the command runs, or is being stopped
    SUCCEEDED = "SUCCEEDED"  # the command ended with 0
    FAILED = "FAILED"  # the job ended with an error, timed out, or never could start
    STOPPED = "STOPPED"  # somebody stopped it

    @property
    def is_terminal(self) -> bool:
        """Return True for states that stay."""
        return self in (JobState.SUCCEEDED, JobState.FAILED, JobState.STOPPED)


_STATE = {"queued": JobState.QUEUED, "reserving": JobState.QUEUED, "starting": JobState.STARTING}
_ENDED = {"succeeded": JobState.SUCCEEDED, "cancelled": JobState.STOPPED}


def state_of(info: Mapping[str, Any]) -> JobState:
    """Return the state of the job of this LaunchInfo."""
    if info["state"] != "terminal":
        return _STATE.get(info["state"], JobState.RUNNING)
    return JobState.FAILED if is_out_of_time(info) else _ENDED.get(info["outcome"], JobState.FAILED)


def is_out_of_time(info: Mapping[str, Any]) -> bool:
    """Return whether the launch was ended because its own time was over."""
    found: bool = (
        info["outcome"] == "cancelled" and info["failure"]["kind"] == FailureKind.TIMED_OUT
    )
    return found


def exit_code_of(info: Mapping[str, Any]) -> int:
    """Return the exit code of a job that has ended: the command's, 128 and the signal that ended
    it, 130 stopped, 124 out of time, 1 never started."""
    state = state_of(info)
    if state is JobState.SUCCEEDED:
        return 0
    if state is JobState.STOPPED:
        return 130
    if is_out_of_time(info):
        return 124
    return 128 + info["failure"]["signal"] if info["failure"]["signal"] else info["exit_code"] or 1


def cause_of(info: Mapping[str, Any]) -> str:
    """Return why a job ended otherwise than well, all of it where an error of the runtime says it
    in several lines; "": it did not."""
    kind = info["failure"]["exception_type"]
    _, found, text = info["failure"]["traceback"].rpartition(f"\n{kind}: ")
    return f"{kind.rpartition('.')[2]}: {text.strip()}" if kind and found else str(info["cause"])


def start(request: JobRequest, session: Any) -> LaunchHandle:
    """Submit a job and return the handle of its launch at once.

    A job with the same id and content is returned instead of another one.

    Raises:
        TypeError, ValueError: for a request that cannot be meant.
        AlreadyExistsError: if the id is that of a job with another content.
        FileNotFoundError: if every node is on this host, and the command is not.
        NotFoundError: if it is to start after a job that there is not.
        PlacementError: if no node can ever hold it.
        TooLargeError: if the working directory is over the limit.
    """
    _submit.refuse_inside_a_rank()
    own = bool(request.check().id)
    after = [find(session, each)["launch"] for each in request.after]
    before = _deleted(session, request.id) if own else ""
    request = request.with_id()
    token = _token(session, request.id)
    settings = {"TROUPE_JOB_AFTER": ",".join(after)} if after else {}
    if token:
        settings["TROUPE_JOB_TOKEN_ID"] = token["id"]
    try:
        handle = _program.start(
            _line(request, token["token"] if token else "", bool(session.token_file)),
            _options(request, token["id"] if token else ""),
            session,
            settings=settings,
            request=_submit.request_of(f"job {before} {request.id}"),
        )
    except BaseException:
        _give_back(session, token)
        raise
    if own:
        info = info_of(session, handle.id)
        if travelled.about(info).get("token", "") != (token["id"] if token else ""):
            _give_back(session, token)  # the id belongs to a job submitted before
        if travelled.about(info).get("digest") != request.digest():
            raise exceptions.AlreadyExistsError(
                f"there is a job {request.id} already, with another content (launch "
                f"{short(handle.id)}, {state_of(info)})\n"
                "  give another id, or delete that job first: troupe job delete " + request.id
            )
    return handle


def _token(session: Any, job: str) -> dict[str, Any] | None:
    """Return a token by which the job's processes come from whichever node; None on a cluster of
    this process, which has no other hosts."""
    if session.embedded is not None:
        return None
    asked = {"role": "client", "ttl_s": _TOKEN_S, "note": f"job {job}"}
    for _ in range(_TOKEN_TRIES - 1):
        # The head was lost under the request: a token that nobody has been told only takes room.
        with contextlib.suppress(exceptions.UnknownOutcomeError):
            return dict(session.request("CreateToken", asked)[1])
    return dict(session.request("CreateToken", asked)[1])


def _give_back(session: Any, token: Mapping[str, Any] | None) -> None:
    if token is not None:
        with contextlib.suppress(exceptions.TroupeError):  # nobody has it: it only takes room
            session.request("RevokeToken", {"id": token["id"]})


def _line(request: JobRequest, token: str, is_by_token: bool) -> _program.Line:
    job_env = {
        name: value
        for name, value in request.runtime_env.items()
        if name in ("env_vars", "pip", "uv")
    }
    asked = {
        "CPU": request.cpus,
        "GPU": request.gpus,
        "memory": request.memory,
        **request.resources,
    }
    return _program.Line(
        COMMAND,
        request.command[0],
        request.command[1:],
        1,
        {"setup": JobStart(request.id, token, job_env, is_by_token)},
        per_rank=asked,
    )


def _options(request: JobRequest, token: str) -> Any:
    asked: dict[str, Any] = {
        "gpus" if request.gpus else "processes": 1,
        "name": request.name or request.command[0].rpartition("/")[2][:100],
        "cpus_per_rank": request.cpus,
        "memory": request.memory,
        "priority": request.priority,
        "max_attempts": request.retries + 1,
        "timeout": request.timeout_s,
        "stop_grace": request.grace_s,
        "runtime_env": dict(request.runtime_env),
        "remote": True,
        "detach": True,
        "tracking": False,
    }
    about = {
        "id": request.id,
        "user": getpass.getuser(),
        "digest": request.digest(),
        "token": token,
        **travelled.pieces("command", request.line[:4000]),
        **(
            travelled.pieces("metadata", json.dumps(dict(request.metadata)))
            if request.metadata
            else {}
        ),
    }
    return replace(_function.options_of("a job", asked), door=DOOR, about=about)


# ---- found again ----


def info_of(session: Any, launch: str) -> dict[str, Any]:
    """Return the LaunchInfo of a launch, as the head knows it now."""
    return dict(session.request("GetLaunch", {"launch": launch})[1]["info"])


def infos(session: Any) -> list[dict[str, Any]]:
    """Return the LaunchInfos of the jobs that the cluster keeps, the latest first, without those
    that were deleted."""
    gone = set(session.request("KvList", {"scope": SCOPE, "prefix": ""})[1]["keys"])
    found = [
        each for each in view.iter_launches(session) if is_job(each) and each["launch"] not in gone
    ]
    return sorted(found, key=lambda each: -each["submitted_us"])


def is_job(info: Mapping[str, Any]) -> bool:
    """Return True if the launch of this LaunchInfo is a job's."""
    return travelled.door(info) == DOOR


def id_of(info: Mapping[str, Any]) -> str:
    """Return the id of the job of this LaunchInfo."""
    found: str = travelled.about(info).get("id", info["launch"])
    return found


def beginning(session: Any, job: str) -> list[dict[str, Any]]:
    """Return the LaunchInfos of the jobs, but for deleted ones, whose id, or whose launch's id,
    begins so."""
    return [
        each
        for each in view.find_launches(session, job)
        if is_job(each)
        and (id_of(each).startswith(job) or each["launch"].startswith(job.lower()))
        and not session.request("KvGet", {"scope": SCOPE, "key": each["launch"]})[2]
    ]


def find(session: Any, job: str) -> dict[str, Any]:
    """Return the LaunchInfo of the job with that id, or with an id, of the job or its launch, that
    begins so. Raises NotFoundError."""
    known = beginning(session, job)
    found = [each for each in known if id_of(each) == job] or known
    if len(found) != 1:
        raise exceptions.NotFoundError(
            f"{'several jobs have' if found else 'there is no job with'} an id that begins with "
            f"{job!r}; see: troupe job list --all"
        )
    return found[0]


def handle_of(session: Any, info: Mapping[str, Any]) -> LaunchHandle:
    """Return the handle of a job's launch."""
    return handle_of_known(session, info["launch"])


def describe(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job as `--json` shows it (docs/guides/jobs.md)."""
    about, holds = travelled.about(info), resources.from_wire(info["per_rank"])
    state, node = state_of(info), next(iter(info["rank_infos"]), None)
    return {
        "id": id_of(info),
        "launch": info["launch"],
        "name": info["name"],
        "user": info["user"] or about.get("user", ""),
        "command": travelled.whole(about, "command"),
        "state": str(state),
        "stopping": info["state"] == "stopping",
        "exit_code": exit_code_of(info) if state.is_terminal else None,
        "cause": cause_of(info),
        "waiting_for": info["waiting_for"],
        "queue_place": info["queue_place"],
        "attempt": info["epoch"] - info["preemptions"],
        "attempts_max": info["attempts_max"],
        "priority": info["priority"],
        "cpus": holds.pop("CPU", 0.0),
        "gpus": int(holds.pop("GPU", 0)),
        "memory_bytes": int(holds.pop("memory", 0)),
        "resources": holds,
        "node": node["node_name"] if node else "",
        "submitted_s": info["submitted_us"] / 1e6,
        "duration_s": info["duration_ms"] / 1e3,
        "metadata": json.loads(travelled.whole(about, "metadata") or "{}"),
    }


def delete(session: Any, info: Mapping[str, Any]) -> None:
    """Forget a job that has ended: it is listed no more, and its id is free.

    Raises ValueError for one that has not ended.
    """
    if info["state"] != "terminal":
        raise ValueError(
            f"job {id_of(info)} is {state_of(info)}: only a job that has ended is deleted\n  "
            f"troupe job stop {id_of(info)}"
        )
    for key in session.request("KvList", {"scope": SCOPE, "prefix": ""})[1]["keys"]:
        launch = bytes(session.request("KvGet", {"scope": SCOPE, "key": key})[2]).decode()
        if not view.find_launches(session, launch):  # the cluster has forgotten it
            session.request("KvDelete", {"scope": SCOPE, "key": key})
    for key in (f"id/{id_of(info)}", info["launch"]):
        session.request(
            "KvPut", {"scope": SCOPE, "key": key, "overwrite": True}, info["launch"].encode()
        )


def _deleted(session: Any, job: str) -> str:
    """Return the launch of the latest deleted job with that id; "": there is none."""
    return bytes(session.request("KvGet", {"scope": SCOPE, "key": f"id/{job}"})[2]).decode()
