"""What /metrics tells: read by prometheus_client's two parsers, compared with what the cluster is.

Method: a head with a worker, real processes, with an actor alive and one that waits.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from e2e_conftest import Home, eventually
from http_head import Client
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

import troupe

FORMATS = {"text/plain": prometheus, "application/openmetrics-text": open_metrics}


@pytest.fixture(scope="module")
def scraped(shared_home: Home) -> Iterator[tuple[Client, str]]:
    started = shared_home.json("start", "--head", "--port", "0", "--num-cpus", "3")
    troupe.init(started["address"])
    token = shared_home.run("token", "create", "--role", "observer").stdout.strip()
    yield Client(shared_home, started), token
    troupe.shutdown()


def scrape(client: Client, token: str, accept: str) -> dict[tuple, float]:
    answer = client.get("/metrics", token, headers={"Accept": accept, "Cache-Control": "no-cache"})
    assert answer.status == 200 and answer.headers["Content-Type"].startswith(accept)
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in FORMATS[accept](answer.text)
        for sample in family.samples
    }


@pytest.mark.parametrize("accept", FORMATS)
def test_metrics_tell_what_the_cluster_is(scraped: tuple[Client, str], accept: str) -> None:
    client, token = scraped

    @troupe.remote(num_cpus=2)
    class Holder:
        def ready(self) -> bool:
            return True

    holder, waiting = Holder.remote(), Holder.remote()
    assert troupe.get(holder.ready.remote())

    def seen() -> dict[tuple, float] | None:
        samples = scrape(client, token, accept)
        return samples if samples["troupe_queue_waiting", ("kind", "actor")] == 1 else None

    samples = eventually(seen, what="the second actor in the queue")
    assert samples["troupe_nodes", ("state", "alive")] == 1
    assert samples["troupe_nodes", ("state", "dead")] == 0
    assert samples["troupe_actors", ("state", "alive")] == 1
    assert samples["troupe_actors", ("state", "pending")] == 1
    cpus = {
        state: samples["troupe_resources", ("resource", "CPU"), ("state", state)]
        for state in ("free", "used", "missing")
    }
    assert cpus == {"free": 1, "used": 2, "missing": 0}
    assert samples["troupe_queue_oldest_seconds", ("kind", "actor")] > 0
    assert samples["troupe_journal_read_only",] == 0
    assert samples["troupe_build_info", ("version", troupe.__version__)] == 1
    steps = samples["troupe_reducer_step_seconds_count",]
    assert steps == samples["troupe_reducer_step_seconds_bucket", ("le", "+Inf")] > 10
    assert samples["troupe_journal_commit_seconds_count",] > 2
    assert samples["process_resident_memory_bytes",] > 1e6
    assert samples["process_cpu_seconds_total",] > 0
    del holder, waiting
    eventually(
        lambda: scrape(client, token, accept)["troupe_actors", ("state", "dead")] >= 2,
        what="the end of both actors",
    )
