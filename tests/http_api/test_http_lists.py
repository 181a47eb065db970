"""The JSON API: nodes, actors, launches, jobs, placement groups and events, page by page.

Method: one head with a worker, real processes; the rows are compared with what `troupe.state` says
of the same things.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import cloudpickle
import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually
from http_head import Client

import troupe
from troupe import state
from troupe.launch import distributed
from troupe.util.placement_group import placement_group, remove_placement_group

cloudpickle.register_pickle_by_value(sys.modules[__name__])
FRESH = {"Cache-Control": "no-cache"}


class Api:
    """Makes GET requests as an observer and returns their documents."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.started = home.json("start", "--head", "--port", "0", "--num-cpus", "4")
        self.client = Client(home, self.started)
        self.token = home.run("token", "create", "--role", "observer").stdout.strip()

    def get(self, path: str, status: int = 200) -> Any:
        answer = self.client.get(f"/api/v1/{path}", self.token, headers=FRESH)
        assert answer.status == status, (path, answer.text)
        assert answer.headers["Content-Type"] == "application/json"
        return answer.json()

    def items(self, path: str) -> list[dict[str, Any]]:
        return list(self.get(path)["items"])


@pytest.fixture(scope="module")
def api(shared_home: Home) -> Iterator[Api]:
    made = Api(shared_home)
    troupe.init(made.started["address"])
    yield made
    troupe.shutdown()


class Named:
    def ready(self) -> bool:
        return True


def test_actors_are_listed_filtered_and_paged(api: Api) -> None:
    cls = troupe.remote(num_cpus=0)(Named)
    named = [cls.options(name=f"list-{i}").remote() for i in range(5)]
    assert troupe.get([each.ready.remote() for each in named]) == [True] * 5
    strange = '"<b>\\ \x1b[31mé'
    odd = cls.options(name=strange).remote()
    assert troupe.get(odd.ready.remote())
    rows = {each["actor_id"]: each for each in api.items("actors")}
    for seen in state.list_actors():
        assert {name: rows[seen["actor_id"]][name] for name in seen} == seen
    assert strange in [each["name"] for each in rows.values()]
    paged: list[str] = []
    after = ""
    while True:
        page = api.get(f"actors?state=alive&class_name=Named&limit=4{after}")
        assert page["total"] == 6 and len(page["items"]) <= 4
        paged += [each["actor_id"] for each in page["items"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert paged == sorted(key for key, row in rows.items() if row["state"] == "alive")
    one = rows[paged[0]]
    assert api.get(f"actors/{one['actor_id']}") == one
    assert api.get(f"actors/{one['actor_id'][:12]}") == one
    assert "error" in api.get("actors/ffffffffffff", 404)
    assert [each["name"] for each in api.items("actors?name=list-3")] == ["list-3"]
    assert api.items("actors?name=none") == []
    for refused in ("limit=0", "limit=1001", "limit=x", "colour=red"):
        assert "error" in api.get(f"actors?{refused}", 400)
    del named, odd


def test_nodes_groups_and_events_say_what_the_state_api_says(api: Api) -> None:
    (node,) = api.items("nodes")
    (seen,) = state.list_nodes()
    for name in ("node_id", "name", "state", "host", "address", "pid", "resources", "labels"):
        assert node[name] == seen[name], name
    assert api.get(f"nodes/{node['node_id']}")["node_id"] == node["node_id"]
    group = placement_group([{"CPU": 1}], name="grouped")
    assert troupe.get(group.ready(), timeout=TIMEOUT_S)
    (row,) = api.items("placement_groups?state=created")
    assert row["name"] == "grouped" and row["bundles_to_node_id"] == {"0": node["node_id"]}
    assert row["bundles"] == [{"index": 0, "resources": {"CPU": 1}}]
    assert api.get(f"placement_groups/{row['placement_group_id']}") == row
    remove_placement_group(group)
    events = api.items("events")
    assert [each["message"] for each in events] == [each["message"] for each in state.list_events()]
    number = events[0]["event_id"].partition("-")[2]
    assert api.items(f"events?after={number}") == events[1:]
    assert api.items("events?limit=1") == events[:1]


def test_launches_and_jobs(api: Api) -> None:
    @distributed(processes=2, remote=True, name="twice")
    def twice() -> int:
        return 2

    launch = twice.submit()
    assert launch.result(TIMEOUT_S) == [2, 2]
    (row,) = api.items("launches?name=twice")
    assert row["state"] == "succeeded" and row["ranks"] == 2 and row["job"] == ""
    whole = api.get(f"launches/{row['id']}")
    assert [each["outcome"] for each in whole["rank_list"]] == ["succeeded"] * 2
    job = api.home.run("job", "submit", "--id", "listed", "--", "true").stdout.strip()
    assert job == "listed"
    api.home.run("job", "wait", job)
    (row,) = api.items("jobs")
    assert (row["id"], row["state"], row["exit_code"]) == ("listed", "SUCCEEDED", 0)
    assert api.get("jobs/listed") == row and api.items("jobs?state=FAILED") == []
    assert api.get(f"launches/{row['launch']}")["job"] == "listed"
    api.home.run("job", "delete", job)
    eventually(lambda: api.items("jobs") == [], what="the end of the job's record")
