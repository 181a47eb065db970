"""`troupe timeline`: what the processes of a cluster did lately, as a trace."""

from __future__ import annotations

import json
import secrets
import time
from typing import Any

import click

from troupe import exceptions
from troupe.cli import _common, _targets

_HOW_TO_OPEN = "open it at https://ui.perfetto.dev or in chrome://tracing"


@click.command()
@click.argument("target", metavar="[LAUNCH|ACTOR]", required=False)
@click.option(
    "--seconds",
    type=click.FloatRange(0.1, 86400),
    default=60.0,
    show_default=True,
    help="How far back.",
)
@click.option(
    "--calls",
    "calls_every",
    type=click.IntRange(1, 1_000_000),
    metavar="N",
    help="First record one actor call in N for that long, and then show that time.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    default="timeline.json",
    show_default=True,
    type=click.Path(dir_okay=False, writable=True),
    help="Where to write it.",
)
@click.option(
    "--otlp",
    "endpoint",
    metavar="ENDPOINT",
    help="Send it to the OpenTelemetry collector there, as http://HOST:4318, and write no file.",
)
@_common.cluster_options
def timeline(
    target: str | None,
    seconds: float,
    calls_every: int | None,
    output: str,
    endpoint: str | None,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Write what ranks, actors and programs did lately, as a trace for Perfetto.

    Of one launch or one actor (a prefix of its id will do), with the programs that call them, or
    of the whole cluster: lives of processes, phases of launches, tasks, transfers, collectives,
    trials, and actor calls where they are sampled.
    """
    from troupe._tracing import collect, timeline as _timeline

    with _common.session(address, token_file, cluster) as session:
        which = _targets.named(session, target) if target else {}
        wanted = collect.Wanted(**which, seconds=seconds)
        if calls_every:
            collect.sample_calls(session, wanted, calls_every)
            time.sleep(seconds)  # lint-ok: the time that is recorded
        found = _timeline.of_session(session, wanted)
    spans = sum(each["ph"] == "X" for each in found.events)
    if endpoint:
        _export(endpoint, found.events)
        _report(endpoint, spans, found, as_json)
        return
    document = {
        "traceEvents": found.events,
        "displayTimeUnit": "ms",
        "otherData": {"dropped": found.dropped, "errors": found.errors},
    }
    with open(output, "w", encoding="utf-8") as file:
        json.dump(document, file)
    _report(output, spans, found, as_json)


def _export(endpoint: str, events: list[dict[str, Any]]) -> None:
    from troupe._tracing import otlp

    try:
        for body in otlp.requests(events, secrets.token_hex(16)):
            otlp.send(endpoint, body)
    except otlp.ExportError as error:
        raise exceptions.TroupeError(str(error)) from None


def _report(output: str, spans: int, found: Any, as_json: bool) -> None:
    if as_json:
        _common.echo_json(
            {"file": output, "spans": spans, "dropped": found.dropped, "errors": found.errors}
        )
        return
    for node, error in found.errors.items():
        _common.echo(f"node {node} was not asked: {error}")
    lost = f", {found.dropped:,} older ones were dropped" if found.dropped else ""
    after = "sent" if "://" in output else _HOW_TO_OPEN
    _common.echo_line(f"{output}: {spans:,} spans{lost}; {after}")
