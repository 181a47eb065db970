"""Logs over HTTP: pages and streams of jobs, ranks and actors that run, have ended, or were on a
node that is gone.

Method: a head with a worker and a node that came by TLS, real processes; server-sent events are
read as they come.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually
from http_head import Answer, Client

import troupe
from troupe.launch import distributed

ENDLESS = "import signal; signal.pause()"
FRESH = {"Cache-Control": "no-cache"}


class Cluster:
    """A head, and a node that is killed by a test; and an observer's requests."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.started = home.json("start", "--head", "--port", "0", "--num-cpus", "4")
        self.client = Client(home, self.started)
        self.observer = home.json("token", "create", "--role", "observer")
        self.token: str = self.observer["token"]

    def get(self, path: str, **more: Any) -> Answer:
        return self.client.get(f"/api/v1/logs/{path}", self.token, headers=FRESH, **more)

    def follow(self, path: str, token: str = "", last: str = "") -> Followed:
        return Followed(self.client, f"/api/v1/logs/{path}", token or self.token, last)

    def submit(self, identity: str, script: str, *options: str) -> None:
        command = [sys.executable, "-uc", script]
        self.home.run("job", "submit", "--id", identity, *options, "--", *command)


class Followed:
    """A log that is followed."""

    def __init__(self, client: Client, path: str, token: str, last: str) -> None:
        self._connection = client.connect()
        headers = {"Authorization": f"Bearer {token}"} | ({"Last-Event-ID": last} if last else {})
        self._connection.request("GET", path, headers=headers)
        self._response: http.client.HTTPResponse = self._connection.getresponse()
        assert self._response.status == 200, self._response.read()
        assert self._response.headers["Content-Type"] == "text/event-stream"

    def __iter__(self) -> Iterator[tuple[str, Any, str]]:
        """Yield the events' names, data and ids, to the stream's end."""
        found: dict[str, str] = {}
        for line in self._response:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                found[name] = value
            elif "event" in found:
                yield found["event"], json.loads(found["data"]), found.get("id", "")
                found = {}
        self._connection.close()

    def text_until(self, wanted: str) -> tuple[str, str]:
        """Read up to this text; return all that has come, and the last event's id."""
        text = ""
        for event, data, identity in self:
            assert event == "log", (event, data)
            text += data["text"]
            if wanted in text:
                return text, identity
        raise AssertionError(f"the stream ended before {wanted!r}: {text!r}")


@pytest.fixture(scope="module")
def cluster(shared_home: Home) -> Iterator[Cluster]:
    made = Cluster(shared_home)
    troupe.init(made.started["address"])
    yield made
    troupe.shutdown()


def test_a_job_that_has_ended_is_read_by_pages(cluster: Cluster) -> None:
    cluster.submit("paged", "print('one'); print('two')")
    cluster.home.run("job", "wait", "paged")
    whole = cluster.get("jobs/paged")
    assert (whole.status, whole.text) == (200, "one\ntwo\n"), whole.text
    assert whole.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert whole.headers["Troupe-Log-Next"] == "8"
    part = cluster.get("jobs/paged?offset=4&limit=3")
    assert part.text == "two" and part.headers["Troupe-Log-Offset"] == "4"
    assert part.headers["Troupe-Log-Ended"] == "false"
    end = cluster.get("jobs/paged?offset=8")
    assert (end.text, end.headers["Troupe-Log-Ended"]) == ("", "true")
    [(_, data, identity), (last, end_data, _)] = cluster.follow("jobs/paged?follow=1")
    assert (data["text"], identity) == ("one\ntwo\n", "1-8")
    assert (last, end_data) == ("end", {"state": "SUCCEEDED", "why": ""})
    [(event, _, _)] = cluster.follow("jobs/paged?follow=1", last="1-8")
    assert event == "end", "nothing is told twice"


def test_a_job_is_followed_over_its_attempts_to_its_end(cluster: Cluster, tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    script = (
        "import os, sys\n"
        "attempt = os.environ['TROUPE_JOB_ATTEMPT']\n"
        "print('attempt', attempt, '\\u20ac')\n"
        f"if attempt == '1': open({str(go)!r}).read()\n"
        "sys.exit(attempt == '1')\n"
    )
    # All processors are held: the other job waits, and has no log yet.
    cluster.submit("held", ENDLESS, "--cpus", "4")
    cluster.submit("followed", script, "--retries", "1")
    empty = cluster.get("jobs/followed")
    assert (empty.status, empty.text, empty.headers["Troupe-Log-Ended"]) == (200, "", "false")
    stream = cluster.follow("jobs/followed?follow=1")
    cluster.home.run("job", "stop", "held")
    text, identity = stream.text_until("\n")
    assert text == "attempt 1 \u20ac\n"
    go.write_text("")
    rest = list(stream)
    assert [event for event, _, _ in rest] == ["attempt", "log", "end"], rest
    assert rest[0][1] == {"attempt": 2} and rest[1][1]["text"] == "attempt 2 \u20ac\n"
    assert rest[2][1] == {"state": "SUCCEEDED", "why": ""}
    again = [event for event, _, _ in cluster.follow("jobs/followed?follow=1", last=identity)]
    assert again == ["attempt", "log", "end"], "one that was cut off in an earlier attempt"


def test_ranks_and_actors_have_two_streams(cluster: Cluster) -> None:
    @distributed(processes=2, remote=True, quiet=True)
    def train() -> None:
        rank = os.environ["RANK"]
        print("out of", rank)
        print("err of", rank, file=sys.stderr)

    handle = train.submit()
    handle.result(timeout=TIMEOUT_S)
    launch = f"launches/{handle.id}"
    assert cluster.get(launch).text == "out of 0\n"
    assert cluster.get(f"{launch}?rank=1&stream=stderr").text == "err of 1\n"
    assert cluster.get(f"{launch[:-20]}?rank=1").text == "out of 1\n", "an id may be cut"
    beyond = cluster.get(f"{launch}?rank=2")
    assert beyond.status == 404 and "ranks 0 to 1, not 2" in beyond.json()["error"]["message"]

    @troupe.remote
    class Talker:
        def say(self) -> None:
            print("said", flush=True)

    talker = Talker.remote()
    troupe.get(talker.say.remote())
    actor = f"actors/{talker._link.actor}"
    assert eventually(lambda: cluster.get(actor).text == "said\n", what="the actor's output")
    stream = cluster.follow(f"{actor}?follow=1")
    assert stream.text_until("\n")[0] == "said\n"
    troupe.kill(talker)
    assert list(stream) == [("end", {"state": "dead", "why": ""}, "")]


def test_what_cannot_be_meant_is_refused_with_its_reason(cluster: Cluster) -> None:
    cluster.submit("asked", "print('x')")
    for path, why in {
        "jobs/asked?offset=-1": "offset must be",
        "jobs/asked?limit=0": "limit must be",
        "jobs/asked?limit=1048577": "limit must be",
        "jobs/asked?follow=yes": "follow must be",
        "jobs/asked?follow=1&limit=5": "has no limit",
        "jobs/asked?stream=stderr": "no parameter 'stream'",
        "jobs/asked?rank=0": "no parameter 'rank'",
        "launches/0123?rank=-1": "rank must be",
        "actors/0123?stream=x": "stream must be",
    }.items():
        answer = cluster.get(path)
        assert answer.status == 400 and why in answer.json()["error"]["message"], answer.text
    for kind in ("jobs", "launches", "actors"):
        for query in ("", "?follow=1"):
            answer = cluster.get(f"{kind}/no-such-id{query}")
            assert answer.status == 404, answer.text
            assert "there is none with this id" in answer.json()["error"]["message"]
    assert cluster.get("trials/0123").status == 404


def test_a_revoked_token_ends_a_stream(cluster: Cluster) -> None:
    cluster.submit("endless", "print('going');" + ENDLESS)
    made = cluster.home.json("token", "create", "--role", "observer")
    stream = cluster.follow("jobs/endless?follow=1", made["token"])
    assert stream.text_until("\n")[0] == "going\n"
    cluster.home.run("token", "revoke", made["id"])
    [(event, data, _)] = stream
    assert event == "end" and "revoked" in data["why"], data
    cluster.home.run("job", "stop", "endless")


def test_a_log_whose_node_is_gone(cluster: Cluster) -> None:
    joined = cluster.home.json(
        "start", "--address", cluster.started["address"], "--token-file", cluster.home.token(),
        "--node-name", "gone", "--num-cpus", "8", "--resources", '{"there": 1}', "--force-tcp",
    )  # fmt: skip
    there = {"resources": {"there": 0.1}, "num_cpus": 0}

    @troupe.remote(**there)
    class Talker:
        def say(self) -> None:
            print("said", flush=True)

    cluster.submit("kept", "print('kept')", "--cpus", "6")  # there is room for it there alone
    cluster.home.run("job", "wait", "kept")
    talker = Talker.remote()
    troupe.get(talker.say.remote())
    actor = f"actors/{talker._link.actor}"
    eventually(lambda: cluster.get(actor).text == "said\n", what="the actor's output")
    stream = cluster.follow(f"{actor}?follow=1")
    assert stream.text_until("\n")[0] == "said\n"
    os.kill(joined["pid"], signal.SIGKILL)

    def refused() -> Answer | None:
        answer = cluster.get(actor)
        return answer if answer.status == 404 else None

    message = eventually(refused, what="the loss of the node").json()["error"]["message"]
    assert message.startswith("node gone, which keeps this log, is gone"), message
    *_, (event, data, _) = stream
    assert event == "end" and data["state"] == "dead", data
    assert "which keeps this log, is gone" in data["why"], data
    kept = cluster.get("jobs/kept")
    assert (kept.status, kept.text) == (200, "kept\n")
    assert kept.headers["Troupe-Log-Kept"] == "head" and kept.headers["Troupe-Log-Ended"] == "true"
    events = {event: data for event, data, _ in cluster.follow("jobs/kept?follow=1")}
    assert "is gone" in events["kept"]["why"] and events["log"]["text"] == "kept\n"
    assert events["end"] == {"state": "SUCCEEDED", "why": ""}
