"""A process's reports of its metrics: growth of counters and histograms, values of gauges.

Method: a reporter with a made-up session, whose head answers, refuses or is away.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from troupe import exceptions
from troupe._cluster import session as _session
from troupe.util._metric_reports import SERIES_PER_ROUND, Reporter


class FakeSession:
    """A session whose head takes reports, unless it is `away`."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.closed_here = self.in_process = False
        self.away = False
        self.refuses: list[str] = []
        self.reports: list[dict[str, Any]] = []
        self.closing: list[Callable[[], None]] = []

    def on_close(self, action: Callable[[], None]) -> None:
        self.closing.append(action)

    def request(
        self, kind: str, fields: dict[str, Any], *, timeout: float
    ) -> tuple[str, dict[str, Any], bytes]:
        assert kind == "ReportMetrics"
        self.reports.append(fields)
        if self.away:
            raise exceptions.ConnectionError("the head is away")
        return "MetricsTaken", {"refused": self.refuses}, b""


@pytest.fixture
def session() -> Iterator[FakeSession]:
    fake = FakeSession()
    before = _session.set_current(fake)  # type: ignore[arg-type]
    yield fake
    _session.set_current(before)


def series(name: str, kind: str, value: float, **tags: str) -> dict[str, Any]:
    return {"name": name, "type": kind, "description": "", "tags": tags, "value": value}


def values(report: dict[str, Any]) -> dict[str, float]:
    return {each["name"]: each["series"][0]["value"] for each in report["families"]}


def test_a_round_tells_what_has_changed_since_the_last_that_was_answered(
    session: FakeSession,
) -> None:
    counted = {
        ("c",): series("done", "counter", 3),
        ("g",): series("depth", "gauge", 5),
        ("h",): {
            **series("took", "histogram", 0),
            "boundaries": [1, 2],
            "buckets": [1, 0, 2],
            "count": 3,
            "sum": 9.0,
        },
    }
    reporter = Reporter(lambda: {key: dict(each) for key, each in counted.items()})
    session.away = True
    reporter.report()
    counted["c",]["value"] = 4
    session.away = False
    reporter.report()
    first, again, second = session.reports
    assert first is again, "a round that was not answered goes again as it was"
    assert values(first) == {"done": 3, "depth": 5, "took": 9}
    assert values(second) == {"done": 1}
    assert second["source"] == first["source"] and second["round"] == first["round"] + 1
    reporter.report()
    assert len(session.reports) == 3, "nothing is new"
    counted["h",] = {**counted["h",], "buckets": [1, 1, 2], "count": 4, "sum": 10.5}
    counted["g",] = series("depth", "gauge", 2)
    reporter.report()
    assert values(session.reports[-1]) == {"depth": 2, "took": 1.5}
    (took,) = [each for each in session.reports[-1]["families"] if each["name"] == "took"]
    assert took["series"][0]["counts"] == [0, 1, 0] and took["bounds"] == [1.0, 2.0]


def test_many_series_go_in_rounds_and_labels_in_their_order(session: FakeSession) -> None:
    count = SERIES_PER_ROUND * 2 + 1
    counted = {(n,): series("done", "counter", 1, b=str(n), a="x") for n in range(count)}
    reporter = Reporter(lambda: counted)
    reporter.report()
    sizes = [sum(len(each["series"]) for each in one["families"]) for one in session.reports]
    assert sizes == [SERIES_PER_ROUND, SERIES_PER_ROUND, 1]
    labels = session.reports[0]["families"][0]["series"][0]["labels"]
    assert [each["key"] for each in labels] == ["a", "b"]


def test_a_refusal_is_printed_once(session: FakeSession, capfd: pytest.CaptureFixture[str]) -> None:
    counted = {("c",): series("done", "counter", 1)}
    reporter = Reporter(lambda: counted)
    session.refuses = ["the metric done is a gauge already"]
    reporter.report()
    counted = {("c",): series("done", "counter", 2)}
    reporter.report()
    assert len(session.reports) == 2
    assert capfd.readouterr().err.count("the metric done is a gauge already") == 1


def test_the_end_of_a_session_reports_once_more(session: FakeSession) -> None:
    counted = {("c",): series("done", "counter", 1)}
    reporter = Reporter(lambda: counted)
    reporter.report()
    counted = {("c",): series("done", "counter", 2)}
    session.closing[0]()
    assert values(session.reports[-1]) == {"done": 1}
    session.closed_here = True
    counted = {("c",): series("done", "counter", 9)}
    reporter.report()
    assert len(session.reports) == 2
