"""Access to the head's HTTP server: route x method x role, by tokens and by certificates.

Method: one head with a worker, real processes; requests by Python's http.client over TLS that
trusts the cluster's authority alone.
"""

from __future__ import annotations

import socket
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually
from http_head import Client

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))
from hostile import Authority  # noqa: E402

ROLES = ("nobody", "observer", "client", "worker")
OPEN = {role: 200 for role in ROLES}
LOOK = {"nobody": 401, "observer": 200, "client": 200, "worker": 403}
# Status of GET for each role without a row; HEAD is answered alike.
NO_ROW = {"nobody": 401, "observer": 404, "client": 404, "worker": 403}
STREAM = "/api/v1/stream"  # tests/http_api/test_http_stream.py reads it
ACTS = {"nobody": 401, "observer": 403, "client": 400, "worker": 403}  # answers to an invalid body
STOPS = {"nobody": 401, "observer": 403, "client": 404, "worker": 403}
TABLE_OF_POST = {
    "/api/v1/jobs": ACTS,
    "/api/v1/jobs/0123/stop": STOPS,
    "/api/v1/launches/0123/stop": STOPS,
}
LISTS = ("nodes", "actors", "launches", "jobs", "placement_groups")
TABLE = {
    "/healthz": OPEN,
    "/readyz": OPEN,
    "/metrics": LOOK,
    "/api/v1/events": LOOK,
    "/api/v1/prometheus-sd": LOOK,
    STREAM: LOOK,
    **{f"/api/v1/{each}": LOOK for each in LISTS},
    **{f"/api/v1/{each}/0123": NO_ROW for each in LISTS},
    **{f"/api/v1/logs/{each}/0123": NO_ROW for each in ("launches", "jobs", "actors")},
}
NOWHERE = {"nobody": 401, "observer": 404, "client": 404, "worker": 404}
NOWHERES = (
    "/nowhere",
    "/api/v1/logs/trials/0123",
    "/api/v1/nodes/",
    "/api/v1/nodes/a/b",
    "/api/v2/nodes",
)


class Head:
    """A running head, a client of it, and the text of a token for each role."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.started = home.json("start", "--head", "--port", "0", "--num-cpus", "3")
        self.client = Client(home, self.started)
        self.tokens = {role: self.make_token("--role", role) for role in ROLES[1:]}

    def make_token(self, *options: str) -> str:
        return self.home.run("token", "create", *options).stdout.strip()


@pytest.fixture(scope="module")
def head(shared_home: Home) -> Iterator[Head]:
    yield Head(shared_home)


def test_each_route_answers_each_role_and_method_as_the_table_says(head: Head) -> None:
    found, expected = {}, {}
    for path, row in {**TABLE, **dict.fromkeys(NOWHERES, NOWHERE)}.items():
        for role, status in row.items():
            token = head.tokens.get(role)
            for method in ("GET", "HEAD", "POST", "DELETE", "PUT"):
                if (path, method, status) == (STREAM, "GET", 200):
                    continue
                answer = head.client.request(method, path, token)
                found[path, role, method] = answer.status
                expected[path, role, method] = status
                if method == "POST" and path in TABLE_OF_POST:
                    expected[path, role, method] = TABLE_OF_POST[path][role]
                elif method not in ("GET", "HEAD") and row is not NOWHERE:
                    expected[path, role, method] = 401 if role == "nobody" else 405
                    if role != "nobody":
                        allowed = "GET, HEAD" + (", POST" if path in TABLE_OF_POST else "")
                        assert answer.headers["Allow"] == allowed
                if method == "HEAD":
                    assert answer.text == ""
                if answer.status == 401:
                    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="troupe"'
                assert "Set-Cookie" not in answer.headers
                assert not any(text in answer.text for text in head.tokens.values())
    for path in (each for each in TABLE_OF_POST if each not in TABLE):
        for role, status in TABLE_OF_POST[path].items():
            for method in ("GET", "HEAD", "POST", "DELETE", "PUT"):
                answer = head.client.request(method, path, head.tokens.get(role))
                found[path, role, method] = answer.status
                other = 401 if role == "nobody" else 405
                expected[path, role, method] = status if method == "POST" else other
    assert found == expected
    assert head.client.get("/healthz").text == head.client.get("/readyz").text == "ok\n"


def test_a_token_that_is_not_in_force_is_refused_with_its_reason(head: Head) -> None:
    observer = head.tokens["observer"]
    made = head.home.json("token", "create", "--role", "observer")
    revoked = made["token"]
    assert head.client.get("/metrics", revoked).status == 200
    head.home.run("token", "revoke", made["id"])
    other_role = observer.replace("rt1.observer.", "rt1.client.")
    cases = {
        revoked: "it was revoked",
        head.make_token("--role", "observer", "--single-use"): "for a single use",
        observer[:-1] + ("0" if observer[-1] != "0" else "1"): "check sum",
        other_role: "check sum",
        "": "neither a token nor a certificate",
        "Zm9v": "does not begin with",
    }
    for token, why in cases.items():
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = head.client.get("/metrics", headers=headers)
        assert answer.status == 401, (why, answer.text)
        assert why in answer.json()["error"]["message"]
    log = "".join(path.read_text(errors="replace") for path in head.home.path.rglob("head*.log"))
    assert "an HTTP request was refused" in log
    secrets = [*head.tokens.values(), revoked, *(each for each in cases if each)]
    assert not any(each.rpartition(".")[0] in log for each in secrets if "." in each)


def test_certificates_speak_for_their_role(head: Head, tmp_path: Path) -> None:
    authority = Authority(head.client.folder, head.started["cluster_id"], tmp_path / "good")
    for role, status in {"observer": 200, "client": 200, "worker": 403, "process": 403}.items():
        certificate = authority.issue(role)
        assert head.client.get("/metrics", certificate=certificate).status == status, role
    late = authority.issue("observer", days=-1)
    assert head.client.get("/metrics", certificate=late).status == 401
    assert head.client.get("/metrics", head.tokens["observer"], certificate=late).status == 200


def test_what_breaks_a_limit_is_told_which(head: Head) -> None:
    observer = head.tokens["observer"]
    assert head.client.get("/metrics", observer, headers={"X": "x" * 17000}).status == 431
    assert head.client.request("GET", "/metrics", observer, body="x" * 100_000).status == 413
    assert head.client.get("/metrics?a=1&a=2", observer).status == 400
    assert head.client.get("/metrics?a=%00", observer).status == 400
    for sent in (b"\x00\x01\x02\x03" * 100, b"GET http://a/ HTTP/1.1\r\n\r\n", b"GET /\r\n\r\n"):
        with raw(head.client) as peer:
            peer.sendall(sent)
            answer = b"".join(iter(lambda peer=peer: peer.recv(4096), b""))
        assert answer.startswith(b"HTTP/1.1 400 "), (sent, answer)
    statuses = [head.client.get("/healthz").status for _ in range(3)]
    assert statuses == [200, 200, 200], "others are served meanwhile"


def test_a_flood_is_refused_and_others_are_served(head: Head) -> None:
    connection = head.client.connect()
    try:
        for _ in range(5000):
            connection.request("GET", "/healthz")
            response = connection.getresponse()
            response.read()
            if response.status != 200:
                break
        assert response.status == 429 and response.headers["Retry-After"] == "1"
    finally:
        connection.close()
    assert head.client.get("/metrics", head.tokens["observer"]).status == 200
    eventually(lambda: head.client.get("/healthz").status == 200, what="the end of the refusals")


def test_several_requests_share_a_connection(head: Head) -> None:
    one = b"GET /metrics HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n"
    request = one % head.tokens["observer"].encode()
    with raw(head.client) as peer:
        peer.sendall(
            request + request + request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        )
        answer = b"".join(iter(lambda: peer.recv(65536), b""))
    assert answer.count(b"HTTP/1.1 200 OK\r\n") == 3
    assert answer.count(b"Connection: keep-alive") == 2


def test_without_its_alpn_name_the_port_speaks_the_runtimes_protocol(head: Head) -> None:
    context = head.client.context()
    context.set_alpn_protocols(["h2"])
    context.check_hostname = False  # the certificate shown to nodes and drivers names no host
    with (
        socket.create_connection((head.client.host, head.client.port), TIMEOUT_S) as plain,
        context.wrap_socket(plain, server_hostname=head.client.host) as peer,
    ):
        assert peer.selected_alpn_protocol() is None
        peer.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b"HTTP/" not in b"".join(iter(lambda: peer.recv(4096), b""))


def raw(client: Client) -> ssl.SSLSocket:
    """A TLS connection for HTTP, as a socket."""
    plain = socket.create_connection((client.host, client.port), TIMEOUT_S)
    return client.context().wrap_socket(plain, server_hostname="troupe-head")
