# Method: a head alone, and two nodes that came by TLS, as from other hosts; workers and the head
#     are killed while jobs run, wait and are followed.
from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually

import troupe
from troupe import exceptions
from troupe._cluster import connect
from troupe.job_submission import JobStatus, JobSubmissionClient, _jobs


class Cluster:
    """The head and two nodes, and what jobs need of them."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.head = home.json("start", "--head", "--no-worker", "--port", "0")
        self.address: str = self.head["address"]
        self.workers = {name: self.join(name) for name in ("a", "b")}

    def join(self, name: str) -> int:
        """Start a node with one CPU, and return the pid of its worker."""
        joined = self.home.json(
            "start",
            "--address",
            self.address,
            "--token-file",
            self.home.token(),
            "--node-name",
            name,
            "--num-cpus",
            "1",
            "--force-tcp",
        )
        return int(joined["pid"])

    def restart_head(self) -> None:
        os.kill(self.head["pid"], signal.SIGKILL)
        eventually(
            lambda: not Path(f"/proc/{self.head['pid']}/exe").exists(), what="the head's end"
        )
        self.head = self.home.json("start", "--head", "--no-worker")


@pytest.fixture(scope="module")
def two_nodes(shared_home: Home) -> Iterator[Cluster]:
    made = Cluster(shared_home)
    troupe.init(made.address)
    eventually(
        lambda: all(node["zygote_ready"] for node in troupe.state.list_nodes()),
        timeout=3 * TIMEOUT_S,
        what="the zygotes",
    )
    yield made
    troupe.shutdown()


COMES = """
import os, troupe
print(open(os.environ["TROUPE_TOKEN_FILE"]).read().strip())
assert not os.environ["TROUPE_ADDRESS"].startswith("unix:")
troupe.init()
@troupe.remote(num_cpus=0)
class Kept:
    def place(self):
        return "still here"
kept = Kept.options(name="kept", namespace="jobs", lifetime="detached").remote()
print(troupe.get(kept.place.remote()), len(troupe.nodes()))
"""


def test_a_job_on_another_host_comes_by_a_token_that_is_worth_nothing_after_it(
    two_nodes: Cluster, tmp_path: Path
) -> None:
    client = JobSubmissionClient(two_nodes.address)
    script = tmp_path / "comes.py"
    script.write_text(COMES)
    job = client.submit_job(entrypoint=f"{sys.executable} {script}", metadata={"team": "blue"})
    assert client.wait(job, 3 * TIMEOUT_S) == 0, client.get_job_logs(job)
    token, said = client.get_job_logs(job).splitlines()
    assert said == "still here 2"
    seen = client.get_job_info(job)
    assert (seen.status, seen.entrypoint, seen.metadata, seen.driver_exit_code) == (
        JobStatus.SUCCEEDED,
        f"{sys.executable} {script}",
        {"team": "blue"},
        0,
    )
    file = tmp_path / "token"
    file.touch(mode=0o600)
    file.write_text(token)
    with pytest.raises((exceptions.JoinError, exceptions.ConnectionError)):
        connect.connect(two_nodes.address, str(file)).close()
    kept = troupe.get_actor("kept", namespace="jobs")
    assert troupe.get(kept.place.remote()) == "still here", (
        "a detached actor outlives the token it came by"
    )
    troupe.kill(kept)
    assert client.delete_job(job) and job not in [each.submission_id for each in client.list_jobs()]
    with pytest.raises(RuntimeError, match="there is no job"):
        client.get_job_status(job)


def test_a_job_outlives_its_head_and_those_who_wait_and_follow_do_too(
    two_nodes: Cluster, tmp_path: Path
) -> None:
    gate, home = tmp_path / "gate", two_nodes.home
    os.mkfifo(gate)
    running = home.run(
        "job", "submit", "--", "sh", "-c", f"echo before; read line < {gate}; echo after; exit 5"
    ).stdout.strip()
    waiting = home.run(
        "job", "submit", "--cpus", "1", "--after", running, "--", "true"
    ).stdout.strip()
    commands = [
        subprocess.Popen(
            [sys.executable, "-m", "troupe", "job", *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for args in (("logs", "-f", running), ("wait", running))
    ]
    following, waited = commands
    assert following.stdout is not None and following.stdout.readline() == "before\n"
    eventually(lambda: _watchers(running) >= 2, what="both commands' watching")
    two_nodes.restart_head()
    gate.write_text("go\n")
    out, err = following.communicate(timeout=3 * TIMEOUT_S)
    assert (following.returncode, out) == (5, "after\n"), err
    _, err = waited.communicate(timeout=3 * TIMEOUT_S)
    assert waited.returncode == 5, err
    assert home.run("job", "wait", waiting, ok=False).returncode == 1, "a job after one that failed"


def _watchers(job: str) -> int:
    return int(_jobs.find(connect.session_here(), job)["watchers"])


def test_a_head_that_is_killed_while_jobs_are_submitted_and_stopped_loses_and_doubles_none(
    two_nodes: Cluster, tmp_path: Path
) -> None:
    client = JobSubmissionClient(two_nodes.address)
    names = [f"burst-{number}" for number in range(12)]
    line = f"echo $TROUPE_SUBMISSION_ID >> {tmp_path}/ran; exec sleep 1000"

    def each_with_a_kill_between(act: Callable[[str], object]) -> None:
        """Do it for all, one after the other; the head is killed under the fifth or sixth."""
        told = threading.Event()

        def kill() -> None:
            told.wait(TIMEOUT_S)
            two_nodes.restart_head()

        with ThreadPoolExecutor(1) as pool:
            killed = pool.submit(kill)
            for number, name in enumerate(names):
                if number == 4:
                    told.set()
                act(name)
            killed.result()

    each_with_a_kill_between(lambda name: client.submit_job(entrypoint=line, submission_id=name))
    seen = [each.submission_id for each in client.list_jobs()]
    assert sorted(each for each in seen if each in names) == sorted(names), "each of them once"
    ran = tmp_path / "ran"
    eventually(
        lambda: ran.exists() and len(ran.read_text().splitlines()) >= len(names),
        timeout=3 * TIMEOUT_S,
        what="all of them",
    )
    each_with_a_kill_between(client.stop_job)
    eventually(
        lambda: all(client.get_job_status(name) is JobStatus.STOPPED for name in names),
        timeout=3 * TIMEOUT_S,
        what="the end of all of them",
    )
    assert sorted(ran.read_text().split()) == sorted(names), "none was started twice"


def test_a_job_whose_node_is_killed_starts_again_elsewhere_or_fails_with_that_cause(
    two_nodes: Cluster, tmp_path: Path
) -> None:
    home = two_nodes.home
    command = (
        f'touch {tmp_path}/$TROUPE_JOB_ATTEMPT; [ "$TROUPE_JOB_ATTEMPT" = 2 ] || sleep 1000; '
        "echo said"
    )
    again = home.run("job", "submit", "--retries", "1", "--", "sh", "-c", command).stdout.strip()
    eventually((tmp_path / "1").exists, what="the first attempt")
    node = _jobs.describe(_jobs.find(connect.session_here(), again))["node"]
    os.kill(two_nodes.workers[node], signal.SIGKILL)
    assert home.run("job", "wait", again, timeout=3 * TIMEOUT_S).returncode == 0
    seen = _jobs.describe(_jobs.find(connect.session_here(), again))
    assert (seen["attempt"], seen["state"]) == (2, "SUCCEEDED") and seen["node"] != node
    lost = home.run("job", "submit", "--", "sleep", "1000").stdout.strip()
    eventually(
        lambda: _jobs.describe(_jobs.find(connect.session_here(), lost))["state"] == "RUNNING",
        what="its start",
    )
    os.kill(two_nodes.workers[seen["node"]], signal.SIGKILL)
    assert home.run("job", "wait", lost, ok=False, timeout=3 * TIMEOUT_S).returncode not in (0, 130)
    assert seen["node"] in _jobs.describe(_jobs.find(connect.session_here(), lost))["cause"]
    kept = home.run("job", "logs", again).stdout.splitlines()
    assert "the head keeps only the last 1 MiB" in kept[0] and kept[1:] == ["said"]
