"""RL: what a rank, an actor, a holder of a worker's token and an observer may ask the head for, at
    its port and through a worker.

Method: a head and a node, real processes; the driver of one client makes an actor and a launch that
ask, another client has an actor, a group, a value and a launch. The table itself is walked in
tests/head/roles_test.cc.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from typing import Any

import cloudpickle
import pytest
from conftest import Home, eventually

import troupe
from troupe._base.bridge import native
from troupe._cluster import blobs, session, workers
from troupe.launch import ray_launch

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # actors would not find this file

ID = "0" * 31 + "1"
GOVERNING = [
    ("CreateToken", {"role": "client"}),
    ("ListTokens", {}),
    ("RevokeToken", {"id": ID}),
    ("StopCluster", {}),
    ("DrainNode", {"node": ID}),
]


def said_to(control: Any, asked: list[tuple[str, dict]]) -> list[str]:
    """The errors of these requests, "" where there was none."""
    texts = []
    for kind, fields in asked:
        try:
            control.request(kind, fields, b"", 60)
        except troupe.exceptions.TroupeError as error:
            texts.append(str(error))
        except ValueError as error:  # values that an argument can never be
            texts.append(str(error))
        else:
            texts.append("")
    return texts


class Asks:
    def ask(self, asked: list[tuple[str, dict]]) -> list[str]:
        return said_to(session.current().control, asked)


class Sleeps:
    def echo(self, value: int) -> int:
        return value


@pytest.fixture(scope="module")
def other(cluster: Home) -> Iterator[dict[str, Any]]:
    """The possessions of another client: `acts` on them, and a check that all are there still."""
    address = session.current().address
    control = native.ControlClient.connect(
        address, token_file=cluster.token("--role", "client"), timeout=60
    )
    actor, group = "1" * 32, "2" * 32
    control.request(
        "CreateGroup",
        {
            "group": group,
            "bundles": [{"index": 0, "resources": [{"name": "CPU", "ten_thousandths": 10000}]}],
        },
        b"",
        60,
    )
    control.request(
        "CreateActor",
        {"spec": {"actor": actor, "class_name": "Sleeps", "group": group}},
        b"no class: it ends before it is there",
        60,
    )
    control.request("KvPut", {"scope": "others", "key": "k"}, b"value", 60)
    launch = control.request(
        "SubmitLaunch",
        {
            "spec": {"name": "of another", "mode": "command", "ranks": 1000, "attempts_max": 1},
            "request": "3" * 32,
        },
        b"",
        60,
    )[1]["launch"]
    acts = [
        ("KvGet", {"scope": "others", "key": "k"}),
        ("KvPut", {"scope": "others", "key": "k"}),
        ("KvDelete", {"scope": "others", "key": "k"}),
        ("CancelLaunch", {"launch": launch, "hard": True}),
        ("GetResult", {"launch": launch}),
        ("RemoveGroup", {"group": group}),
        ("KillActor", {"actor": actor}),
        ("CreateActor", {"spec": {"actor": "4" * 32, "class_name": "Sleeps", "group": group}}),
        ("Complete", {"launch": launch, "epoch": 1, "outcome": "succeeded"}),
    ]

    def untouched() -> bool:
        state = control.request("GetLaunch", {"launch": launch}, b"", 60)[1]["info"]["state"]
        there = control.request("GetGroup", {"group": group}, b"", 60)[1]["info"]["state"]
        return (
            state != "terminal"
            and there != "removed"
            and control.request("KvGet", {"scope": "others", "key": "k"}, b"", 60)[2] == b"value"
        )

    yield {"acts": acts, "untouched": untouched, "address": address}
    control.close()


def test_RL1_an_actor_governs_nothing_and_leaves_others_alone(
    cluster: Home, other: dict[str, Any]
) -> None:
    actor = troupe.remote(Asks).remote()
    texts = troupe.get(actor.ask.remote(GOVERNING), timeout=120)
    assert all("a rank or an actor may not" in text for text in texts), texts
    texts = troupe.get(actor.ask.remote(other["acts"]), timeout=120)
    assert all("belongs to another client" in text for text in texts), texts
    assert other["untouched"]()


def test_RL1_a_rank_governs_nothing_and_leaves_others_alone(
    cluster: Home, other: dict[str, Any]
) -> None:
    @ray_launch(processes=1, remote=True)
    def drive(governing: list, acts: list) -> tuple[list[str], list[str]]:
        control = session.current().control
        return said_to(control, governing), said_to(control, acts)

    [(governed, acted)] = drive.distributed(GOVERNING, other["acts"])
    assert all("a rank or an actor may not" in text for text in governed), governed
    assert all("belongs to another client" in text for text in acted), acted
    assert other["untouched"]()


def test_RL2_on_what_their_own_client_made_they_act(cluster: Home) -> None:
    made = troupe.remote(Sleeps).remote()
    assert troupe.get(made.echo.remote(1), timeout=60) == 1
    [named] = [
        info["actor"]
        for info in session.current().request("ListActors")[1]["actors"]
        if info["class_name"] == "Sleeps" and info["state"] == "alive"
    ]
    actor = troupe.remote(Asks).remote()
    own = [
        ("KvPut", {"scope": "mine", "key": "k"}),
        ("KvGet", {"scope": "mine", "key": "k"}),
        ("KvDelete", {"scope": "mine", "key": "k"}),
        ("ListActors", {}),
        ("GetStatus", {}),
        ("KillActor", {"actor": named}),
    ]
    assert troupe.get(actor.ask.remote(own), timeout=120) == [""] * len(own)
    with pytest.raises(troupe.exceptions.ActorDiedError):
        eventually(
            lambda: troupe.get(made.echo.remote(1), timeout=60) != 1, what="the end of the actor"
        )


def test_RL1_a_workers_token_reads_nothing_at_another_node_and_leaves_nothing_there(
    cluster: Home, other: dict[str, Any]
) -> None:
    """By the certificate that the token is worth: it fetches payloads, by their digest.

    A client's reads there what it wants.
    """
    control = native.ControlClient.connect(
        other["address"], token_file=cluster.token("--role", "worker"), role="worker", timeout=60
    )
    [node] = workers.node_infos(session.current())
    where = node["listen_host"], node["listen_port"], node["node"]
    actor = troupe.remote(Sleeps).remote()
    assert troupe.get(actor.echo.remote(1), timeout=60) == 1
    log = {"actor": actor._link.actor, "stderr": False, "offset": 0, "bytes_max": 100}
    blob = blobs.put(session.current(), b"payload")
    asked = [
        ("ReadLog", log),
        ("ReadLogs", {"streams": [], "bytes_max": 100}),
        ("ReadStacks", {"actor": actor._link.actor}),
        ("ReadTimeline", {"since_ms": 1000}),
        ("ReadProfile", {"actor": actor._link.actor, "duration_ms": 1000, "rate_per_s": 10}),
        ("PutBlob", {"sha256": hashlib.sha256(b"x").digest(), "offset": 0, "size_bytes": 1}),
    ]
    at_node = control.connect_worker(*where)
    texts = said_to(at_node, asked)
    assert texts == [f"this worker does not answer {kind} to a worker" for kind, _ in asked], texts
    assert (
        at_node.request("GetBlob", {"sha256": blob["sha256"], "offset": 0}, b"", 60)[2]
        == b"payload"
    )
    assert said_to(session.current().control.connect_worker(*where), asked[:1]) == [""]
    control.close()


@pytest.mark.parametrize("role", ["worker", "observer"])
def test_RL1_a_token_of_another_role_is_no_client(
    cluster: Home, other: dict[str, Any], role: str
) -> None:
    control = native.ControlClient.connect(
        other["address"], token_file=cluster.token("--role", role), role=role, timeout=60
    )
    wanted = {"worker": "a worker speaks for its node", "observer": "an observer may look"}[role]
    for kind, fields in [*GOVERNING, *other["acts"], ("SubmitLaunch", {}), ("CreateGroup", {})]:
        [text] = said_to(control, [(kind, fields)])
        # A worker says DrainNode of itself, and this one is no node.
        assert (
            wanted if (role, kind) != ("worker", "DrainNode") else "no node has joined"
        ) in text, (kind, text)
    control.close()
    assert other["untouched"]()
    eventually(
        lambda: all(node["state"] == "alive" for node in troupe.state.list_nodes()),
        what="the node, not drained",
    )
