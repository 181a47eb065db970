"""A tracking server for tests, what stands before it, and what it has, asked without MLflow's
client."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e_conftest import eventually

needs_mlflow = pytest.mark.skipif(
    importlib.util.find_spec("mlflow") is None or importlib.util.find_spec("flask") is None,
    reason="needs MLflow: pip install '.[tracking]'",
)
START_S = 240.0


class Server:
    """`mlflow server` on loopback, over a database in a file."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.uri = f"http://127.0.0.1:{self.port}"
        environment = {
            name: value
            for name, value in os.environ.items()
            if name != "TROUPE_TEST_ID" and not name.startswith("MLFLOW_")
        }
        environment.update(
            MLFLOW_SERVER_ENABLE_JOB_EXECUTION="false", MLFLOW_DISABLE_TELEMETRY="true"
        )
        with open(folder / "server.log", "wb") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "mlflow",
                    "server",
                    "--backend-store-uri",
                    f"sqlite:///{folder}/server.db",
                    "--artifacts-destination",
                    str(folder / "artifacts"),
                    "--host",
                    "127.0.0.1",
                    "--port",
                    str(self.port),
                    "--workers",
                    "1",
                ],
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=folder,
                env=environment,
            )
        eventually(
            self._answers,
            timeout=START_S,
            what=f"the start of MLflow's server ({folder}/server.log)",
        )

    def _answers(self) -> bool:
        assert self._process.poll() is None
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(f"{self.uri}/health", timeout=10).status == 200
        return False

    def close(self) -> None:
        """Ends it, and what it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def ask(self, path: str, **body: Any) -> Any:
        """POST of its interface for tracking."""
        return post(self.uri, path, body)

    def runs(self, launch: str = "") -> list[dict[str, Any]]:
        """Runs, of one launch or of all: `id`, `status`, `name`, `metrics`, `params`, `tags`."""
        only = f"tags.`troupe.launch` = '{launch}'" if launch else ""
        experiments = [
            each["experiment_id"]
            for each in self.ask("experiments/search", max_results=100)["experiments"]
        ]
        return [
            _plain(each)
            for each in self.ask("runs/search", experiment_ids=experiments, filter=only).get(
                "runs", ()
            )
        ]

    def runs_of_sweep(self, name: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """The sweep's run, and those of its trials by their names."""
        found = self.runs()
        (own,) = [each for each in found if each["tags"].get("troupe.sweep") == name]
        return own, {
            each["name"]: each
            for each in found
            if each["tags"].get("mlflow.parentRunId") == own["id"]
        }

    def ended(self, launch: str) -> dict[str, Any]:
        """The only run of a launch, once it has ended."""

        def found() -> dict[str, Any] | None:
            threading.Event().wait(
                0.2
            )  # each look is work for the server, which has other work to do
            runs = self.runs(launch)
            assert len(runs) <= 1, runs
            return runs[0] if runs and runs[0]["status"] != "RUNNING" else None

        run = eventually(found, timeout=START_S, what=f"the end of the run of launch {launch}")
        assert isinstance(run, dict)
        return run


def post(uri: str, path: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(
        f"{uri}/api/2.0/mlflow/{path}",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def _plain(run: dict[str, Any]) -> dict[str, Any]:
    data = run["data"]
    by_name = {
        kind: {each["key"]: each["value"] for each in data.get(kind, ())}
        for kind in ("metrics", "params", "tags")
    }
    return {
        "id": run["info"]["run_id"],
        "status": run["info"]["status"],
        "name": run["info"]["run_name"],
        **by_name,
    }


class Front:
    """A port before a server.

    It passes on what comes, until it is told to refuse or to be silent.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.uri = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: list[socket.socket] = []
        self._silent = port == 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                came, _ = self._listener.accept()
                self._open.append(came)
                if not self._silent:
                    there = socket.create_connection(("127.0.0.1", self._port))
                    self._open.append(there)
                    for source, to in ((came, there), (there, came)):
                        threading.Thread(target=self._pass, args=(source, to), daemon=True).start()

    @staticmethod
    def _pass(source: socket.socket, to: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                to.sendall(data)
        for each in (source, to):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def die(self) -> None:
        """Nobody answers any more: what is open ends, what comes is refused."""
        for each in [self._listener, *self._open]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@contextlib.contextmanager
def front(port: int = 0) -> Iterator[Front]:
    """Port 0: one that accepts and never answers."""
    made = Front(port)
    try:
        yield made
    finally:
        made.die()
