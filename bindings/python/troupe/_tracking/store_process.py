"""A process beside this program that makes the runs of its launches, and has the program's own
store where that is a file (`local_store`).

One for each address that the program tracks to, kept while a session is open that has launched with
it: what MLflow imports, and the making of a database, is waited for once.
The program itself is neither slowed nor changed by it, and a database is opened by that process
alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from troupe._code.environment import of_own_process
from troupe._tracking import local_store, rule, runs

AWAY_S = 60.0
LOAD_S = 60.0  # for the import of MLflow, of which a busy machine makes seconds
ENDS_S = 10.0
_OF_A_CLIENT = (
    "MLFLOW_",
    "DATABRICKS_",
    "AWS_",
    "AZURE_",
    "GOOGLE_",
)  # variables that say how the store is reached
_lock = threading.Lock()
_processes: dict[tuple[Any, ...], StoreProcess] = {}


class StoreProcessError(Exception):
    """The process, or the store, did not do what it was asked."""


def process_of(uri: str, environment: Mapping[str, str], session: Any) -> StoreProcess:
    """Return the process for this address, started where there is none.

    Does not block for it. It is there until the session is closed. Raises OSError.
    """
    settings = tuple(
        sorted(
            (name, value) for name, value in environment.items() if name.startswith(_OF_A_CLIENT)
        )
    )
    key = (os.getpid(), uri, os.getcwd(), settings)
    with _lock:
        known = _processes.get(key)
        if known is None or not known.is_running():
            for other in [each for each in _processes if each[0] != key[0]]:
                del _processes[other]  # belongs to a process that this one is a fork of
            known = _processes[key] = StoreProcess(uri, environment)
        known.hold(session)
        return known


def _folder_of_mlflow() -> str:
    """Return the folder that this program imports mlflow from; "": it is not installed."""
    found = importlib.util.find_spec("mlflow")
    return (
        os.path.dirname(os.path.dirname(found.origin)) if found is not None and found.origin else ""
    )


class StoreProcess:
    """The process, of which one thing is asked after the other. Any thread."""

    def __init__(self, uri: str, environment: Mapping[str, str]) -> None:
        self._turn = threading.Lock()
        self._away_until = 0.0
        self._holders: list[Any] = []  # sessions
        self._errors = b""
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", local_store.__name__, _folder_of_mlflow()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={
                **environment,
                local_store.ADDRESS: uri,
                "PYTHONPATH": of_own_process().get("PYTHONPATH", ""),
            },
            start_new_session=True,
        )
        threading.Thread(target=self._read_errors, name="troupe-store-errors", daemon=True).start()

    def is_running(self) -> bool:
        """Return True unless the process has ended, or is about to."""
        return not self._process.stdin.closed and self._process.poll() is None  # type: ignore[union-attr]

    def hold(self, session: Any) -> None:
        """Keep the process until this session is closed too.

        Called with the lock of all processes held.
        """
        if session not in self._holders:
            self._holders.append(session)
            session.on_close(lambda: self._release(session))

    def _release(self, session: Any) -> None:
        with _lock:
            self._holders.remove(session)
            if self._holders:
                return
            taken = self._turn.acquire(timeout=ENDS_S)
            with contextlib.suppress(OSError):
                self._process.stdin.close()  # type: ignore[union-attr]
            if taken:
                self._turn.release()
        try:
            self._process.wait(ENDS_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def ask(self, header: Mapping[str, Any], body: bytes = b"") -> tuple[dict[str, Any], bytes]:
        """Return the answer of the process to one frame. Blocks. Raises StoreProcessError."""
        try:
            with self._turn:
                local_store.write(self._process.stdin, dict(header), body)  # type: ignore[arg-type]
                answer = local_store.read(self._process.stdout)  # type: ignore[arg-type]
        except (OSError, ValueError) as error:
            raise StoreProcessError(self._explain(str(error))) from None
        if answer is None:
            raise StoreProcessError(self._explain("it has ended"))
        return answer

    def open_run(self, wish: rule.Wish, timeout_s: float) -> tuple[rule.Wish, str]:
        """Make the run of this wish.

        Return the wish with it, and where a person looks at it. Blocks. Raises StoreProcessError,
        and runs.Late after so many seconds (MLflow has LOAD_S before to be imported); then, and
        for AWAY_S, the store is not waited for again.
        """
        if time.monotonic() < self._away_until:
            raise StoreProcessError("the store did not answer a moment ago")
        given_up = threading.Event()

        def make() -> tuple[str, str, str]:
            header, content = self.ask({"open": dataclasses.asdict(wish)})
            if header["status"] != 200:
                raise StoreProcessError(content.decode(errors="replace"))
            run, experiment, link = json.loads(content)
            if given_up.is_set():  # another one is made instead
                self.end_run(run, "", "KILLED")
            return run, experiment, link

        try:
            runs.within(LOAD_S, "the import of MLflow", lambda: self.ask({"load": True}))
            run, experiment, link = runs.within(timeout_s, f"MLflow at {wish.store}", make)
        except (StoreProcessError, runs.Late):
            given_up.set()
            self._away_until = time.monotonic() + AWAY_S
            raise
        return dataclasses.replace(wish, run=run, experiment=experiment, is_made=True), link

    def end_run(self, run: str, launch: str, status: str) -> None:
        """Give the run of a launch its end, unless it has one. Blocks."""
        with contextlib.suppress(
            StoreProcessError
        ):  # a process that has ended itself has ended them all
            self.ask({"over": {"run": run, "launch": launch, "status": status}})

    def _read_errors(self) -> None:
        for line in self._process.stderr:  # type: ignore[union-attr]
            self._errors = (self._errors + line)[-4000:]

    def _explain(self, why: str) -> str:
        last = self._errors.decode(errors="replace").strip().rpartition("\n")[2]
        text = f"the process that has this program's tracking store cannot be asked: {why}" + (
            f" ({last})" if last else ""
        )
        if "No module named" in last:
            text += (
                "\n  pip install mlflow: mlflow-skinny has no server, which the store of "
                "several processes needs"
            )
        return text
