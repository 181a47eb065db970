"""A timeline as OpenTelemetry's spans (OTLP over HTTP, in JSON), and how a collector is sent them.

`requests` is pure. A span's parent is the call that it runs, where an arrow says so; else the
innermost span around it on its track; else the life of its process.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

SPANS_AT_ONCE = 2_000
"""Spans of one request: about 1 MiB, which every collector takes."""
TIMEOUT_S = 30.0
_PATH = "/v1/traces"
_INTERNAL, _SERVER, _CLIENT = 1, 2, 3  # values of opentelemetry.proto.trace.v1.Span.SpanKind
_KINDS = {"call": _CLIENT, "run": _SERVER}


class ExportError(Exception):
    """A collector did not take the spans."""


def requests(events: Iterable[dict[str, Any]], trace_id: str) -> Iterator[dict[str, Any]]:
    """Yield the bodies of the requests that export a trace, SPANS_AT_ONCE in each.

    Args:
        events: Events in Chrome's trace format, as `chrome.trace` makes them.
        trace_id: The id of the trace, 32 hexadecimal digits.
    """
    events = list(events)
    spans = [each for each in events if each["ph"] == "X"]
    ids = {id(each): f"{number:016x}" for number, each in enumerate(spans, 1)}
    parents = _parents(spans, _callers(events, spans))
    names = {
        each["pid"]: each["args"]
        for each in events
        if each["ph"] == "M" and each["name"] == "process_name"
    }
    for begin in range(0, len(spans), SPANS_AT_ONCE):
        by_process: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for each in spans[begin : begin + SPANS_AT_ONCE]:
            parent = parents.get(id(each))
            span = _span(each, trace_id, ids[id(each)], ids[parent] if parent else "")
            by_process[each["pid"]].append(span)
        yield {
            "resourceSpans": [
                {
                    "resource": {"attributes": _resource(pid, names.get(pid, {}))},
                    "scopeSpans": [{"scope": {"name": "troupe"}, "spans": made}],
                }
                for pid, made in by_process.items()
            ]
        }


def send(endpoint: str, body: dict[str, Any]) -> None:
    """Send one request to the collector at `endpoint`, such as http://collector:4318.

    OTEL_EXPORTER_OTLP_HEADERS names headers to add, as `name=value,name=value`.

    Raises:
        ExportError: The collector does not answer, or refuses.
    """
    parts = urllib.parse.urlsplit(endpoint)
    url = endpoint if parts.path.strip("/") else f"{endpoint.rstrip('/')}{_PATH}"
    headers = {"Content-Type": "application/json"}
    for pair in filter(None, os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", "").split(",")):
        name, _, value = pair.partition("=")
        headers[name.strip()] = urllib.parse.unquote(value.strip())
    try:
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            answer.read()
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise ExportError(
            f"the spans were not sent to {url}: {reason}\n"
            "  give the address at which a collector takes OTLP over HTTP: http://HOST:4318"
        ) from None


def _callers(
    events: list[dict[str, Any]], spans: list[dict[str, Any]]
) -> dict[int, dict[str, Any]]:
    """Return the call of each run that an arrow leads to, by the run's identity."""
    at = {
        (each["cat"], each["pid"], each["tid"], each["ts"]): each
        for each in spans
        if each["cat"] in _KINDS
    }
    ends: dict[int, dict[str, dict[str, Any]]] = defaultdict(dict)
    for each in events:
        if each["ph"] in "sf":
            ends[each["id"]][each["ph"]] = each
    found = {}
    for arrow in ends.values():
        if len(arrow) < len("sf"):
            continue
        call, run = (
            at.get((category, arrow[end]["pid"], arrow[end]["tid"], arrow[end]["ts"]))
            for category, end in (("call", "s"), ("run", "f"))
        )
        if call is not None and run is not None:
            found[id(run)] = call
    return found


def _parents(spans: list[dict[str, Any]], callers: dict[int, dict[str, Any]]) -> dict[int, int]:
    """Return the identity of each span's parent, by the span's."""
    lives = {each["pid"]: each for each in spans if each["cat"] == "life"}
    open_spans: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    parents = {}
    for each in sorted(spans, key=lambda one: (one["ts"], -one["dur"])):
        around = open_spans[each["pid"], each["tid"]]
        while around and around[-1]["ts"] + around[-1]["dur"] <= each["ts"]:
            around.pop()
        parent = callers.get(id(each)) or (around[-1] if around else lives.get(each["pid"]))
        if parent is not None and parent is not each:
            parents[id(each)] = id(parent)
        around.append(each)
    return parents


def _span(each: dict[str, Any], trace_id: str, span_id: str, parent: str) -> dict[str, Any]:
    begin_ns = round(each["ts"] * 1000)
    return {
        "traceId": trace_id,
        "spanId": span_id,
        "parentSpanId": parent,
        "name": each["name"] or each["cat"],
        "kind": _KINDS.get(each["cat"], _INTERNAL),
        "startTimeUnixNano": str(begin_ns),
        "endTimeUnixNano": str(begin_ns + round(each["dur"] * 1000)),
        "attributes": _attributes({"troupe.category": each["cat"], **each["args"]}),
    }


def _resource(pid: int, label: dict[str, Any]) -> list[dict[str, Any]]:
    return _attributes(
        {
            "service.namespace": "troupe",
            "service.name": label.get("kind", "process"),
            "service.instance.id": label.get("name", str(pid)),
            "process.pid": pid,
        }
    )


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the texts, numbers and truth values among `values` as attributes."""
    made = []
    for name, value in values.items():
        if isinstance(value, bool):
            kept: dict[str, Any] = {"boolValue": value}
        elif isinstance(value, int):
            kept = {"intValue": str(value)}
        elif isinstance(value, float):
            kept = {"doubleValue": value}
        elif isinstance(value, str):
            kept = {"stringValue": value}
        else:
            continue
        made.append({"key": name, "value": kept})
    return made
