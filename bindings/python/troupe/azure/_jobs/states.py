"""States of jobs in the service's words, and jobs as the cluster knows them."""

from __future__ import annotations

from typing import Any

from troupe._code import travelled
from troupe.azure import _start
from troupe.azure._jobs import about
from troupe.azure._jobs.job import Job, made_at

TERMINAL = ("Completed", "Failed", "Canceled")
_STATUS = {
    "queued": "Queued",
    "reserving": "Queued",
    "starting": "Preparing",
    "running": "Running",
    "stopping": "CancelRequested",
}
_ENDED = {"succeeded": "Completed", "failed": "Failed", "cancelled": "Canceled"}


def status_of(info: dict[str, Any]) -> str:
    """A launch's state in the service's word."""
    return (
        _ENDED.get(info["outcome"], "Failed")
        if info["state"] == "terminal"
        else _STATUS.get(info["state"], "Running")
    )


def job_of(info: dict[str, Any]) -> Job:
    job = Job(
        info["name"],
        info["launch"],
        status_of(info),
        nodes=len(info["nodes"]),
        processes=info["ranks"],
        about=about.told(info),
        created=made_at(info["submitted_us"] / 1e6, info.get("user", "")),
    )
    job.is_command_job = travelled.door(info) == _start.DOOR
    return job
