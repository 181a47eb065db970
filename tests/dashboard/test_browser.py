"""The page in a real browser: login, changes without a reload, stopping, logs that are followed,
what is refused, and whether everybody can use it.

Method: a head with two nodes, `troupe dashboard --allow-actions`, and Debian's chromium. After each
test the console has said nothing, and nothing was asked of another origin.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import OTHER_HOST, Browser, opened
from e2e_conftest import TIMEOUT_S, Home, eventually
from page_client import PageClient, served

import troupe

PAGES = ("/", "/nodes", "/launches", "/jobs", "/actors", "/queue", "/logs", "/events", "/sweeps")


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with opened(TIMEOUT_S) as made:
        yield made


@pytest.fixture(scope="module")
def page(window: Browser, hosts: dict[str, str], shared_home: Home) -> Iterator[PageClient]:
    """The browser has logged in there."""
    with served(shared_home, "--allow-actions", "--storage", str(shared_home.path)) as made:
        window.open(f"http://{made.host}:{made.port}{made.login}")
        eventually(lambda: "What is wrong" in window.words, what="the first page")
        yield made


@pytest.fixture
def look(window: Browser, page: PageClient) -> Iterator[Browser]:
    """The browser; afterwards nothing was said in its console or asked of others."""
    window.console()
    window.asked_for()
    yield window
    assert window.console() == []
    own = f"http://{page.host}:{page.port}/"
    assert [each for each in window.asked_for() if not each.startswith(own)] == []


def _open(look: Browser, page: PageClient, path: str) -> None:
    look.open(f"http://{page.host}:{page.port}{path}")


def test_everybody_can_use_every_page(look: Browser, page: PageClient, shared_home: Home) -> None:
    for name, cpus in (("runs", "8"), ("runs-too", "8"), ("waits", "5")):
        line = ["--id", name, "--cpus", cpus, "--", "sh", "-c", "echo said; sleep 600"]
        shared_home.run("job", "submit", *line)
    running = next(each for each in shared_home.json("job", "list") if each["id"] == "runs")
    node = troupe.state.list_nodes()[0]["node_id"]
    launch = f"/launches/{running['launch']}"
    log = f"/logs?launch={running['launch']}"
    _open(look, page, log)
    eventually(lambda: "said" in look.words, what="the output of the job")
    wrong = []
    for path in (*PAGES, f"/nodes/{node}", launch, "/jobs/waits", log):
        _open(look, page, path)
        for scheme in ("light", "dark"):
            look.colours(scheme)
            wrong += [f"{path} in {scheme}: {each}" for each in look.broken_rules()]
        look.width(375)
        if look.run("return document.documentElement.scrollWidth") > 375:
            wrong.append(f"{path} is wider than a phone")
        look.width(0)
    assert wrong == []
    _open(look, page, "/nodes")
    tab, enter = "\ue004", "\ue007"
    look.press(tab)
    assert look.run("return document.activeElement.className") == "skip"
    look.press(enter)
    assert look.run("return document.activeElement.id") == "main"
    look.press(tab, tab)
    assert look.run("return document.activeElement.tagName") in ("INPUT", "BUTTON")
    shared_home.run("job", "stop", "--grace", "0", "runs", "runs-too", "waits")


def test_a_job_is_stopped_and_its_page_follows(
    look: Browser, page: PageClient, shared_home: Home
) -> None:
    shared_home.run("job", "submit", "--id", "clicked", "--", "sleep", "600")
    _open(look, page, "/jobs/clicked")
    eventually(lambda: "running" in look.words, what="the job")
    look.click("form.stop button")
    eventually(lambda: "stopped" in look.words and "Exit code" in look.words, what="its end")
    assert look.run("return location.pathname").startswith("/jobs/")


def test_a_log_is_followed(
    look: Browser, page: PageClient, shared_home: Home, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    code = f"print('begun', flush=True); print('<b>' + open({str(gate)!r}).read(), flush=True)"
    shared_home.run("job", "submit", "--id", "told", "--", sys.executable, "-c", code)
    launch = next(each for each in shared_home.json("job", "list") if each["id"] == "told")
    _open(look, page, f"/logs?launch={launch['launch']}")
    eventually(lambda: "begun" in look.words, what="the first line")
    look.run("window.mark = 'not loaded again'")
    with open(gate, "w") as writer:
        writer.write("through the gate")
    eventually(lambda: "<b>through the gate" in look.words, what="the next line")
    eventually(lambda: "has ended" in look.words, what="the end")
    assert look.run("return window.mark") == "not loaded again"


def test_a_killed_node_is_seen_without_a_reload(look: Browser, page: PageClient) -> None:
    (killed,) = [each for each in troupe.state.list_nodes() if each["name"] == "b"]
    _open(look, page, "/nodes")
    look.run("window.mark = 'not loaded again'")
    row = f"return document.getElementById('n-{killed['node_id']}').closest('tr').innerText"
    assert "alive" in look.run(row)
    os.kill(killed["pid"], signal.SIGKILL)
    eventually(lambda: "dead" in look.run(row), what="the end of the node on the page")
    assert look.run("return window.mark") == "not loaded again"
    _open(look, page, "/")
    assert "node b is dead" in look.words.partition("What waits")[0]


def test_foreign_names_pages_cookies_and_used_logins_are_refused(
    window: Browser, page: PageClient
) -> None:
    base = f"http://{page.host}:{page.port}"
    window.open(f"http://{OTHER_HOST}:{page.port}/")
    assert "not served under that name" in window.words
    window.open("about:blank")
    window.run(
        "const form = document.createElement('form'); form.method = 'post'; "
        "form.action = arguments[0]; document.body.append(form); form.submit()",
        f"{base}/jobs/clicked/stop",
    )
    eventually(lambda: "another origin" in window.words, what="the refusal of the form")
    window.open(f"{base}/")
    assert "What is wrong" in window.words  # still logged in
    (cookie,) = window.driver.get_cookies()
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
    assert window.run("return document.cookie") == ""
    window.driver.delete_all_cookies()
    window.driver.add_cookie({"name": cookie["name"], "value": "x" * 43, "path": "/"})
    for path in ("/", page.login):
        window.open(f"{base}{path}")
        assert "Open the address" in window.words
