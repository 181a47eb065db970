"""Reports of this process's metrics to its cluster's head, which shows them in `/metrics`.

A thread sends every PERIOD_S what counters and histograms have grown by, and the values of gauges;
another report follows when the session is closed, and when the process ends. A round that was not
answered is sent again under its number, and the head counts it once. Refusals are printed once
each. A process without a session reports nothing, and catches up once it has one.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from troupe import exceptions
from troupe._base import callbacks as _callbacks
from troupe._base.identity import new_id
from troupe._cluster import session as _session

PERIOD_S = 5.0
GAUGES_AGAIN_S = 20.0
"""The head forgets a gauge that it has not been told of for 60 s."""
SERIES_PER_ROUND = 500
REFUSALS_MAX = 100
_REPORT_TIMEOUT_S = 10.0
_END_TIMEOUT_S = 2.0
_SEND_TIMEOUT_S = 0.1
"""For the report of a process that was told to end, which its worker then gives 0.4 s."""

Series = dict[str, Any]
"""What `troupe.util.metrics` counts: name, type, description, tags, and value or buckets."""


class Reporter:
    """Reports of one process: what the head has been told, and what is to be told next.

    `collect` returns copies of the process's series by their keys.
    """

    def __init__(self, collect: Callable[[], dict[tuple[Any, ...], Series]]) -> None:
        self._collect = collect
        self._lock = threading.Lock()  # allows one report at a time
        self._begun = False
        self._wake = threading.Event()
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._source, self._round = new_id(), 0
        self._told: dict[tuple[Any, ...], Series] = {}
        self._pending: tuple[dict[str, Any], dict[tuple[Any, ...], Series]] | None = None
        self._gauges_told: dict[tuple[Any, ...], float] = {}
        self._session: Any = None
        self._refusals: set[str] = set()

    def begin(self) -> None:
        """Start the thread, once. Does not block."""
        if self._begun:
            return
        self._begun = True
        atexit.register(self.report, _END_TIMEOUT_S)
        threading.Thread(target=self._run, name="troupe-metrics", daemon=True).start()

    def after_fork(self) -> None:
        """Start from nothing in a forked child: its parent reports what the parent counted."""
        self._lock, self._wake, self._begun = threading.Lock(), threading.Event(), False
        self._begin_anew()
        self._told = self._collect()

    def _run(self) -> None:
        while True:
            self._wake.wait(PERIOD_S)
            self._wake.clear()
            _callbacks.run("reporting this process's metrics", self.report)

    def report(self, timeout: float = _REPORT_TIMEOUT_S) -> None:
        """Report what is new. Blocks; does nothing without a session that can be reached."""
        deadline = time.monotonic() + timeout
        if not self._lock.acquire(timeout=timeout):
            return
        try:
            session = _session.current_or_none()
            if session is None or session.closed_here:
                return
            self._watch(session)
            with contextlib.suppress(exceptions.ConnectionError, exceptions.GetTimeoutError):
                while (left := deadline - time.monotonic()) > 0 and self._prepare():
                    self._send(session, left)
        finally:
            self._lock.release()

    def _watch(self, session: Any) -> None:
        """Have a last report made when the session ends from this side."""
        if session is self._session:
            return
        self._session = session
        self._gauges_told.clear()
        if session.in_process:
            # Runs on the thread that reads answers: the report is sent, its answer never read.
            session.before_end(lambda _: self.report(_SEND_TIMEOUT_S))
        else:
            session.on_close(lambda: self.report(_END_TIMEOUT_S))

    def _send(self, session: Any, timeout: float) -> None:
        assert self._pending is not None
        message, told = self._pending
        try:
            _, answer, _ = session.request("ReportMetrics", message, timeout=timeout)
        except (exceptions.ConnectionError, exceptions.GetTimeoutError):
            raise  # again later, by the same number
        except exceptions.TroupeError as refused:
            answer = {"refused": [str(refused)]}
        self._told.update(told)
        self._gauges_told.update(dict.fromkeys(told, time.monotonic()))
        self._pending = None
        for text in answer["refused"]:
            if text not in self._refusals and len(self._refusals) < REFUSALS_MAX:
                self._refusals.add(text)
                _callbacks.say(f"troupe: not taken by the cluster's head: {text}")

    def _prepare(self) -> bool:
        """Make the next round, if there is something to tell."""
        if self._pending is not None:
            return True
        news = dict(islice(self._news(), SERIES_PER_ROUND))
        if not news:
            return False
        families: dict[tuple[Any, ...], dict[str, Any]] = {}
        for key, series in news.items():
            bounds = tuple(series.get("boundaries", ()))
            family = families.setdefault(
                (series["type"], series["name"], bounds),
                {
                    "name": series["name"],
                    "kind": series["type"],
                    "help": series["description"],
                    "bounds": [float(each) for each in bounds],
                    "series": [],
                },
            )
            family["series"].append(self._growth(key, series))
        self._round += 1
        message = {
            "source": self._source,
            "round": self._round,
            "families": list(families.values()),
        }
        self._pending = (message, news)
        return True

    def _news(self) -> Iterator[tuple[tuple[Any, ...], Series]]:
        late = time.monotonic() - GAUGES_AGAIN_S
        for key, series in self._collect().items():
            again = series["type"] == "gauge" and self._gauges_told.get(key, 0.0) <= late
            if again or self._told.get(key) != series:
                yield key, series

    def _growth(self, key: tuple[Any, ...], series: Series) -> dict[str, Any]:
        told = self._told.get(key)
        labels = [{"key": name, "value": value} for name, value in sorted(series["tags"].items())]
        if series["type"] == "histogram":
            before = told["buckets"] if told else [0] * len(series["buckets"])
            counts = [now - then for now, then in zip(series["buckets"], before, strict=True)]
            value = series["sum"] - (told["sum"] if told else 0.0)
            return {"labels": labels, "value": value, "counts": counts}
        grows = series["type"] == "counter"
        return {
            "labels": labels,
            "value": series["value"] - (told["value"] if told and grows else 0.0),
        }


def make_reporter(collect: Callable[[], dict[tuple[Any, ...], Series]]) -> Reporter:
    """Return the process's reporter. Its thread begins with `begin`."""
    reporter = Reporter(collect)
    os.register_at_fork(after_in_child=reporter.after_fork)
    return reporter
