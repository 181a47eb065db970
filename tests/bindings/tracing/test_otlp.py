"""A trace as OTLP, read by OpenTelemetry's own messages, and sent to a server that keeps or refuses
it."""

from __future__ import annotations

import base64
import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from troupe._tracing import otlp

TRACE = "0123456789abcdef" * 2


def _x(category: str, pid: int, tid: int, ts: float, dur: float, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": category[:3], "pid": pid, "tid": tid} | {
        "ts": ts,
        "dur": dur,
        "args": args,
    }


EVENTS = [
    {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 0}
    | {"args": {"name": "program p (pid 1 on a)", "kind": "program"}},
    _x("life", 1, 0, 1000.0, 100.0),
    _x("task", 1, 5, 1010.0, 50.0, failed=True, rank=3, share=0.5, skipped=[1]),
    _x("call", 1, 5, 1020.0, 10.0),
    _x("life", 2, 0, 1000.0, 100.0),
    _x("run", 2, 7, 1022.5, 5.0),
    {"ph": "s", "cat": "call", "name": "run", "id": 1, "pid": 1, "tid": 5, "ts": 1020.0},
    {"ph": "f", "cat": "call", "name": "run", "id": 1, "pid": 2, "tid": 7, "ts": 1022.5},
]


def test_spans_have_their_parents_times_and_attributes_by_opentelemetrys_own_reader() -> None:
    service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    from google.protobuf import json_format

    (body,) = otlp.requests(EVENTS, TRACE)
    for resource in body["resourceSpans"]:
        for span in resource["scopeSpans"][0]["spans"]:
            for name in ("traceId", "spanId", "parentSpanId"):  # hexadecimal in OTLP alone
                span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    read = json_format.ParseDict(body, service.ExportTraceServiceRequest())
    spans = {}
    for resource in read.resource_spans:
        labels = {each.key: each.value for each in resource.resource.attributes}
        for span in resource.scope_spans[0].spans:
            spans[span.name, labels["process.pid"].int_value] = span
    parents = {key: span.parent_span_id for key, span in spans.items()}
    assert parents["lif", 1] == parents["lif", 2] == b""
    assert parents["tas", 1] == spans["lif", 1].span_id
    assert parents["cal", 1] == spans["tas", 1].span_id
    assert parents["run", 2] == spans["cal", 1].span_id, "by the arrow, over processes"
    run = spans["run", 2]
    assert (run.start_time_unix_nano, run.end_time_unix_nano) == (1_022_500, 1_027_500)
    assert all(span.trace_id == bytes.fromhex(TRACE) for span in spans.values())
    values = {each.key: each.value for each in spans["tas", 1].attributes}
    assert values["failed"].bool_value and values["rank"].int_value == 3
    assert values["share"].double_value == 0.5 and "skipped" not in values


def test_many_spans_are_several_requests() -> None:
    events = [_x("task", 1, 5, float(at), 1.0) for at in range(otlp.SPANS_AT_ONCE + 1)]
    bodies = list(otlp.requests(events, TRACE))
    counts = [len(each["resourceSpans"][0]["scopeSpans"][0]["spans"]) for each in bodies]
    assert counts == [otlp.SPANS_AT_ONCE, 1]


@pytest.fixture
def collector() -> Iterator[tuple[str, list[tuple[str, str | None, Any]]]]:
    """The address of a server, and what it was sent: path, a header, document."""
    taken: list[tuple[str, str | None, Any]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"]))
            taken.append((self.path, self.headers["x-key"], json.loads(text)))
            self.send_response(200 if self.path == "/v1/traces" else 404)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", taken
        server.shutdown()
        thread.join()


def test_a_collector_is_sent_them_and_one_that_refuses_is_named(
    collector: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, taken = collector
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b")
    otlp.send(address, {"resourceSpans": []})
    assert taken == [("/v1/traces", "a b", {"resourceSpans": []})]
    for wrong in (f"{address}/elsewhere", "http://127.0.0.1:1", "no address"):
        with pytest.raises(otlp.ExportError, match="4318"):
            otlp.send(wrong, {})
