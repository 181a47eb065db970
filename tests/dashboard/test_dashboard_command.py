"""`troupe dashboard`: its options, tokens, TLS, a head that is away, and the files of others that
it serves.

Method: the command as a process of its own, beside a real head that is killed and started again.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path

from e2e_conftest import TIMEOUT_S, Home, eventually
from page_client import served

from troupe import _dashboard

FOLDER = Path(_dashboard.__file__).parent


def test_files_of_others_are_those_that_the_readme_names() -> None:
    listed = dict(
        re.findall(r"\| `(\S+\.js)` \|.*`([0-9a-f]{64})` \|", (FOLDER / "README.md").read_text())
    )
    assert set(listed) == {"htmx.min.js", "sse.js"}
    for name, digest in listed.items():
        assert hashlib.sha256((FOLDER / "assets" / name).read_bytes()).hexdigest() == digest
    assert (FOLDER / "assets/LICENSE-htmx.txt").exists()


def test_wrong_options_are_one_error_each(home: Home, tmp_path: Path) -> None:
    pem = tmp_path / "page.pem"
    pem.write_text("no certificate")
    for options, words in [
        (["--listen", "0.0.0.0"], "needs TLS"),
        (["--listen", "somewhere"], "no IP address"),
        (["--certificate", str(pem)], "go together"),
    ]:
        done = home.run("dashboard", *options, ok=False)
        assert done.returncode == 2 and words in done.stderr, done.stderr
    done = home.run("dashboard", ok=False)
    assert done.returncode == 1 and "troupe start --head" in done.stderr


def test_a_missing_library_is_one_line_that_says_what_to_install(home: Home) -> None:
    code = (
        "import sys; sys.modules['starlette'] = None; from troupe.cli import main; "
        "main(['dashboard'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install 'troupe[dashboard]'" in done.stderr and done.stderr.count("\n") == 1


def test_a_head_that_is_away_is_said_and_found_again(home: Home) -> None:
    started = home.json("start", "--head", "--port", "0", "--num-cpus", "2", "--node-name", "one")
    token = home.path / "page.token"
    token.write_text(home.run("token", "create", "--role", "observer").stdout)
    token.chmod(0o600)
    remote = ("--address", started["address"], "--token-file", str(token))
    with served(home) as page, served(home, *remote) as looking:
        for each in (page, looking):
            each.log_in()
            assert "one" in each.get("/nodes").words and "Not current" not in each.get("/").words
        os.kill(started["pid"], signal.SIGKILL)
        for each in (page, looking):
            eventually(lambda: "Not current since" in each.get("/").words, what="the outage")
            assert "one" in each.get("/nodes").words
        home.json("start", "--head", "--cluster", started["cluster_id"])
        for each in (page, looking):
            eventually(
                lambda: (
                    "Not current" not in each.get("/nodes").words
                    and "alive" in each.get("/nodes").words
                ),
                what="the head on the page again",
            )


def test_other_hosts_are_served_over_tls(home: Home, tmp_path: Path) -> None:
    home.json("start", "--head", "--port", "0", "--num-cpus", "1")
    key, certificate = tmp_path / "page.key", tmp_path / "page.pem"
    line = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj"
    files = ["-keyout", str(key), "-out", str(certificate)]
    subject = ["/CN=page.test", "-addext", "subjectAltName=DNS:page.test"]
    subprocess.run([*line.split(), *subject, *files], check=True, capture_output=True)
    options = ("--certificate", str(certificate), "--key", str(key), "--host-name", "page.test")
    with served(home, *options) as page:
        context = ssl.create_default_context(cafile=str(certificate))

        def ask(path: str, **headers: str) -> http.client.HTTPResponse:
            connection = http.client.HTTPSConnection("127.0.0.1", page.port, timeout=TIMEOUT_S)
            plain = socket.create_connection(("127.0.0.1", page.port), TIMEOUT_S)
            connection.sock = context.wrap_socket(plain, server_hostname="page.test")
            connection.request("GET", path, headers={"Host": "page.test", **headers})
            return connection.getresponse()

        answer = ask(page.login)
        cookie = answer.headers["Set-Cookie"]
        assert cookie.startswith("__Host-troupe_") and "Secure" in cookie
        assert ask("/", Cookie=cookie.partition(";")[0]).status == 200
        assert ask("/", Cookie=cookie.partition(";")[0], Host="127.0.0.1").status == 421
