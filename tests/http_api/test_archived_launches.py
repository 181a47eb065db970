"""Launches and jobs that have left the head's memory: in the lists of the HTTP API, by the same
cursor, in the pages of the dashboard, and found by their ids and idempotency keys.

Method: a real head that keeps 5 launches in memory and has no nodes; launches wait for these and
are cancelled, every tenth is a job.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from e2e_conftest import Home, eventually
from http_head import Client

from troupe import exceptions
from troupe._base.bridge import native
from troupe._base.identity import new_id
from troupe._cluster import executables, view
from troupe._cluster.session import Session
from troupe._code import travelled
from troupe._dashboard._reader import ClusterReader
from troupe.job_submission import _jobs

IN_MEMORY, LAUNCHES, JOBS_EVERY = 5, 230, 10
FRESH = {"Cache-Control": "no-cache"}


def submit(session: Session, number: int, request: str = "") -> str:
    """Submit a launch that waits for nodes; one with a key where `request` is given."""
    texts = [travelled.of_request(request)] if request else []
    if number % JOBS_EVERY == 0:
        texts += [travelled.of_door("job"), *travelled.of_about({"id": f"job-{number}"})]
    spec = {
        "mode": "command",
        "ranks": 1,
        "attempts_max": 1,
        "name": f"run-{number}",
        "environment": {"travelled": texts},
    }
    asked = {"spec": spec, "request": request or new_id()}
    return str(session.request("SubmitLaunch", asked)[1]["launch"])


class Archived:
    """A head whose launches are over and, but for a few, in its archive."""

    def __init__(self, home: Home) -> None:
        state = home.path / "cluster"
        args = [f"--state-dir={state}", f"--ended-max={IN_MEMORY}"]
        self.head = executables.start("troupe-head", args, log=home.path / "head.log")
        self.session = self.connect()
        token = self.session.request("CreateToken", {"role": "observer", "ttl_s": 3600})[1]
        self.token = token["token"]
        self.client = Client(home, {"address": self.head.ready["address"], "cluster_id": "-"})
        self.client.folder = state / "head"
        self.key = new_id()
        self.ids = [self.end_one(number) for number in range(LAUNCHES)]
        eventually(
            lambda: len(self.in_memory()) <= IN_MEMORY, what="the move of all others to the archive"
        )

    def connect(self) -> Session:
        client = native.ControlClient.connect_unix(str(self.head.ready["socket"]))
        return Session.over_client(client, namespace="")

    def in_memory(self) -> list[dict[str, Any]]:
        asked = {"limit": LAUNCHES, "in_memory": True}
        found: list[dict[str, Any]] = self.session.request("ListLaunches", asked)[1]["launches"]
        return found

    def end_one(self, number: int) -> str:
        launch = submit(self.session, number, self.key if number == 7 else "")
        stop = {"launch": launch, "hard": True, "reason": f"reason {number}"}
        self.session.request("CancelLaunch", stop)
        return launch

    def get(self, path: str, status: int = 200) -> Any:
        answer = self.client.get(f"/api/v1/{path}", self.token, headers=FRESH)
        assert answer.status == status, (path, answer.text)
        return answer.json()

    def pages(self, path: str, key: str) -> list[str]:
        """Return the ids of all pages, in order."""
        ids: list[str] = []
        after = ""
        while True:
            page = self.get(f"{path}{after}")
            ids += [row[key] for row in page["items"]]
            if page["next"] is None:
                return ids
            after = f"&after={page['next']}"


@pytest.fixture(scope="module")
def archived(shared_home: Home) -> Iterator[Archived]:
    made = Archived(shared_home)
    try:
        yield made
    finally:
        made.session.close()
        executables.end([made.head.process])


def test_lists_go_on_into_the_archive_by_the_same_cursor(archived: Archived) -> None:
    assert archived.pages("launches?limit=40", "id") == sorted(archived.ids)
    assert archived.pages("launches?limit=1000", "id") == sorted(archived.ids)
    jobs = [f"job-{number}" for number in range(0, LAUNCHES, JOBS_EVERY)]
    assert archived.pages("jobs?limit=3", "id") == sorted(jobs)
    assert archived.get("launches?limit=3")["total"] <= IN_MEMORY
    assert archived.pages("launches?limit=2&name=run-11", "id") == [archived.ids[11]]
    assert archived.pages("launches?limit=50&state=cancelled", "id") == sorted(archived.ids)
    assert archived.pages("jobs?limit=50&state=RUNNING", "id") == []
    archived.get("launches?colour=red", 400)
    archived.get("launches?limit=0", 400)


def test_one_in_the_archive_has_a_page_of_its_own(archived: Archived) -> None:
    for number in (0, 101, LAUNCHES - 1):
        launch = archived.ids[number]
        row = archived.get(f"launches/{launch}")
        assert (row["name"], row["cause"]) == (f"run-{number}", f"reason {number}")
        assert archived.get(f"launches/{launch[:16]}")["id"] == launch
    assert archived.get("jobs/job-100")["launch"] == archived.ids[100]
    archived.get("jobs/job-10", 200)  # the whole id; job-100 begins so, too
    archived.get("jobs/job-1", 404)
    archived.get(f"launches/{'f' * 32}", 404)


def test_a_deleted_job_is_listed_no_more(archived: Archived) -> None:
    job = _jobs.find(archived.session, "job-220")
    archived.session.request(
        "KvPut", {"scope": _jobs.SCOPE, "key": job["launch"]}, job["launch"].encode()
    )
    try:
        archived.get("jobs/job-220", 404)
        assert "job-220" not in archived.pages("jobs?limit=100", "id")
        with pytest.raises(exceptions.NotFoundError):
            _jobs.find(archived.session, "job-220")
    finally:
        archived.session.request("KvDelete", {"scope": _jobs.SCOPE, "key": job["launch"]})


def test_launches_are_found_by_ids_and_keys_without_reading_all(archived: Archived) -> None:
    launch = archived.ids[50]
    assert [each["launch"] for each in view.find_launches(archived.session, launch[:12])] == [
        launch
    ]
    assert _jobs.find(archived.session, "job-50")["launch"] == launch
    assert _jobs.find(archived.session, launch[:12].upper())["launch"] == launch
    (found,) = view.find_launches(archived.session, request=archived.key)
    assert found["launch"] == archived.ids[7]
    assert view.find_launches(archived.session, request=new_id()) == []
    assert view.open_launches(archived.session) == []


def test_a_repeat_of_a_submission_with_a_key_starts_nothing(archived: Archived) -> None:
    assert submit(archived.session, 7, archived.key) == archived.ids[7]
    listed = [each["launch"] for each in view.iter_launches(archived.session, page=50)]
    assert listed == archived.ids[::-1]


def test_the_dashboard_shows_all_of_them_in_pages(archived: Archived) -> None:
    reader = ClusterReader(archived.connect)
    try:
        assert len(reader.launches()) <= IN_MEMORY
        first = reader.launch_pages.page("", lambda info: True)
        second = reader.launch_pages.page(first.following, lambda info: True)
        shown = [each["launch"] for each in [*first.rows, *second.rows]]
        assert shown == archived.ids[::-1] and second.following == ""
        some = reader.launch_pages.page("", lambda info: info["name"] == "run-3")
        assert [each["launch"] for each in some.rows] == [archived.ids[3]]
        assert reader.launch_pages.page("nonsense", lambda info: True) == first
        assert [each["launch"] for each in reader.find_launches("job-100")] == [archived.ids[100]]
    finally:
        reader.close()
