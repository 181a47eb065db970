"""Past events: troupe.state.list_events, Ray's list_cluster_events, `troupe list events`, and
list_runtime_envs."""

from __future__ import annotations

import os
import signal

import pytest
from conftest import TIMEOUT_S, Home, eventually

import troupe
from troupe import exceptions
from troupe.util import state


@troupe.remote(num_cpus=0)
class Fragile:
    """Ends in several ways."""

    def crash(self) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)

    def variable(self, name: str) -> str:
        return os.environ.get(name, "")


@troupe.remote
def crash() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def messages(source: str) -> list[tuple[str, str]]:
    return [
        (each["severity"], each["message"])
        for each in troupe.state.list_events()
        if each["source"] == source
    ]


def test_what_crashed_is_told_afterwards_and_what_was_ended_is_not(idle: Home) -> None:
    before = len(messages("actor"))
    fragile, wanted = Fragile.remote(), Fragile.remote()
    troupe.get(wanted.__ray_ready__.remote(), timeout=TIMEOUT_S)
    with pytest.raises(exceptions.ActorDiedError):
        troupe.get(fragile.crash.remote(), timeout=TIMEOUT_S)
    troupe.kill(wanted)
    with pytest.raises(exceptions.WorkerCrashedError):
        troupe.get(crash.options(max_retries=0).remote(), timeout=TIMEOUT_S)
    eventually(lambda: len(messages("actor")) == before + 2, what="both crashes")
    (severity, actor), (_, task) = messages("actor")[before:]
    assert severity == "error" and actor.startswith("Fragile ended: ") and "SIGSEGV" in actor
    assert task.startswith("a process for tasks ended: ") and "SIGKILL" in task
    first, last = troupe.state.list_events()[0], state.list_cluster_events()[-1]
    assert first["source"] == "head" and first["message"].startswith(
        "the head started (incarnation "
    )
    assert last.source_type == "ACTOR" and last.severity == "ERROR" and "SIGKILL" in last.message
    assert [
        each.message
        for each in state.list_cluster_events(filters=[("source_type", "=", "ACTOR")], limit=1)
    ] == [task]
    shown = idle.run("list", "events").stdout
    assert "the head started" in shown and "Fragile ended: " in shown and "node" in shown
    assert idle.json("list", "events")[0]["event_id"] == first["event_id"]


def test_the_environments_that_were_asked_for(idle: Home) -> None:
    env = {"env_vars": {"COLOUR": "green"}}
    made = [Fragile.options(runtime_env=env).remote() for _ in range(2)]
    assert troupe.get([each.variable.remote("COLOUR") for each in made], timeout=TIMEOUT_S) == [
        "green",
        "green",
    ]
    [found] = [each for each in state.list_runtime_envs() if each.runtime_env == env]
    assert found.ref_cnt == 2
