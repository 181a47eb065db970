"""Output of actors, tasks and ranks, read back: `troupe logs`, and Ray's list_logs and get_log."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from conftest import TIMEOUT_S, Home, eventually

import troupe
from troupe.launch import distributed, ray_launch
from troupe.util import state


@troupe.remote(num_cpus=0)
class Speaker:
    def say(self, text: str) -> int:
        print(text, flush=True)
        print(f"aside: {text}", file=sys.stderr, flush=True)
        return os.getpid()


@troupe.remote(num_cpus=0)
def murmur(text: str) -> int:
    print(text, flush=True)
    return os.getpid()


def test_logs_of_an_actor_while_it_lives_and_after(cluster: Home) -> None:
    actor = Speaker.options(max_restarts=1).remote()
    troupe.get(actor.say.remote("one"), timeout=TIMEOUT_S)
    identity = actor._actor_id.hex()
    assert cluster.run("logs", identity[:12]).stdout == "one\naside: one\n"
    assert cluster.json("logs", identity) == {"actor": identity, "lines": ["one", "aside: one"]}
    with subprocess.Popen(
        [sys.executable, "-m", "troupe", "logs", identity, "--follow"],
        stdout=subprocess.PIPE,
        text=True,
    ) as follower:
        assert {follower.stdout.readline(), follower.stdout.readline()} == {"one\n", "aside: one\n"}
        troupe.get(actor.say.remote("two"), timeout=TIMEOUT_S)
        assert {follower.stdout.readline(), follower.stdout.readline()} == {"two\n", "aside: two\n"}
        troupe.kill(actor)
        assert follower.stdout.read() == "" and follower.wait(TIMEOUT_S) == 0
    assert cluster.run("logs", identity).stdout == "one\ntwo\naside: one\naside: two\n"
    refused = cluster.run("logs", identity, "--rank", "1", ok=False)
    assert (
        refused.returncode == 2
        and "--rank is for launches" in refused.stderr
        and "Speaker" in refused.stderr
    )


def test_logs_of_an_actor_that_waits_say_that_there_are_none(cluster: Home) -> None:
    waits = Speaker.options(num_cpus=2).remote()
    behind = [Speaker.options(num_cpus=2).remote() for _ in range(4)]
    last = eventually(
        lambda: [
            each
            for each in troupe.state.list_actors()
            if each["state"] == "pending" and each["waiting_for"]
        ],
        what="an actor that waits for CPUs",
    )[0]
    refused = cluster.run("logs", last["actor_id"], ok=False)
    for actor in [waits, *behind]:
        troupe.kill(actor)
    assert refused.returncode == 1 and "has written nothing: it is on no node" in refused.stderr


def test_get_log_by_all_that_names_one(cluster: Home) -> None:
    actor = Speaker.remote()
    pid = troupe.get([actor.say.remote(f"line {n}") for n in range(5)], timeout=TIMEOUT_S)[0]
    runner = troupe.get(murmur.remote("from a task"), timeout=TIMEOUT_S)
    identity = actor._actor_id.hex()
    said = [f"line {n}" for n in range(5)]
    (node,) = state.list_nodes()
    assert list(state.get_log(actor_id=identity)) == said
    assert list(state.get_log(actor_id=identity, suffix="err", tail=2)) == [
        "aside: line 3",
        "aside: line 4",
    ]
    assert (
        list(state.get_log(pid=pid, node_id=node.node_id))
        == said
        == list(state.get_log(pid=pid, node_ip=node.node_ip))
    )
    assert list(state.get_log(pid=runner)) == ["from a task"]
    names = state.list_logs(node_id=node.node_id, glob_filter=f"*{identity}*")
    assert names == {
        "worker_out": [f"worker-{identity}.out"],
        "worker_err": [f"worker-{identity}.err"],
    }
    assert list(state.get_log(filename=names["worker_out"][0], tail=1)) == ["line 4"]
    assert state.list_logs(node_id="00") == {}
    follow = state.get_log(actor_id=identity, follow=True)
    assert [next(follow) for _ in said] == said
    troupe.kill(actor)
    assert list(follow) == []


def test_get_log_of_a_launch(cluster: Home) -> None:
    def speak() -> None:
        print("rank", os.environ["RANK"], flush=True)

    launch = ray_launch(processes=2, remote=True)(speak).submit()
    launch.result(TIMEOUT_S)
    assert (
        next(state.get_log(submission_id=launch.id)) == "rank 0"
    )  # the driver's output: the other rank serves it
    names = state.list_logs(glob_filter=f"launch-{launch.id}-*")
    assert sorted(names["job_out"]) == [f"launch-{launch.id}-rank-{rank}.out" for rank in (0, 1)]
    assert next(state.get_log(filename=names["job_out"][0])) == "rank 0"


FRAME = (
    "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x9d (0x7fa0f737305d in "
    "/lib/libc10.so)"
)


@distributed(processes=2, remote=True)
def lose_a_store() -> None:
    """Rank 1 writes what torch does of a connection that it has lost."""
    if os.environ["RANK"] == "1":
        print(
            "Exception raised from recvBytes at Utils.hpp:682 (most recent call first):",
            *[FRAME] * 20,
            "",
            "gone on",
            sep="\n",
            file=sys.stderr,
        )
    print("done", flush=True)


def test_cpp_frames_are_in_the_file_and_not_shown(
    cluster: Home, capfd: pytest.CaptureFixture[str]
) -> None:
    lose_a_store.distributed()
    shown = capfd.readouterr().err.splitlines()
    at = shown.index(
        "[1] Exception raised from recvBytes at Utils.hpp:682 (most recent call first):"
    )
    notice = re.fullmatch(
        r"\[1\] \.\.\. C\+\+ frames left out here; all of it: troupe (logs [0-9a-f]{4}) \.\.\.",
        shown[at + 1],
    )
    assert notice is not None and shown[at + 2] == "[1] gone on", shown
    assert cluster.run(*notice[1].split()).stdout.count(FRAME) == 20


def test_what_is_no_log_is_said_at_once(cluster: Home) -> None:
    for wrong, why in (
        ({}, "one of filename, actor_id, pid, submission_id"),
        ({"actor_id": "00", "pid": 1}, "not actor_id and pid"),
        ({"actor_id": "00"}, "no actor 00"),
        ({"pid": 1}, "has run in process 1"),
        ({"submission_id": "00"}, "no launch 00"),
        ({"filename": "x.out"}, "no log 'x.out'"),
        ({"task_id": "00"}, "the log of its process"),
        ({"actor_id": "00", "suffix": "log"}, "'out' or 'err'"),
        ({"pid": 1, "node_ip": "192.0.2.1"}, "no node has the address 192.0.2.1"),
        ({"actor_id": "00", "address": "there:1"}, "address="),
    ):
        with pytest.raises(ValueError, match=why):
            state.get_log(**wrong)
