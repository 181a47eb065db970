"""Routes that change something: jobs are submitted and stopped over HTTP.

Method: one head with a worker, real processes; requests by Python's http.client, jobs looked at by
`troupe job`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually
from http_head import Answer, Client

JOBS = "/api/v1/jobs"


class Head:
    """A running head, and a client of it with a token."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.started = home.json("start", "--head", "--port", "0", "--num-cpus", "3")
        self.client = Client(home, self.started)
        self.token = home.run("token", "create", "--role", "client").stdout.strip()

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        """Make a POST request with a JSON body."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        text = body if isinstance(body, str) or body is None else json.dumps(body)
        return self.client.request("POST", path, self.token, body=text, headers=named)

    def jobs(self) -> list[str]:
        """Return the ids of all jobs."""
        return [each["id"] for each in self.home.json("job", "list", "--all")]

    def wait(self, job: str) -> int:
        """Return the exit code of a job."""
        waiting = self.home.run("job", "wait", job, ok=False, timeout=3 * TIMEOUT_S)
        return int(waiting.returncode)


@pytest.fixture(scope="module")
def head(shared_home: Home) -> Iterator[Head]:
    yield Head(shared_home)


DRIVER = """
import os, troupe
troupe.init()
print(os.environ["COLOUR"], os.environ["TROUPE_SUBMISSION_ID"], troupe.cluster_resources()["CPU"])
"""


def test_a_job_is_submitted_over_http_and_drives_the_cluster(head: Head) -> None:
    asked = {
        "command": [sys.executable, "-c", DRIVER],
        "name": "posted",
        "env": {"COLOUR": "red"},
        "metadata": {"team": "blue"},
    }
    answer = head.post(JOBS, asked, Idempotency_Key="nightly")
    assert answer.status == 201, answer.text
    job = answer.json()["id"]
    again = head.post(JOBS, asked, Idempotency_Key="nightly")
    assert (again.status, again.json()) == (200, answer.json()), "the same job"
    other = head.post(JOBS, {**asked, "name": "other"}, Idempotency_Key="nightly")
    assert other.status == 409 and "another content" in other.text
    assert head.wait(job) == 0, head.home.run("job", "logs", job).stdout
    assert head.home.run("job", "logs", job).stdout == f"red {job} 3.0\n"
    shown = head.home.json("job", "show", job)
    assert (shown["name"], shown["metadata"], shown["launch"]) == (
        "posted",
        {"team": "blue"},
        answer.json()["launch"],
    )
    assert head.client.get(f"{JOBS}/{job}", head.token).json()["name"] == "posted"
    tokens = head.home.json("token", "list")
    notes = [each["note"] for each in tokens if each["state"] == "good"]
    assert not [each for each in notes if each.startswith("job ")], "their tokens ended with them"


def test_jobs_and_launches_are_stopped_over_http(head: Head) -> None:
    for noun in ("jobs", "launches"):
        asked = {"command": "echo ready; exec sleep 1000", "grace_s": 60}
        made = head.post(JOBS, asked).json()
        eventually(
            lambda made=made: head.home.run("job", "logs", made["id"]).stdout == "ready\n",
            what="its first line",
        )
        path = f"/api/v1/{noun}/{made['id' if noun == 'jobs' else 'launch']}/stop"
        assert head.post(path, {"grace_s": "soon"}).status == 400
        answer = head.post(path, {"grace_s": 0.1, "reason": "enough"})
        assert (answer.status, answer.json()["has_ended"]) == (202, False), answer.text
        assert head.wait(made["id"]) == 130
        assert "enough" in head.home.json("job", "show", made["id"])["cause"]
        answer = head.post(path)
        assert (answer.status, answer.json()["has_ended"]) == (200, True), answer.text


def test_what_is_refused_does_nothing(head: Head) -> None:
    before = head.jobs()
    large = json.dumps({"command": "true", "name": "x" * (1 << 20)})
    assert head.post(JOBS, large).status == 413
    assert head.post(f"{JOBS}/{before[0]}/stop", large).status == 413
    assert head.client.request("GET", JOBS, head.token, body="{}").status == 413
    observer = head.home.run("token", "create", "--role", "observer").stdout.strip()
    good = json.dumps({"command": "true"})
    assert head.client.request("POST", JOBS, observer, body=good).status == 403
    assert head.client.request("POST", JOBS, body=good).status == 401
    for body, status in (
        ("", 400),
        ("{", 400),
        ({"command": "true", "colour": "red"}, 400),
        ({"command": "true", "gpus": 64}, 400),
        ({"command": "true", "after": ["nobody"]}, 400),
    ):
        answer = head.post(JOBS, body)
        assert answer.status == status, (body, answer.text)
    assert head.jobs() == before
