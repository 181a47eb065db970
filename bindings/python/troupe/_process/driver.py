"""Rank 0 of a `@ray_launch`: runs the user's function as the driver and writes the completion
marker.

Order (spec: completion marker): AcquireDriver before anything of the user's runs, RenewDriver while
it runs, Complete with the outcome; the marker that answers it decides the exit code. A newer epoch
fences this one: it ends at once with 76.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any, NoReturn

from troupe import exceptions
from troupe._base.identity import new_id
from troupe._cluster import session as _session, status_lines
from troupe._code import failures
from troupe._process import exit as _leave, finish, rank
from troupe._process.channel import ProcessChannel
from troupe.launch import _large_result

EXIT_UNKNOWN, EXIT_FENCED, EXIT_BUSY = 75, 76, 77
COMPLETE_DEADLINE_S = 600.0
RETRY_PAUSE_S = 0.2
ANNOUNCE_GRACE_S = 0.15  # the worker's patience after ProcessEnd is 0.2 s
_RETRIED = (exceptions.ConnectionError, exceptions.GetTimeoutError, exceptions.UnknownOutcomeError)


def run(channel: ProcessChannel, begin: dict[str, Any], attachment: bytes) -> NoReturn:
    """Lives the driver's life; leaves by os._exit with the marker's exit code."""
    context = rank.enter(begin)
    session = _session.Session.over_process(channel, launch=begin["launch"], epoch=begin["epoch"])
    rank.track(session, begin)
    loaded = rank.prepare(channel, begin, attachment, session)
    rank.start(channel, context)
    ttl_ms = _acquire(session, begin)
    _session.set_current(session)
    if getattr(loaded[0], "renews_lease", True):
        threading.Thread(
            target=_renew, args=(session, begin, ttl_ms), name="troupe-lease", daemon=True
        ).start()
    completion = Completion(channel, session, begin)
    context._abort = completion.abort
    finish.let_go_of(loaded[0])
    ended = rank.call(begin, *loaded)
    del loaded
    completion.write(ended)


def _acquire(session: _session.Session, begin: dict[str, Any]) -> int:
    """Takes the driver lease of this epoch; its time to live in ms. Leaves if it is not ours."""
    fields = {"launch": begin["launch"], "epoch": begin["epoch"], "nonce": new_id()}
    try:
        kind, answer, _ = session.request("AcquireDriver", fields)
    except exceptions.FencedError as error:
        print(f"troupe: not the driver: {error}", file=sys.stderr, flush=True)
        _leave.leave_now(EXIT_FENCED)
    except exceptions.AlreadyExistsError as error:
        print(f"troupe: another process is the driver: {error}", file=sys.stderr, flush=True)
        _leave.leave_now(EXIT_BUSY)
    if kind == "MarkerReply":
        announce(answer["marker"])
        _leave.leave_now(answer["marker"]["exit_code"])
    found: int = answer["ttl_ms"]
    return found


def _renew(session: _session.Session, begin: dict[str, Any], ttl_ms: int) -> None:
    fields = {"launch": begin["launch"], "epoch": begin["epoch"]}
    pause = threading.Event()
    while not pause.wait(max(0.05, ttl_ms / 3000)):
        try:
            kind, answer, _ = session.request(
                "RenewDriver", fields, timeout=max(1.0, ttl_ms / 1000)
            )
        except exceptions.FencedError:
            os._exit(EXIT_FENCED)
        except exceptions.TroupeError:
            continue  # the head may be away; what runs goes on, the next renewal tells
        if kind == "MarkerReply":
            return  # terminal: Complete answers with the same marker


def announce(marker: dict[str, Any]) -> None:
    """Says what the marker is: outcome, exit code, epoch, duration."""
    cause = f" · {marker['cause']}" if marker["cause"] else ""
    status_lines.say(
        f"marker: {marker['outcome']}, exit {marker['exit_code']}, epoch {marker['epoch']}, "
        f"{marker['duration_ms'] / 1000:.1f} s{cause}"
    )


class Completion:
    """Writes the outcome once, whoever is first: the driver's end or an abort."""

    def __init__(
        self, channel: ProcessChannel, session: _session.Session, begin: dict[str, Any]
    ) -> None:
        self._channel = channel
        self._session = session
        self._begin = begin
        self._first = threading.Lock()
        self._announced = threading.Event()
        channel.before_end(self._let_announce)

    def _let_announce(self, _: dict[str, Any]) -> None:
        """The end of the epoch overtakes the answer to Complete, which says what to print."""
        if self._first.locked():
            self._announced.wait(ANNOUNCE_GRACE_S)

    def abort(self, error: BaseException) -> None:
        """Fails the launch with `error` and ends the process; for another thread than the
        driver's."""
        failure = failures.fields_of(error, rank=0)
        self.write(rank.Ended(failures.pickled(error), failure, 1))

    def write(self, ended: rank.Ended) -> NoReturn:
        """Complete, the marker line, the end of the process."""
        if not self._first.acquire(blocking=False):
            threading.Event().wait()  # the other one ends the process
        _leave.flush()
        if len(ended.value) > _large_result.INLINE_BYTES_MAX:
            ended.value = _large_result.keep(self._session, self._begin["node"], ended.value)
        marker = self._complete(ended)
        if marker is None:
            print(
                "troupe: the head could not be reached; the outcome is unknown",
                file=sys.stderr,
                flush=True,
            )
            _leave.leave(EXIT_UNKNOWN)
        announce(marker)
        self._announced.set()
        self._channel.finish()
        _leave.leave(marker["exit_code"])

    def _complete(self, ended: rank.Ended) -> dict[str, Any] | None:
        """The durable marker; repeats the same request until it is known, or None at the
        deadline."""
        begin = self._begin
        fields = {
            "launch": begin["launch"],
            "epoch": begin["epoch"],
            "request": new_id(),
            "outcome": ended.outcome,
            "exit_code": ended.exit_code,
            "failure": ended.failure,
        }
        deadline = time.monotonic() + COMPLETE_DEADLINE_S
        pause = threading.Event()
        while time.monotonic() < deadline:
            try:
                found: dict[str, Any] | None = self._session.request(
                    "Complete", fields, ended.value
                )[1]["marker"]
                return found
            except exceptions.FencedError as error:
                print(f"troupe: not the driver any more: {error}", file=sys.stderr, flush=True)
                _leave.leave(EXIT_FENCED)
            except _RETRIED:
                pause.wait(RETRY_PAUSE_S)
        return None
