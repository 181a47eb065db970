"""A browser's side of `troupe dashboard`, by Python's own http.client: a process that serves the
page, and requests to it.

with served(home, "--allow-actions") as page:
    page.log_in()
    page.get("/nodes").text
"""

from __future__ import annotations

import contextlib
import html
import http.client
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from e2e_conftest import TIMEOUT_S

STREAM_S = 5 * TIMEOUT_S  # for all that a test waits for on one stream


@dataclass
class Answer:
    """A response, read to its end."""

    status: int
    headers: http.client.HTTPMessage
    text: str

    @property
    def words(self) -> str:
        """The visible text, without markup."""
        return html.unescape(re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", self.text)))


class PageClient:
    """Makes requests to one page, with the cookie that it was given."""

    def __init__(self, host: str, port: int, login: str = "") -> None:
        self.host, self.port, self.login = host, port, login
        self.cookie = ""
        self.pid = 0  # pid of the serving process

    def ask(
        self, method: str, path: str, body: dict[str, str] | None = None, **headers: str
    ) -> Answer:
        """Make a request; headers are written with _ in place of -."""
        shown = {"Cookie": self.cookie} if self.cookie else {}
        shown |= {name.replace("_", "-"): value for name, value in headers.items()}
        data = None
        if body is not None:
            data = urlencode(body)
            shown["Content-Type"] = "application/x-www-form-urlencoded"
        connection = http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_S)
        try:
            connection.request(method, path, body=data, headers=shown)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read().decode())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        """Make a GET request."""
        return self.ask("GET", path, **headers)

    def post(self, path: str, form: dict[str, str], **headers: str) -> Answer:
        """Send a form."""
        return self.ask("POST", path, form, **headers)

    def log_in(self) -> str:
        """Use the login address up; return the whole Set-Cookie header."""
        answer = self.get(self.login)
        assert answer.status == 303, answer.text
        given = answer.headers["Set-Cookie"]
        self.cookie = given.partition(";")[0]
        return str(given)

    @contextlib.contextmanager
    def live(self, path: str) -> Iterator[Iterator[tuple[str, str]]]:
        """The changes of a page as they come: (the name of the element, its new content)."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_S)
        try:
            connection.request("GET", f"/live{path}", headers={"Cookie": self.cookie})
            response = connection.getresponse()
            assert response.status == 200, response.read()
            assert response.headers["Content-Type"].startswith("text/event-stream")
            yield _events(response)
        finally:
            connection.close()

    def csrf(self, path: str) -> str:
        """Return the token of the first form of a page that changes something."""
        found = re.search('name="csrf" value="([^"]*)"', self.get(path).text)
        assert found is not None
        return found[1]


def _events(response: http.client.HTTPResponse) -> Iterator[tuple[str, str]]:
    name, data = "", []
    deadline = time.monotonic() + STREAM_S
    while line := response.readline().decode():
        assert time.monotonic() < deadline, "what is waited for did not come"
        key, _, value = line.rstrip("\n").partition(": ")
        if key == "event":
            name = value
        elif key == "data":
            data.append(value)
        elif not key and name:
            yield name, "\n".join(data)
            name, data = "", []


@contextlib.contextmanager
def served(home: Any, *options: str) -> Iterator[PageClient]:
    """`troupe dashboard` as a process of its own, until the end of the block, by Ctrl-C."""
    line = [sys.executable, "-m", "troupe", "dashboard", "--port", "0", "--json", *options]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        url, login = urlsplit(said["url"]), urlsplit(said["login"])
        page = PageClient(url.hostname or "", url.port or 0, f"{login.path}?{login.query}")
        page.pid = process.pid
        yield page
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_S) == 130
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
