"""Bringing hosts up: ssh clients at the same time, up to a limit, until each node joined or failed.

One thread waits for all of them by events.
"""

from __future__ import annotations

import os
import selectors
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from troupe._cluster import signals
from troupe._provision import causes, connections, ssh_lines
from troupe._provision.hosts import Host

AT_ONCE = 32
_STDOUT_BYTES_MAX = 1 << 20


@dataclass(frozen=True)
class Outcome:
    """The fate of a host.

    Attributes:
        host: the host.
        cause: why it did not come; "": it came.
        node: name of its node.
        ready: what `troupe start` said when the node had joined.
        was_up: True if it was up before.
        seconds: from the start of its ssh client to this outcome.
    """

    host: Host
    cause: str = ""
    node: str = ""
    ready: dict[str, Any] | None = None
    was_up: bool = False
    seconds: float = 0.0


class _Attempt:
    """The ssh client of one host until its node has joined."""

    def __init__(self, host: Host, started: connections.Started, timeout_s: float) -> None:
        self.host = host
        self.started = started
        self.pidfd = os.pidfd_open(started.process.pid)
        self.timeout_s = timeout_s
        self.began = time.monotonic()
        self.deadline = self.began + timeout_s
        self.is_at_end = False
        self._output = b""

    def read(self) -> dict[str, Any] | None:
        """Take what the client has printed; return the document once it is whole."""
        part = os.read(self.started.stdout, 1 << 16)
        self.is_at_end = not part
        self._output = (self._output + part)[-_STDOUT_BYTES_MAX:]
        return self.document()

    def document(self) -> dict[str, Any] | None:
        """Return the document among the output so far."""
        return causes.document_of(self._output)

    def drain(self) -> None:
        """Take what is left of the output of a client that has ended."""
        os.set_blocking(self.started.stdout, False)
        try:
            while part := os.read(self.started.stdout, 1 << 16):
                self._output = (self._output + part)[-_STDOUT_BYTES_MAX:]
        except BlockingIOError:
            return

    def outcome(self, cause: str, ready: dict[str, Any] | None = None) -> Outcome:
        """Return the outcome of this attempt now."""
        node = str((ready or {}).get("name", ""))
        return Outcome(
            self.host, cause, node, ready, seconds=round(time.monotonic() - self.began, 3)
        )

    def last_lines(self) -> list[str]:
        """Return the client's last lines on stderr."""
        try:
            return causes.last_lines(self.started.connection.log.read_bytes())
        except OSError:
            return []

    def close(self, *, kill: bool) -> None:
        """Close what this process has of it; with `kill`, end the client and forget it."""
        self.started.close()
        os.close(self.pidfd)
        if kill:
            if self.started.process.poll() is None:
                self.started.process.kill()
            self.started.process.wait()
            self.started.connection.forget()


class Attempts:
    """Attempts at all hosts of a list, `AT_ONCE` at a time.

    Args:
        folder: where the records of the cluster's ssh clients are.
        address: the head's as the hosts reach it.
        token: join token.
        timeout_s: time that each host has.
    """

    def __init__(self, folder: Path, address: str, token: str, timeout_s: float) -> None:
        self._folder = folder
        self._address = address
        self._token = token
        self._timeout_s = timeout_s
        self._ssh = connections.require_ssh()
        self._selector = selectors.DefaultSelector()
        self._open: list[_Attempt] = []

    def run(self, hosts: Sequence[Host], on_outcome: Callable[[Outcome], None]) -> None:
        """Bring the hosts up; call `on_outcome` for each as soon as it is known.

        Clients of attempts that are still open when an exception leaves are ended.
        """
        waiting = deque(hosts)
        try:
            while waiting or self._open:
                while waiting and len(self._open) < AT_ONCE:
                    self._start(waiting.popleft())
                for outcome in self._next():
                    on_outcome(outcome)
        finally:
            for each in list(self._open):
                self._close(each, kill=True)
            self._selector.close()

    def _start(self, host: Host) -> None:
        line = ssh_lines.client_line(host, self._address, ssh=self._ssh)
        started = connections.start(self._folder, host, line, self._token)
        attempt = _Attempt(host, started, self._timeout_s)
        self._open.append(attempt)
        self._selector.register(started.stdout, selectors.EVENT_READ, attempt)
        self._selector.register(attempt.pidfd, selectors.EVENT_READ, attempt)

    def _close(self, attempt: _Attempt, *, kill: bool) -> None:
        self._open.remove(attempt)
        if not attempt.is_at_end:
            self._selector.unregister(attempt.started.stdout)
        self._selector.unregister(attempt.pidfd)
        attempt.close(kill=kill)

    def _next(self) -> list[Outcome]:
        """Wait for the next events, and return the outcomes that they bring."""
        first = min(each.deadline for each in self._open)
        left = max(0.0, first - time.monotonic())
        outcomes: list[Outcome] = []
        for key, _ in self._selector.select(signals.at_most(left)):
            attempt = key.data
            if attempt in self._open:
                outcomes += self._on_event(attempt, ended=key.fd == attempt.pidfd)
        now = time.monotonic()
        for attempt in [each for each in self._open if each.deadline <= now]:
            cause = causes.cause_of_silence(attempt.timeout_s, attempt.last_lines())
            outcomes.append(attempt.outcome(cause))
            self._close(attempt, kill=True)
        return outcomes

    def _on_event(self, attempt: _Attempt, *, ended: bool) -> list[Outcome]:
        if not ended:
            document = attempt.read()
            if attempt.is_at_end:
                self._selector.unregister(attempt.started.stdout)
            if document is None or "error" in document:
                return []  # after an error the client ends
            outcome = attempt.outcome("", document)
            attempt.started.connection.write_record(node=outcome.node)
            self._close(attempt, kill=False)
            return [outcome]
        attempt.drain()
        code = attempt.started.process.wait()
        cause = causes.cause_of_end(code, attempt.document(), attempt.last_lines())
        outcome = attempt.outcome(cause)
        self._close(attempt, kill=True)
        return [outcome]
