# Method: a script that is written for Ray, run by `troupe run-as` against a head and a worker; it
#     submits jobs by Ray's class and by Ray's command.
from __future__ import annotations

from pathlib import Path

import pytest
from e2e_conftest import Home

import troupe
from troupe.job_submission import JobStatus, JobSubmissionClient

SCRIPT = """
import asyncio, subprocess, sys
from ray.job_submission import JobInfo, JobStatus, JobSubmissionClient

USES_RAY = "import ray, os; ray.init(); print(ray.get(ray.remote(lambda: os.environ['COLOUR']).remote()))"

async def told(client, job):
    return "".join([text async for text in client.tail_job_logs(job)])

def ray(*args):
    return subprocess.run(["ray", "job", *args], capture_output=True, text=True)

client = JobSubmissionClient("http://127.0.0.1:8265")
open("uses_ray.py", "w").write(USES_RAY)
job = client.submit_job(entrypoint=f"{sys.executable} uses_ray.py && ray job list && exit 4", submission_id="by-class", metadata={"team": "blue"},
                        runtime_env={"env_vars": {"COLOUR": "red"}}, entrypoint_num_cpus=1)
assert job == "by-class" and client.get_job_status(job) in (JobStatus.PENDING, JobStatus.RUNNING, JobStatus.FAILED)
lines = asyncio.run(told(client, job)).splitlines()
assert lines[0] == "red" and lines[1].startswith("by-class  RUNNING  "), lines
info = client.get_job_info(job)
assert info.status is JobStatus.FAILED and info.status.is_terminal() and info.driver_exit_code == 4 and info.metadata == {"team": "blue"}, info
assert info.end_time >= info.start_time and info.submission_id == job and "exit 4" in info.entrypoint

done = ray("submit", "--submission-id", "by-command", "--runtime-env-json", '{"env_vars": {"COLOUR": "blue"}}', "--", sys.executable, "uses_ray.py")
assert done.returncode == 0 and "Job 'by-command' submitted successfully\\nblue\\nJob 'by-command' succeeded\\n" == done.stdout, done
assert ray("logs", "by-command").stdout == "blue\\n"
assert "by-command" in ray("list").stdout and "succeeded" in ray("status", "by-command").stdout
assert ray("submit", "--no-wait", "--submission-id", "long", "--", "sleep", "1000").returncode == 0
assert "stopped" in ray("stop", "long").stdout and client.get_job_status("long") is JobStatus.STOPPED
assert not client.stop_job("long") and ray("delete", "long").returncode == 0
missing = ray("status", "long")
assert missing.returncode == 1 and "there is no job 'long'" in missing.stderr, missing
try:
    client.submit_job(entrypoint="true", submission_id="by-class")
except RuntimeError as error:
    assert "another content" in str(error)
else:
    raise AssertionError("an id that was used before")
print("all of it")
"""


def test_a_script_written_for_ray_submits_jobs_by_class_and_command(
    cluster: Home, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = cluster.python(
        f"import os, sys; os.chdir({str(tmp_path)!r}); os.execv(sys.executable, [sys.executable, "
        "'-m', 'troupe', 'run-as', 'script.py'])"
    )
    assert done.stdout.endswith("all of it\n"), done.stderr
    # The job's command from a shell, without a script around it.
    job = cluster.run(
        "run-as", "ray", "job", "submit", "--", "sh", "-c", "which ray; exit 3", ok=False
    )
    assert job.returncode == 3 and "ray-command" in job.stdout, job.stderr


def test_arguments_that_cannot_be_meant_are_refused_before_anything_starts(cluster: Home) -> None:
    client = JobSubmissionClient()
    before = len(client.list_jobs())
    for wrong, error in (
        ({"entrypoint": ["true"]}, TypeError),
        ({"entrypoint": ""}, ValueError),
        ({"entrypoint": "true", "submission_id": "a/b"}, ValueError),
        ({"entrypoint": "true", "entrypoint_num_gpus": 0.5}, ValueError),
        ({"entrypoint": "true", "entrypoint_num_cpus": 1e6}, troupe.PlacementError),
        ({"entrypoint": "true", "metadata": {"a": 1}}, TypeError),
        ({"entrypoint": "true", "metadata": {"a": "b" * 5000}}, ValueError),
        ({"entrypoint": "true", "runtime_env": {"no_such_key": 1}}, ValueError),
    ):
        with pytest.raises(error):
            client.submit_job(**wrong)
    assert len(client.list_jobs()) == before and JobStatus.PENDING == "PENDING"
