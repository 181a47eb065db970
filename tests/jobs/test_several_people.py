# Method: one node whose head is the administrator's, and commands of alice and bob, each by a token
#     of theirs; then the head is killed and started again.
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from e2e_conftest import Home, eventually

import troupe
from troupe._cluster import session

pytestmark = pytest.mark.long


class Person:
    """Somebody with a token of their own."""

    def __init__(self, home: Home, name: str) -> None:
        self._home = home
        self._by = (
            "--address",
            session.current().address,
            "--token-file",
            home.token("--role", "client", "--owner", name),
        )

    def run(self, *args: str, ok: bool = True) -> subprocess.CompletedProcess:
        """Run a command of `troupe` as this person."""
        split = args.index("--") if "--" in args else len(args)
        return self._home.run(*args[:split], *self._by, *args[split:], ok=ok)

    def submit(self, *args: str) -> str:
        """Submit a job and return its id."""
        return str(self.run("job", "submit", *args).stdout.strip())

    def job(self, job: str) -> dict[str, Any]:
        """Return a job as --json shows it."""
        return dict(json.loads(self.run("job", "show", job, "--json").stdout))


@pytest.fixture(scope="module")
def alice(cluster: Home) -> Person:
    return Person(cluster, "alice")


@pytest.fixture(scope="module")
def bob(cluster: Home) -> Person:
    return Person(cluster, "bob")


def held(home: Home, owner: str) -> dict[str, Any]:
    """Return one owner of `troupe usage --json`."""
    (row,) = home.json("usage", owner)["owners"]
    return dict(row)


WHO = "import json, subprocess, sys; print(json.loads(subprocess.check_output([sys.executable, "
WHO += "'-m', 'troupe', 'usage', '--json']))['you'])"


def test_what_a_person_starts_is_theirs_and_so_is_what_their_job_starts(
    cluster: Home, alice: Person
) -> None:
    job = alice.submit("--name", "asks", "--", sys.executable, "-c", WHO)
    assert alice.run("job", "wait", job).returncode == 0
    log = alice.run("job", "logs", job).stdout
    assert log.split() == ["alice"], "its processes come by the job's token on the head's host, too"
    assert [each["id"] for each in json.loads(alice.run("job", "list", "--json").stdout)] == [job]
    assert alice.job(job)["user"] == "alice"
    listed = json.loads(cluster.run("job", "list", "--all", "--json").stdout)
    assert [(each["id"], each["user"]) for each in listed] == [(job, "alice")]
    tokens = json.loads(cluster.run("token", "list", "--json").stdout)
    assert {each["owner"] for each in tokens if each["note"] == f"job {job}"} == {"alice"}
    own = cluster.json("usage")
    assert own["you"] not in ("alice", "") and own["total"]["CPU"] == 8.0


def test_caps_hold_for_one_owner_and_name_cap_and_use(
    cluster: Home, alice: Person, bob: Person
) -> None:
    (quota,) = json.loads(
        cluster.run(
            "quota", "set", "alice", "--cpus", "3", "--running", "1", "--queued", "1", "--json"
        ).stdout
    )
    assert quota["quota"] == {"gpus": None, "cpus": 3.0, "running": 1, "queued": 1}
    sleep = ("--", "sleep", "600")
    first = alice.submit("--name", "first", *sleep)
    eventually(lambda: held(cluster, "alice")["running"] == 1, what="the first job's place")
    second = alice.submit("--name", "second", *sleep)
    waits = alice.job(second)
    assert waits["state"] == "QUEUED"
    assert waits["waiting_for"] == (
        "quota: the quota of alice is 1 running launch (1 now); this asks for 1 running launch"
    )
    assert waits["waiting_for"] in cluster.run("explain", waits["launch"]).stdout
    third = alice.run("job", "submit", *sleep, ok=False)
    assert third.returncode == 1
    assert "no more launches of alice may wait: the quota of alice is 1 waiting launch (1 now)" in (
        third.stderr
    )
    large = alice.run("job", "submit", "--cpus", "4", *sleep, ok=False)
    assert large.returncode == 1
    assert (
        "this asks for 4 CPUs and could never start: the quota of alice is 3 CPUs (1 in use)"
        in (large.stderr)
    )
    of_bob = bob.submit("--cpus", "4", *sleep)
    eventually(lambda: bob.job(of_bob)["state"] == "RUNNING", what="bob's job")
    table = cluster.run("usage").stdout
    assert "1 of 1" in table and "1 of 3" in table
    refused = alice.run("quota", "set", "alice", "--running", "9", ok=False)
    assert refused.returncode == 1
    assert "only the administrator of this cluster sets quotas" in refused.stderr
    other = alice.run("token", "create", "--owner", "bob", ok=False)
    assert "only the administrator of this cluster makes tokens for others" in other.stderr
    cluster.run("quota", "set", "alice", "--running", "none")
    eventually(lambda: alice.job(second)["state"] == "RUNNING", what="the second job")
    for person, job in ((alice, first), (alice, second), (bob, of_bob)):
        person.run("job", "stop", "--grace", "0", job)


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["set", "alice"], "give at least one of --gpus, --cpus, --running, --queued"),
        (["set", "alice", "--gpus", "-1"], "no number from 0"),
        (["set", "alice", "--gpus", "nan"], "no number from 0"),
        (["set", "alice", "--running", "1.5"], "no whole number from 0"),
        (["set", "two words", "--gpus", "1"], "the name of an owner begins with a letter or digit"),
    ],
)
def test_a_quota_that_cannot_be_meant_is_refused(cluster: Home, args: list[str], text: str) -> None:
    refused = cluster.run("quota", *args, ok=False)
    assert refused.returncode in (1, 2) and text in refused.stderr
    assert "Traceback" not in refused.stderr


def test_quotas_and_owners_outlive_a_head_that_is_killed(cluster: Home, alice: Person) -> None:
    cluster.run("quota", "set", "alice", "--gpus", "0.5", "--cpus", "3", "--queued", "none")
    job = alice.submit("--", "sleep", "600")
    eventually(lambda: held(cluster, "alice")["held"].get("CPU") == 1.0, what="the job's place")
    troupe.shutdown()
    pid = cluster.json("status")["pid"]
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not Path(f"/proc/{pid}/exe").exists(), what="the head's end")
    cluster.run("start", "--head", "--no-worker")
    (row,) = json.loads(cluster.run("quota", "list", "--json").stdout)
    assert row["owner"] == "alice" and row["held"] == {"CPU": 1.0} and row["running"] == 1
    assert row["quota"] == {"gpus": 0.5, "cpus": 3.0, "running": None, "queued": None}
    eventually(lambda: alice.job(job)["user"] == "alice", what="the job, found again")
    alice.run("job", "stop", "--grace", "0", job)
    cluster.run("quota", "remove", "alice")
    assert json.loads(cluster.run("quota", "list", "--json").stdout) == []
