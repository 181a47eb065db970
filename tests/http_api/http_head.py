"""A client of a head's HTTP server, by Python's own http.client and ssl, as any program could be.

client = Client(home, started)          # `started`: the document of `troupe start --head --json`
answer = client.get("/metrics", token)  # answer.status, answer.headers, answer.text, answer.json()
"""

from __future__ import annotations

import http.client
import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e_conftest import TIMEOUT_S, Home


@dataclass
class Answer:
    """A response, read to its end."""

    status: int
    headers: http.client.HTTPMessage
    text: str

    def json(self) -> Any:
        """Return the body as a JSON document."""
        return json.loads(self.text)


class Client:
    """Makes requests to one head, each on a connection of its own."""

    def __init__(self, home: Home, started: dict[str, Any]) -> None:
        host, _, port = started["address"].rpartition(":")
        self.host, self.port = host, int(port)
        self.folder = home.path / "clusters" / started["cluster_id"] / "head"

    def context(self, certificate: Path | None = None) -> ssl.SSLContext:
        """A TLS context that trusts the cluster's authority alone, and checks the head's name."""
        context = ssl.create_default_context(cafile=str(self.folder / "ca.crt"))
        context.set_alpn_protocols(["http/1.1"])
        if certificate is not None:
            context.load_cert_chain(certificate)
        return context

    def connect(self, certificate: Path | None = None) -> http.client.HTTPSConnection:
        """A connection that has not sent anything yet."""
        return http.client.HTTPSConnection(
            self.host, self.port, timeout=TIMEOUT_S, context=self.context(certificate)
        )

    def request(
        self,
        method: str,
        path: str,
        token: str | None = None,
        *,
        certificate: Path | None = None,
        headers: dict[str, str] | None = None,
        body: str | None = None,
    ) -> Answer:
        """Make one request; `token` is the text of a token."""
        connection = self.connect(certificate)
        try:
            shown = {"Authorization": f"Bearer {token}"} if token is not None else {}
            connection.request(method, path, body=body, headers={**shown, **(headers or {})})
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read().decode())
        finally:
            connection.close()

    def get(self, path: str, token: str | None = None, **more: Any) -> Answer:
        """Make a GET request."""
        return self.request("GET", path, token, **more)
