"""Jobs: commands that a cluster runs as drivers of the whole of it, detached from whoever submitted
    them.

    from troupe.job_submission import JobSubmissionClient
    client = JobSubmissionClient("10.0.0.1:6400")
    job = client.submit_job(entrypoint="python train.py", runtime_env={"working_dir": "."})

The names are Ray's; under `troupe run-as` this is `ray.job_submission`. The command is `troupe
job`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from troupe.job_submission._client import (
        DriverInfo,
        JobDetails,
        JobInfo,
        JobStatus,
        JobSubmissionClient,
        JobType,
    )

__all__ = ["DriverInfo", "JobDetails", "JobInfo", "JobStatus", "JobSubmissionClient", "JobType"]


def __getattr__(name: str) -> Any:
    """Return one of the names. A job's process needs none of them on its way to its command."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("troupe.job_submission._client"), name)
