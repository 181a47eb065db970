# Method: `troupe job` in processes of its own against a head and a worker; the commands of jobs are
#     shells and Pythons.
from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually

import troupe
from troupe._cluster import connect
from troupe.job_submission import _jobs, _labels, _output


def submit(home: Home, *args: str) -> str:
    """The id that `troupe job submit ARGS` prints."""
    return home.run("job", "submit", *args).stdout.strip()


def wait(job: str) -> int:
    """The exit code of a job, once it has ended."""
    session = connect.session_here()
    ended = _jobs.handle_of(session, _jobs.find(session, job)).wait_state(
        lambda now: now["state"] == "terminal", 3 * TIMEOUT_S
    )
    return _jobs.exit_code_of(ended)


def shown(job: str) -> dict:
    """A job as --json shows it."""
    session = connect.session_here()
    return _jobs.describe(_jobs.find(session, job))


def logs(job: str) -> list[str]:
    session = connect.session_here()
    return list(_output.read(session, _jobs.find(session, job)))


def left(mark: str) -> bool:
    """Return True if a process with this word in its command line is alive."""
    return any(
        mark.encode() in each.read_bytes()
        for each in Path("/proc").glob("[0-9]*/cmdline")
        if _is_readable(each)
    )


def _is_readable(path: Path) -> bool:
    try:
        return bool(path.read_bytes())
    except OSError:
        return False


def test_a_job_is_a_command_with_an_id_a_state_a_log_and_an_exit_code(cluster: Home) -> None:
    job = submit(
        cluster,
        "--name",
        "three",
        "--env",
        "COLOUR=red",
        "--",
        "sh",
        "-c",
        "echo out; echo err >&2; echo $COLOUR; exit 3",
    )
    assert job.startswith("job-") and "\n" not in job, "the id alone"
    assert cluster.run("job", "wait", job, ok=False).returncode == 3
    assert logs(job) == ["out", "err", "red"], "one log, in the order of writing"
    assert cluster.run("job", "logs", "--tail", "1", job).stdout == "red\n"
    seen = cluster.json("job", "show", job[:10])
    assert (
        seen["id"],
        seen["name"],
        seen["state"],
        seen["exit_code"],
        seen["cpus"],
        seen["attempt"],
    ) == (job, "three", "FAILED", 3, 1.0, 1)
    assert (
        seen["command"].startswith("sh -c ") and seen["node"] == "one" and not seen["waiting_for"]
    )
    assert job in [each["id"] for each in cluster.json("job", "list")]
    assert job in cluster.run("job", "list", "--state", "failed").stdout
    followed = cluster.run(
        "job", "submit", "-f", "--", "sh", "-c", "echo here; kill -9 $$", ok=False
    )
    assert (
        followed.returncode == 128 + 9
        and followed.stdout == "here\n"
        and "failed" in followed.stderr
    )


DRIVER = """
import os, troupe
assert not {name for name in os.environ if name in ("RANK", "WORLD_SIZE", "MASTER_PORT", "TROUPE_LAUNCH_ID", "NCCL_SOCKET_IFNAME")}, os.environ
troupe.init()
@troupe.remote
class Counter:
    def colour(self):
        return os.environ.get("COLOUR")
made = Counter.remote()
kept = Counter.options(name="kept", namespace="jobs", lifetime="detached").remote()
print(troupe.get([made.colour.remote(), kept.colour.remote()]), made._actor_id.hex())
from troupe.launch import distributed
@distributed(processes=2, remote=True, quiet=True)
def rank():
    return int(os.environ["RANK"])
print(rank.distributed())
print(os.environ["TROUPE_NAMESPACE"] == troupe.get_runtime_context().namespace, troupe.cluster_resources()["CPU"])
"""


def test_a_job_drives_the_whole_cluster_and_what_it_made_ends_with_it_but_for_detached_actors(
    cluster: Home,
) -> None:
    job = submit(cluster, "--env", "COLOUR=red", "--", sys.executable, "-c", DRIVER)
    assert wait(job) == 0, logs(job)
    lines = logs(job)
    colours, _, made = lines[0].rpartition(" ")
    assert colours == "['red', 'red']", "the environment of a job is that of its actors"
    assert lines[1:] == ["[0, 1]", "True 8.0"]
    eventually(
        lambda: (
            next(each for each in troupe.state.list_actors() if each["actor_id"] == made)["state"]
            == "dead"
        ),
        what="the end of its actor",
    )
    kept = troupe.get_actor("kept", namespace="jobs")
    assert troupe.get(kept.colour.remote()) == "red"
    troupe.kill(kept)


def test_stopping_ends_the_whole_process_group_and_kills_what_ignores_sigterm(
    cluster: Home,
) -> None:
    mark = f"troupe-{uuid.uuid4().hex}"
    polite = submit(
        cluster,
        "--",
        "sh",
        "-c",
        f"trap 'echo told; exit 0' TERM; echo ready; sh -c 'sleep 1000; : {mark}' & wait",
    )
    deaf = submit(
        cluster,
        "--",
        "sh",
        "-c",
        f"trap '' TERM; echo ready; sh -c 'sleep 1000; : {mark}'; sleep 1000",
    )
    for job in (polite, deaf):
        eventually(lambda job=job: logs(job) == ["ready"], what="its first line")
    # As soon as the polite one has said its word, its end does not take its grace; the deaf one
    # takes all of its own.
    assert cluster.json("job", "stop", polite)[0]["state"] == "STOPPED"
    ended = cluster.json("job", "stop", "--grace", "0.5", deaf)
    assert (ended[0]["state"], ended[0]["exit_code"]) == ("STOPPED", 130)
    assert logs(polite) == ["ready", "told"] and wait(polite) == wait(deaf) == 130
    eventually(lambda: not left(mark), what="the end of their children")
    assert "already" in cluster.run("job", "stop", deaf).stdout


def test_a_command_that_ends_takes_along_what_it_left_in_the_background(cluster: Home) -> None:
    mark = f"troupe-{uuid.uuid4().hex}"
    job = submit(cluster, "--", "sh", "-c", f"setsid sh -c 'sleep 1000; : {mark}' & echo gone")
    assert wait(job) == 0 and logs(job) == ["gone"]
    eventually(lambda: not left(mark), what="the end of what it started")


def test_retries_are_attempts_with_logs_of_their_own(cluster: Home) -> None:
    job = submit(
        cluster,
        "--retries",
        "1",
        "--",
        "sh",
        "-c",
        'echo attempt $TROUPE_JOB_ATTEMPT; [ "$TROUPE_JOB_ATTEMPT" = 2 ]',
    )
    assert wait(job) == 0
    assert logs(job) == ["attempt 2"] and cluster.run(
        "job", "logs", "--previous", job
    ).stdout.splitlines() == ["attempt 1"]
    assert (shown(job)["attempt"], shown(job)["attempts_max"]) == (2, 2)


def test_an_id_used_before_is_the_same_job_or_refused_until_that_is_deleted(cluster: Home) -> None:
    key = ("--idempotency-key", "nightly")
    first = submit(cluster, *key, "--", "sh", "-c", "echo one")
    assert submit(cluster, *key, "--", "sh", "-c", "echo one") == first
    assert wait(first) == 0
    assert submit(cluster, "--id", first, "--", "sh", "-c", "echo one") == first
    assert len([each for each in cluster.json("job", "list") if each["id"] == first]) == 1
    refused = cluster.run("job", "submit", "--id", first, "--", "sh", "-c", "echo two", ok=False)
    assert refused.returncode == 1 and "another content" in refused.stderr
    cluster.run("job", "delete", first)
    assert cluster.run("job", "show", first, ok=False).returncode == 2
    assert (
        submit(cluster, "--id", first, "--", "sh", "-c", "echo two") == first and wait(first) == 0
    )
    assert logs(first) == ["two"]


def test_bad_input_is_refused_or_fails_with_its_cause(cluster: Home) -> None:
    for args, text in (
        (("--", "no-such-command"), "there is no command no-such-command"),
        (("--",), "nothing to run"),
        (("--gpus", "64", "--", "true"), "64"),
        (("--id", "a b", "--", "true"), "is no id"),
        (("--after", "nobody", "--", "true"), "nobody"),
        (("--id", "a", "--idempotency-key", "b", "--", "true"), "one or the other"),
    ):
        refused = cluster.run("job", "submit", *args, ok=False)
        assert (
            refused.returncode in (1, 2)
            and text in refused.stderr
            and "Traceback" not in refused.stderr
        ), refused.stderr
    for verb in ("show", "logs", "stop"):
        assert cluster.run("job", verb, "nobody", ok=False).returncode == 2
    job = submit(
        cluster, "--env", "PIP_NO_INDEX=1", "--pip", "no-such-thing-anywhere==1.0", "--", "true"
    )
    assert wait(job) == 1
    assert "No matching distribution found for no-such-thing-anywhere==1.0" in shown(job)["cause"]
    late = submit(cluster, "--timeout", "0.5", "--grace", "0", "--", "sleep", "1000")
    assert wait(late) == 124 and shown(late)["state"] == "FAILED"


def test_ctrl_c_ends_the_following_and_not_the_job(cluster: Home) -> None:
    job = submit(cluster, "--", "sh", "-c", "echo early; echo ready; sleep 1000")
    eventually(lambda: logs(job) == ["early", "ready"], what="its lines")
    assert cluster.run("job", "delete", job, ok=False).returncode == 1, "it has not ended"
    assert cluster.run("job", "wait", "--timeout", "0.1", job, ok=False).returncode == 124
    with subprocess.Popen(
        [sys.executable, "-m", "troupe", "job", "logs", "-f", "--tail", "1", job],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ},
    ) as following:
        assert following.stdout is not None and following.stderr is not None
        assert following.stdout.readline() == "ready\n"
        following.send_signal(signal.SIGINT)
        assert f"job {job} goes on" in following.stderr.read()
        assert following.wait(timeout=TIMEOUT_S) == 130
    assert shown(job)["state"] == "RUNNING"
    cluster.run("job", "stop", "--grace", "0", job)


def test_logs_since_some_time_leave_out_what_is_older(cluster: Home, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    job = submit(cluster, "--", "sh", "-c", f"echo old; read line < {gate}; echo new")
    session = connect.session_here()

    def since(seconds: float) -> list[str]:
        return list(_output.read(session, _jobs.find(session, job), since_s=seconds))

    eventually(lambda: logs(job) == ["old"], what="its first line")
    # By the file's own time; the worker notes the length of a log about a second later.
    eventually(lambda: since(6) == [], what="some time after its first line")
    begin = time.time()
    gate.write_text("go\n")
    assert wait(job) == 0
    assert since(time.time() - begin + 3) == ["new"], "the question takes time, too"
    assert cluster.run("job", "logs", "--since", "1h", job).stdout == "old\nnew\n"
    assert cluster.run("job", "logs", "-f", "--since", "1h", job).stdout == "old\nnew\n"
    refused = cluster.run("job", "logs", "--since", "soon", job, ok=False)
    assert refused.returncode == 2 and "is no duration" in refused.stderr


def test_the_last_mib_of_a_log_is_there_when_its_files_are_not(cluster: Home) -> None:
    script = "print('begin'); print('\\n'.join('x' * 1000 for _ in range(1500))); print('end')"
    job = submit(cluster, "--", sys.executable, "-c", script)
    assert wait(job) == 0
    folder = next(cluster.path.rglob(f"logs/{shown(job)['launch']}"))
    shutil.rmtree(folder)
    lines = cluster.run("job", "logs", job).stdout.splitlines()
    assert "the head keeps only the last 1 MiB of it" in lines[0]
    assert set(lines[1:-1]) == {"x" * 1000} and lines[-1] == "end"
    assert 1_000_000 < len("\n".join(lines[1:])) <= 1 << 20
    followed = cluster.run("job", "logs", "-f", "--tail", "1", job)
    assert followed.stdout == "end\n"


@pytest.mark.parametrize(
    "code, state", [(0, "SUCCEEDED"), (1, "FAILED")], ids=["success", "failure"]
)
def test_a_job_after_another_waits_for_its_success_and_fails_with_it(
    cluster: Home, tmp_path: Path, code: int, state: str
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    first = submit(cluster, "--", "sh", "-c", f"read line < {gate}; exit {code}")
    second = submit(cluster, "--after", first, "--", "echo", "second")
    third = submit(cluster, "--after", second, "--", "echo", "third")
    waits = shown(second)
    assert waits["state"] == "QUEUED" and "the end of launch" in waits["waiting_for"]
    gate.write_text("go\n")
    assert [wait(each) for each in (first, second, third)] == [code, code, code]
    assert shown(third)["state"] == state
    if code:
        assert "it was to start after" in shown(second)["cause"]
        assert (
            cluster.run("job", "submit", "--after", second, "--", "true", ok=False).returncode == 1
        )


@pytest.mark.parametrize(
    ("selector", "accepted"),
    [
        ("team=blue", True),
        ("team==blue,stage", True),
        ("team = blue , !draft", True),
        ("team!=red,owner!=eve", True),
        ("empty=", True),
        ("team=blue,stage=dev", False),
        ("!team", False),
        ("owner", False),
        ("team!=blue", False),
        ("team=", False),
    ],
)
def test_a_selector_is_about_names_and_values(selector: str, accepted: bool) -> None:
    metadata = {"team": "blue", "stage": "test", "empty": ""}
    assert all(each.accepts(metadata) for each in _labels.read_selector(selector)) is accepted


@pytest.mark.parametrize("selector", ["", "a=b,", "!a=b", "=b", "a=b=c", "a b"])
def test_what_is_no_selector_is_refused(selector: str) -> None:
    with pytest.raises(ValueError, match="is no condition"):
        _labels.read_selector(selector)


def test_jobs_are_listed_by_their_metadata(cluster: Home) -> None:
    blue = submit(cluster, "--metadata", "team=blue", "--metadata", "stage=dev", "--", "true")
    red = submit(cluster, "--metadata", "team=red", "--", "true")

    def found(selector: str) -> set[str]:
        return {each["id"] for each in cluster.json("job", "list", "-l", selector)}

    assert found("team=blue") == {blue} == found("team,stage=dev")
    assert found("team,!stage") == {red} and found("team") == {blue, red}
    assert cluster.json("job", "show", blue)["metadata"] == {"team": "blue", "stage": "dev"}
    for line in (["list", "-l", "a=b=c"], ["submit", "--metadata", "team", "--", "true"]):
        refused = cluster.run("job", *line, ok=False)
        assert refused.returncode == 2 and "NAME=VALUE" in refused.stderr
    assert [wait(each) for each in (blue, red)] == [0, 0]
