"""Every page of a real cluster: what it shows without JavaScript, what it lets a person do, names
and logs that are meant to break it, a head that is away.

Method: one head with a worker, `troupe dashboard` as a process of its own, requests by http.client.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import pytest
from e2e_conftest import Home, eventually
from page_client import PageClient, served

import troupe
from troupe.launch import distributed

cloudpickle.register_pickle_by_value(sys.modules[__name__])
PAGES = ("/", "/nodes", "/actors", "/launches", "/jobs", "/queue", "/logs", "/events")
HOSTILE = "<script>alert(1)</script>\x1b[31m\x1b]0;title\x07\u202e'\"&"
SHOWN = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def page(cluster: Home) -> Iterator[PageClient]:
    """A page that may act, logged in."""
    with served(cluster, "--allow-actions") as made:
        made.log_in()
        yield made


class Named:
    def ready(self) -> bool:
        return True


def test_every_page_is_whole_without_javascript(page: PageClient, cluster: Home) -> None:
    for path in PAGES:
        answer = page.get(path)
        assert answer.status == 200, path
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        assert "<h1>" in answer.text and "style=" not in answer.text, path
        assert len(re.findall("<script", answer.text)) == 3 and "onclick" not in answer.text
        assert len(re.findall('aria-current="page"', answer.text)) == 1, path
    assert "one" in page.get("/nodes").words and "0 of 8" in page.get("/nodes").words
    assert "node one joined" in page.get("/events?q=one+JOINED&source=node").words
    assert "Nothing to show" in page.get("/events?q=joined+nobody").words
    (node,) = troupe.state.list_nodes()
    detail = page.get(f"/nodes/{node['node_id']}")
    assert "Node one" in detail.words and node["address"] in detail.words
    for path in ("/nodes/ffff", "/launches/ffff", "/jobs/none", "/none", "/logs?actor=ffff"):
        assert page.get(path).status == 404, path
    for asset in ("htmx.min.js", "sse.js", "live.js", "page.css", "icon.svg"):
        assert page.get(f"/assets/{asset}").status == 200
    assert page.get("/assets/../templates/base.html").status == 404


def test_actors_are_counted_by_class_and_hostile_names_are_only_text(page: PageClient) -> None:
    cls = troupe.remote(num_cpus=0)(Named)
    named = [cls.options(name=f"page-{i}").remote() for i in range(3)]
    odd = cls.options(name=HOSTILE).remote()
    assert troupe.get([each.ready.remote() for each in (*named, odd)]) == [True] * 4
    # a list is at most a second old
    eventually(lambda: "page-2" in page.get("/actors").text, what="the actors on their page")
    answer = page.get("/actors?q=script")
    assert SHOWN in answer.words and "<script>alert" not in answer.text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", answer.text)
    assert "page-1" not in answer.words
    assert re.search("Named 4 ", page.get("/actors").words)
    assert "page-1" in page.get("/actors?class=Named&state=alive").words
    assert "Nothing to show" in page.get("/actors?q=%3Cscript%3Ex").words
    del named, odd


def test_a_launch_has_a_grid_of_its_ranks_and_their_logs(page: PageClient) -> None:
    @distributed(processes=3, cpus_per_rank=0.1, remote=True, name=HOSTILE)
    def talk() -> None:
        rank = int(os.environ["RANK"])
        print(f"said {HOSTILE} by {rank}")
        if rank == 2:
            raise ValueError(f"{HOSTILE} broke")

    launch = talk.submit()
    with pytest.raises(troupe.exceptions.LaunchError):
        launch.result(60)
    path = f"/launches/{launch.id}"
    eventually(lambda: "Marker failed" in page.get(path).words, what="the marker on the page")
    answer = page.get(path)
    assert len(re.findall('<li class="s-', answer.text)) == 3 and "s-failed" in answer.text
    assert SHOWN in answer.words and "<script>alert" not in answer.text
    assert "failed" in page.get("/").words.partition("What waits")[0]
    log = page.get(f"/logs?launch={launch.id}")
    assert f"said {SHOWN}" in log.words and "<script>alert" not in log.text
    assert "\x1b" not in log.text and "title" not in log.words.partition("said")[2]
    found = page.get(f"/logs?launch={launch.id}&rank=1&q=SAID").words
    assert "said" in found
    assert "No line has" in page.get(f"/logs?launch={launch.id}&q=nobody").words
    assert "Nothing was written" in page.get(f"/logs?launch={launch.id}&rank=7").words


def test_the_end_of_a_long_log_is_shown_and_all_of_it_is_searched(
    page: PageClient, cluster: Home
) -> None:
    code = "print('needle'); [print('line', i) for i in range(60000)]; print('x' * 10_000_000)"
    line = ["job", "submit", "--id", "long-log", "--", sys.executable, "-c", code]
    cluster.run(*line)
    cluster.run("job", "wait", "long-log")
    path = "/jobs/long-log"
    eventually(lambda: "succeeded" in page.get(path).words, what="the end of the job on its page")
    (launch,) = re.findall('href="/launches/([0-9a-f]+)"', page.get(path).text)
    shown = page.get(f"/logs?launch={launch}")
    assert "more characters" in shown.text and "Lines before these" in shown.words
    assert "needle" not in shown.text and len(shown.text) < 4_000_000
    assert "needle" in page.get(f"/logs?launch={launch}&q=NEEDLE").text
    assert "line 59999" in page.get(f"/logs?launch={launch}&q=line+59999").words


def test_a_job_is_stopped_by_its_form_alone(page: PageClient, cluster: Home) -> None:
    cluster.run("job", "submit", "--id", "held", "--", "sleep", "600")
    eventually(lambda: "running" in page.get("/jobs/held").words, what="the job on its page")
    (action,) = re.findall('action="(/jobs/[0-9a-f]+/stop)"', page.get("/jobs/held").text)
    csrf = page.csrf("/jobs/held")
    for form in ({}, {"csrf": ""}, {"csrf": csrf[:-1]}):
        assert page.post(action, form).status == 403, form
    assert page.get(action).status == 405
    other = {"Origin": "http://evil.example"}
    assert page.post(action, {"csrf": csrf}, **other).status == 403
    assert page.post("/jobs/ffff/stop", {"csrf": csrf}).status == 404
    with served(cluster) as looking:
        looking.log_in()
        assert "Stop this job" not in looking.get("/jobs/held").text
        refused = looking.post(action, {"csrf": csrf})
        assert refused.status == 403 and "--allow-actions" in refused.words
    assert cluster.json("job", "show", "held")["state"] == "RUNNING"
    answer = page.post(action, {"csrf": csrf})
    assert answer.status == 303 and answer.headers["Location"].startswith("/jobs/")
    cluster.run("job", "wait", "held", ok=False)
    assert cluster.json("job", "show", "held")["state"] == "STOPPED"


def test_what_waits_is_explained_node_by_node(page: PageClient, cluster: Home) -> None:
    cluster.run("job", "submit", "--id", "first", "--cpus", "8", "--", "sleep", "600")
    cluster.run("job", "submit", "--id", "second", "--cpus", "5", "--", "sleep", "600")
    eventually(lambda: "5 more CPU" in page.get("/queue").words, what="the reason in the queue")
    assert "asks for 5 CPU" in page.get("/queue").words
    (owner,) = cluster.json("usage")["owners"]
    cluster.run("quota", "set", owner["owner"], "--cpus", "40", "--queued", "7")
    shown = re.escape(owner["owner"]) + r" \d+\.\d % 0 8 of 40 0 GiB 1 1 of 7"
    eventually(lambda: re.search(shown, page.get("/queue").words), what="what the owner holds")
    cluster.run("quota", "remove", owner["owner"])
    assert "second" not in page.get("/").words.partition("What waits")[0]
    cluster.run("job", "stop", "--grace", "0", "second", "first")


def test_changes_come_to_a_page_that_is_open(page: PageClient, cluster: Home) -> None:
    with page.live("/jobs?q=comes") as changes, page.live("/nodes") as nodes:
        first = dict(next(changes) for _ in range(2))
        assert set(first) == {"live_banner", "live_rows"} and "comes" not in first["live_rows"]
        assert "one" in dict(next(nodes) for _ in range(2))["live_rows"]
        cluster.run("job", "submit", "--id", "comes", "--", "sleep", "600")
        assert any("comes" in text and name == "live_rows" for name, text in changes)
        cluster.run("job", "stop", "--grace", "0", "comes")
        assert any("s-stopped" in text for _, text in changes)
    assert page.get("/live/nodes", Cookie="").status == 403
    assert page.get("/live/none").status == 404


def test_a_log_is_followed_over_attempts(page: PageClient, cluster: Home, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    code = (
        "import os, sys; attempt = os.environ['TROUPE_JOB_ATTEMPT']\n"
        "print('begun', attempt, '<i>', flush=True)\n"
        f"for line in open({str(gate)!r}): print('after', line.strip(), attempt, flush=True)\n"
        "sys.exit(attempt == '1')"
    )
    line = ["--id", "followed", "--retries", "1", "--", sys.executable, "-c", code]
    cluster.run("job", "submit", *line)
    (launch,) = [each["launch"] for each in cluster.json("job", "list") if each["id"] == "followed"]
    eventually(lambda: "begun 1" in page.get(f"/logs?launch={launch}").words, what="its output")
    with (
        page.live(f"/logs?launch={launch}") as news,
        page.live(f"/logs?launch={launch}&q=AFTER") as found,
    ):
        assert any("begun 1 &lt;i&gt;" in text for name, text in news if name == "live_log")
        with open(gate, "w") as writer:
            writer.write("opened\n")
            writer.flush()
            assert any("after opened 1" in text for name, text in news if name == "more_log")
            first = next(text for name, text in found if "after opened" in text)
            assert "begun" not in first
        assert any("begun 2" in text for _, text in news)
        with open(gate, "w") as writer:
            writer.write("again\n")
        assert any("after again 2" in text for _, text in news)
        assert any("has ended" in text for name, text in news if name == "live_log_state")
    assert "after again 2" in page.get("/jobs/followed").words
