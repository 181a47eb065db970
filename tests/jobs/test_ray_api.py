"""Ray's REST API for jobs on loopback: its routes, who may ask, packages, following by WebSocket.

Method: `troupe ray-jobs serve` as a process, asked by http.client and by aiohttp, which Ray's own
client uses. The command of Ray itself is in tests/doors/real_ray.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import io
import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from e2e_conftest import TIMEOUT_S, Home

PACKAGE = "/api/packages/gcs/_ray_pkg_0123456789abcdef.zip"
ROUTES = (
    ("GET", "/api/version"),
    ("GET", "/api/jobs/"),
    ("POST", "/api/jobs/"),
    ("GET", "/api/jobs/one"),
    ("DELETE", "/api/jobs/one"),
    ("POST", "/api/jobs/one/stop"),
    ("GET", "/api/jobs/one/logs"),
    ("GET", "/api/jobs/one/logs/tail"),
    ("GET", PACKAGE),
    ("PUT", PACKAGE),
)


class Server:
    """A running server and what callers of it show."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        self.started = json.loads(process.stdout.readline())
        self.url: str = self.started["address"]
        self.token_file = Path(self.started["variables"]["RAY_AUTH_TOKEN_PATH"])
        self.own = {"Authorization": f"Bearer {self.token_file.read_text()}"}

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, str]:
        """Return the status and the text of an answer. `headers`: in place of the token."""
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=TIMEOUT_S)
        with contextlib.closing(connection):
            sent = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            connection.request(method, path, sent, self.own if headers is None else headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def value(self, method: str, path: str, body: Any = None) -> Any:
        status, text = self.ask(method, path, body)
        assert status == 200, (status, text)
        return json.loads(text)

    def submit(self, entrypoint: str, **fields: Any) -> str:
        asked = {"entrypoint": entrypoint, **fields}
        return str(self.value("POST", "/api/jobs/", asked)["submission_id"])

    def followed(self, job: str) -> tuple[str, int | None]:
        """Return what following a job gives, and the code by which the socket was closed."""

        async def follow() -> tuple[str, int | None]:
            text = ""
            async with aiohttp.ClientSession(headers=self.own) as session:
                socket = await session.ws_connect(f"{self.url}/api/jobs/{job}/logs/tail")
                async for message in socket:
                    text += message.data
                return text, socket.close_code

        return asyncio.run(asyncio.wait_for(follow(), 3 * TIMEOUT_S))


@pytest.fixture(scope="module")
def server(cluster: Home) -> Iterator[Server]:
    with subprocess.Popen(
        [sys.executable, "-m", "troupe", "ray-jobs", "serve", "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        started = Server(process)
        yield started
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=TIMEOUT_S) == 130
    assert not started.token_file.exists(), "the token ends with the server"


def archive(**files: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as content:
        for name, text in files.items():
            content.writestr(name.replace("__", "/") + ".py", text)
    return made.getvalue()


def test_only_who_shows_the_servers_token_and_is_no_browser_is_answered(server: Server) -> None:
    assert os.stat(server.token_file).st_mode & 0o777 == 0o600
    assert os.stat(server.token_file.parent).st_mode & 0o777 == 0o700
    cases = (
        ({}, 401),
        ({"Authorization": "Bearer "}, 401),
        ({"Authorization": "Bearer " + "a" * 43}, 401),
        ({"Authorization": server.own["Authorization"].replace("Bearer", "Basic")}, 401),
        ({**server.own, "Host": "evil.example:8265"}, 421),
        ({**server.own, "Origin": server.url}, 403),
        ({**server.own, "Sec-Fetch-Site": "cross-site"}, 403),
    )
    for method, path in (*ROUTES, ("GET", "/"), ("OPTIONS", "/api/jobs/")):
        for headers, status in cases:
            found, text = server.ask(method, path, headers=headers)
            assert found == status, (method, path, headers, text)
            assert server.token_file.read_text() not in text
    assert server.ask("GET", "/")[0] == 404
    assert server.ask("PATCH", "/api/jobs/one")[0] == 405


def test_a_job_by_rays_routes_from_its_package_to_its_deletion(server: Server) -> None:
    version = server.value("GET", "/api/version")
    assert version["version"] == "4" and version["ray_version"].startswith("2.")
    assert server.ask("GET", PACKAGE)[0] == 404
    files = archive(
        uses="import ray, helper; ray.init(); print(ray.get(ray.remote(helper.colour).remote()))",
        helper="import os\n"
        "def colour():\n"
        "    return os.environ['COLOUR'], open('uses.py').read()[:10]",
    )
    for _ in range(2):
        assert server.ask("PUT", PACKAGE, files)[0] == 200
    assert server.ask("GET", PACKAGE)[0] == 200
    asked = {
        "submission_id": "one",
        "metadata": {"team": "blue"},
        "runtime_env": {
            "working_dir": "gcs://_ray_pkg_0123456789abcdef.zip",
            "env_vars": {"COLOUR": "red"},
        },
        "entrypoint_num_cpus": 1,
    }
    line = f"{sys.executable} uses.py; exit 3"
    assert server.submit(line, **asked) == server.submit(line, **asked) == "one"
    assert server.followed("one") == ("('red', 'import ray')\n", 1000)
    seen = server.value("GET", "/api/jobs/one")
    assert (seen["status"], seen["driver_exit_code"], seen["metadata"], seen["entrypoint"]) == (
        "FAILED",
        3,
        {"team": "blue"},
        line,
    )
    assert seen["type"] == "SUBMISSION" and seen["end_time"] >= seen["start_time"]
    assert server.value("GET", "/api/jobs/one/logs") == {"logs": "('red', 'import ray')\n"}
    assert [each for each in server.value("GET", "/api/jobs/") if each["submission_id"] == "one"]
    assert server.value("POST", "/api/jobs/one/stop") == {"stopped": False}
    assert server.ask("POST", "/api/jobs/", {"entrypoint": "true", **asked})[0] == 409
    assert server.value("DELETE", "/api/jobs/one") == {"deleted": True}
    assert server.ask("GET", "/api/jobs/one")[0] == 404


def test_a_running_job_is_stopped_and_a_follower_that_leaves_costs_nothing(server: Server) -> None:
    job = server.submit("echo ready; sleep 1000")

    async def leave() -> None:
        async with aiohttp.ClientSession(headers=server.own) as session:
            socket = await session.ws_connect(f"{server.url}/api/jobs/{job}/logs/tail")
            assert (await socket.receive(timeout=3 * TIMEOUT_S)).data == "ready\n"

    asyncio.run(leave())
    assert server.ask("DELETE", f"/api/jobs/{job}")[0] == 409, "it has not ended"
    assert server.value("POST", f"/api/jobs/{job}/stop") == {"stopped": True}
    assert server.followed(job) == ("ready\n", 1000)
    assert server.value("GET", f"/api/jobs/{job}")["status"] == "STOPPED"


def test_requests_that_cannot_be_meant_are_refused_with_the_reason(server: Server) -> None:
    package = "gcs://_ray_pkg_ffffffffffffffff.zip"
    for body, status, text in (
        (b"{", 400, "no JSON"),
        ([], 400, "must be an object"),
        ({"entrypoint": "true", "colour": "red"}, 400, "it has colour"),
        ({}, 400, "nothing to run"),
        ({"entrypoint": ["true"]}, 400, "a text"),
        ({"entrypoint": "true", "submission_id": "a/b"}, 400, "is no id"),
        ({"entrypoint": "true", "runtime_env": 3}, 400, "must be an object"),
        ({"entrypoint": "true", "runtime_env": {"working_dir": package}}, 400, "not uploaded"),
        (b" " * ((1 << 20) + 1), 413, ""),
    ):
        found, said = server.ask("POST", "/api/jobs/", body)
        assert found == status and text in said and "Traceback" not in said, (body, said)
    for path, status in (
        ("/api/packages/gcs/..%2F..%2Fescaped.zip", 400),
        ("/api/packages/https/_ray_pkg_0123456789abcdef.zip", 400),
        ("/api/packages/gcs/_ray_pkg_00000000000000ff.zip", 400),  # no archive
    ):
        assert server.ask("PUT", path, b"no archive")[0] == status, path
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/stop"), ("GET", "/logs")):
        assert server.ask(method, f"/api/jobs/nobody{path}")[0] == 404


def test_a_command_runs_with_the_variables_and_gives_the_exit_code(cluster: Home) -> None:
    script = (
        "import os, sys; print(sorted(name for name in os.environ if name.startswith('RAY_')));"
        "print('ray_compat' in os.environ.get('PYTHONPATH', '')); sys.exit(7)"
    )
    done = cluster.run("ray-jobs", "serve", "--", sys.executable, "-c", script, ok=False)
    assert done.returncode == 7, done.stderr
    names = ["RAY_API_SERVER_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH"]
    assert done.stdout.splitlines() == [str(names), "False"], "its own ray is the installed one"
    missing = cluster.run("ray-jobs", "serve", "--", "no-such-command", ok=False)
    assert missing.returncode == 1 and "no-such-command cannot be run" in missing.stderr
