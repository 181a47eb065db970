"""Contents of /metrics: read by prometheus_client's two parsers, compared with the cluster.

Method: a head with a worker on a machine with three made-up GPUs, real processes; what programs,
actors and a sweep count, and what happens to them. promtool and Prometheus itself where they are
installed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e_conftest import Home, eventually
from http_head import Client
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

import troupe
from troupe import tune
from troupe.util.metrics import Counter, Gauge, Histogram

FORMATS = {"text/plain": prometheus, "application/openmetrics-text": open_metrics}
REPOSITORY = Path(__file__).parents[2]
FAKE_NVML = Path(os.environ.get("TROUPE_BIN_DIR", "/nonexistent")).parent / "tests" / "worker"
FAKE_NVML_SO = FAKE_NVML / "libnvidia-ml.so.1"
PROMTOOL, PROMETHEUS = shutil.which("promtool"), shutil.which("prometheus")
NEEDS_PROMETHEUS = "Prometheus is not installed: apt-get install prometheus"

Samples = dict[tuple, float]


class Scraped:
    """A head that is scraped as an observer."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.started = home.json("start", "--head", "--port", "0", "--num-cpus", "3")
        self.client = Client(home, self.started)
        self.token = home.run("token", "create", "--role", "observer").stdout.strip()

    def text(self, accept: str = "text/plain", query: str = "") -> str:
        headers = {"Accept": accept, "Cache-Control": "no-cache"}
        answer = self.client.get("/metrics" + query, self.token, headers=headers)
        assert answer.status == 200 and answer.headers["Content-Type"].startswith(accept)
        return answer.text

    def samples(self, accept: str = "text/plain", query: str = "") -> Samples:
        return {
            (sample.name, *sorted(sample.labels.items())): sample.value
            for family in FORMATS[accept](self.text(accept, query))
            for sample in family.samples
        }

    def until(self, *sample: Any, at_least: float = 1, query: str = "") -> Samples:
        def seen() -> Samples | None:
            samples = self.samples(query=query)
            return samples if samples.get(sample, 0) >= at_least else None

        return eventually(seen, what=f"{sample} of {at_least}")


@pytest.fixture(scope="module")
def scraped(shared_home: Home) -> Iterator[Scraped]:
    before = os.environ.get("LD_LIBRARY_PATH")
    os.environ["LD_LIBRARY_PATH"] = str(FAKE_NVML)
    try:
        scraped = Scraped(shared_home)
    finally:
        if before is None:
            del os.environ["LD_LIBRARY_PATH"]
        else:
            os.environ["LD_LIBRARY_PATH"] = before
    troupe.init(scraped.started["address"])
    yield scraped
    troupe.shutdown()


@pytest.mark.parametrize("accept", FORMATS)
def test_metrics_tell_what_the_cluster_is(scraped: Scraped, accept: str) -> None:
    @troupe.remote(num_cpus=2)
    class Holder:
        def ready(self) -> bool:
            return True

    holder, waiting = Holder.remote(), Holder.remote()
    assert troupe.get(holder.ready.remote())

    def seen() -> Samples | None:
        samples = scraped.samples(accept)
        return samples if samples["troupe_queue_waiting", ("kind", "actor")] == 1 else None

    samples = eventually(seen, what="the second actor in the queue")
    dead_before = samples["troupe_actors", ("state", "dead")]
    assert samples["troupe_nodes", ("state", "alive")] == 1
    assert samples["troupe_nodes", ("state", "dead")] == 0
    assert samples["troupe_actors", ("state", "alive")] == 1
    assert samples["troupe_actors", ("state", "pending")] == 1
    assert samples["troupe_jobs", ("state", "RUNNING")] == 0
    cpus = {
        state: samples["troupe_resources", ("resource", "CPU"), ("state", state)]
        for state in ("free", "used", "reserved", "missing")
    }
    assert cpus == {"free": 1, "used": 2, "reserved": 0, "missing": 0}
    assert samples["troupe_queue_oldest_seconds", ("kind", "actor")] > 0
    assert samples["troupe_journal_read_only",] == 0
    assert samples["troupe_journal_bytes",] > 1000
    assert samples["troupe_build_info", ("version", troupe.__version__)] == 1
    steps = samples["troupe_reducer_step_seconds_count",]
    assert steps == samples["troupe_reducer_step_seconds_bucket", ("le", "+Inf")] > 10
    assert samples["troupe_journal_commit_seconds_count",] > 2
    assert samples["process_resident_memory_bytes",] > 1e6
    assert samples["process_cpu_seconds_total",] > 0
    del holder, waiting
    eventually(
        lambda: scraped.samples(accept)["troupe_actors", ("state", "dead")] >= dead_before + 2,
        what="the end of both actors",
    )


def test_a_placement_group_that_is_not_used_is_reserved(scraped: Scraped) -> None:
    group = troupe.util.placement_group([{"CPU": 2}])
    troupe.get(group.ready())

    @troupe.remote(num_cpus=1)
    class Inside:
        def ready(self) -> bool:
            return True

    inside = Inside.options(
        scheduling_strategy=troupe.util.scheduling_strategies.PlacementGroupSchedulingStrategy(
            placement_group=group
        )
    ).remote()
    assert troupe.get(inside.ready.remote())
    reserved = ("troupe_resources", ("resource", "CPU"), ("state", "reserved"))
    eventually(lambda: scraped.samples()[reserved] == 1, what="one CPU that nobody inside uses")
    assert scraped.samples()["troupe_resources", ("resource", "CPU"), ("state", "used")] == 1
    troupe.kill(inside)
    eventually(lambda: scraped.samples()[reserved] == 2, what="two CPUs that nobody uses")
    troupe.util.remove_placement_group(group)
    eventually(lambda: scraped.samples()[reserved] == 0, what="the end of the group")


def test_ends_restarts_and_jobs_are_counted(scraped: Scraped) -> None:
    @troupe.remote(num_cpus=1, max_restarts=1)
    class Dies:
        def pid(self) -> int:
            return os.getpid()

    dies = Dies.remote()
    os.kill(troupe.get(dies.pid.remote()), signal.SIGKILL)
    samples = scraped.until("troupe_restarts_total", ("cause", "killed"), ("kind", "actor"))
    assert samples["troupe_process_exits_total", ("cause", "killed"), ("kind", "actor")] == 1
    troupe.kill(dies)
    scraped.until("troupe_process_exits_total", ("cause", "kill_requested"), ("kind", "actor"))

    scraped.home.run("job", "submit", "-f", "--", "true")
    samples = scraped.until("troupe_jobs", ("state", "SUCCEEDED"))
    assert samples["troupe_process_exits_total", ("cause", "finished"), ("kind", "rank")] >= 1
    assert samples["troupe_launch_ready_seconds_count",] >= 1
    assert samples["troupe_marker_commit_seconds_count",] >= 1


def test_a_node_and_its_gpus_say_what_they_do(scraped: Scraped) -> None:
    assert FAKE_NVML_SO.exists(), "build the target fake_nvml"

    @troupe.remote(num_cpus=0, num_gpus=1)
    class Holder:
        def device(self) -> str:
            return os.environ["CUDA_VISIBLE_DEVICES"]

    holder = Holder.remote()
    device = troupe.get(holder.device.remote())
    query = "?names=dcgm,ray"

    def measured() -> Samples | None:
        samples = scraped.samples(query=query)
        names = {key[0] for key in samples}
        wanted = {"troupe_node_cpu_ratio", "troupe_gpu_power_watts", "troupe_gpu_owner_info"}
        actors = [key for key in samples if ("component", "actor") in key[1:]]
        runs = any(key[0] == "troupe_component_memory_bytes" for key in actors)
        return samples if wanted <= names and runs else None

    samples = eventually(measured, what="a node's second measurement")
    by_name: dict[str, list[tuple[dict[str, str], float]]] = {}
    for key, value in samples.items():
        by_name.setdefault(key[0], []).append((dict(key[1:]), value))
    assert 0 <= by_name["troupe_node_cpu_ratio"][0][1] <= 1
    assert {each["state"] for each, _ in by_name["troupe_node_memory_bytes"]} == {"used", "free"}
    assert any(value > 0 for _, value in by_name["troupe_node_disk_bytes"])
    components = {each["component"] for each, _ in by_name["troupe_component_memory_bytes"]}
    assert {"worker", "actor"} <= components
    gpus = {each["gpu"]: each for each, _ in by_name["troupe_gpu_utilization_ratio"]}
    assert gpus["1"]["uuid"] == "GPU-1abc" and gpus["1"]["model"] == "NVIDIA H100 80GB HBM3"
    values = {each["gpu"]: value for each, value in by_name["troupe_gpu_utilization_ratio"]}
    assert values == {"0": 0, "1": 0.25, "2": 0.5}
    assert by_name["troupe_gpu_power_watts"][0][1] == 350.5
    assert [value for each, value in by_name["troupe_gpu_xid_errors_total"]] == [2]
    assert by_name["troupe_gpu_xid_errors_total"][0][0]["xid"] == "79"
    owner = by_name["troupe_gpu_owner_info"][0][0]
    assert owner["gpu"] == device and owner["uuid"] == f"GPU-{device}abc"
    assert [value for each, value in by_name["DCGM_FI_DEV_GPU_UTIL"]] == [0, 25, 50]
    assert by_name["DCGM_FI_DEV_FB_USED"][0][1] == 1024
    assert by_name["ray_node_gpus_utilization"][1][1] == 25
    assert by_name["ray_node_mem_used"][0][1] > 0
    assert not any(key[0].startswith(("DCGM_", "ray_")) for key in scraped.samples())
    troupe.kill(holder)
    refused = scraped.client.get("/metrics?names=other", scraped.token)
    assert refused.status == 400 and "dcgm" in refused.json()["error"]["message"]


def test_what_programs_count_together_is_told(scraped: Scraped) -> None:
    @troupe.remote(num_cpus=0)
    class Server:
        def handle(self, path: str) -> None:
            Counter("answered", "Requests \\ answered.", ("path",)).inc(2, {"path": path})
            Histogram("took", boundaries=[0.1, 1]).observe(0.5)

    servers = [Server.remote(), Server.remote()]
    troupe.get([each.handle.remote('a"b') for each in servers])
    Counter("answered", "Requests \\ answered.", ("path",)).inc(1, {"path": 'a"b'})
    Gauge("depth").set(7)
    answered = ("troupe_app_answered_total", ("path", 'a"b'))
    samples = scraped.until(*answered, at_least=5)
    assert samples[answered] == 5
    scraped.until("troupe_app_took_count", at_least=2)
    samples = scraped.until("troupe_app_depth", at_least=7, query="?names=ray")
    assert samples["troupe_app_took_bucket", ("le", "0.1")] == 0
    assert samples["troupe_app_took_bucket", ("le", "1")] == 2
    assert samples["ray_answered_total", ("path", 'a"b')] == 5
    assert scraped.samples("application/openmetrics-text")[answered] == 5
    assert not any("app" in key[0] for key in scraped.samples(query="?scope=head"))
    for each in servers:
        troupe.kill(each)


def test_a_program_counts_at_its_end_and_hears_what_is_refused(scraped: Scraped) -> None:
    program = """
import sys
import troupe
from troupe.util.metrics import Counter, Gauge
troupe.init(sys.argv[1])
Counter("at_the_end").inc(3)
Counter("twice").inc()
Gauge("twice").set(1)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program, scraped.started["address"]],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    assert scraped.samples()["troupe_app_at_the_end_total",] == 3
    assert "the metric twice is a counter already" in ran.stderr
    with pytest.raises(ValueError, match="the runtime's own"):
        Counter("troupe_nodes")
    with pytest.raises(ValueError, match="no name of a tag"):
        Counter("tagged", tag_keys=("le",))


def run_sweep(scraped: Scraped, name: str) -> Samples:
    """Two trials of two reports each, and what is told of them."""

    def trial(config: dict[str, int]) -> None:
        for step in range(2):
            tune.report({"loss": config["x"] + step})

    tuner = tune.Tuner(
        trial,
        param_space={"x": tune.grid_search([1, 2])},
        run_config=tune.RunConfig(name=name, storage_path=str(scraped.home.path / "sweeps")),
    )
    assert not tuner.fit().errors
    scraped.until("troupe_sweep_trials", ("state", "ended"), ("sweep", name), at_least=2)
    return scraped.until("troupe_sweep_reports_total", ("sweep", name), at_least=4)


def test_a_sweep_is_told_by_its_name(scraped: Scraped) -> None:
    samples = run_sweep(scraped, "seen")
    assert samples["troupe_sweep_decision_seconds_count", ("sweep", "seen")] >= 4


def names_in(expression: str) -> set[str]:
    """Metrics that an expression of a board, or a query of its variables, asks for."""
    return set(re.findall(r"\b(?:troupe|process)_[a-z0-9_]+", expression))


def families(scraped: Scraped, accept: str = "text/plain") -> dict[str, str]:
    return {each.name: each.type for each in FORMATS[accept](scraped.text(accept))}


def test_every_name_on_a_board_and_on_the_page_exists(scraped: Scraped) -> None:
    run_sweep(scraped, "on a board")
    eventually(
        lambda: "troupe_node_cpu_ratio" in families(scraped), what="a node's second measurement"
    )
    there = families(scraped)
    names = set()
    for name, kind in there.items():
        suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}
        names |= {name + suffix for suffix in suffixes.get(kind, [""])}
    boards = sorted((REPOSITORY / "docs" / "grafana").glob("*.json"))
    assert [each.stem for each in boards] == ["cluster", "gpus", "launch"]
    for board in boards:
        document = json.loads(board.read_text())
        asked = [target["expr"] for panel in document["panels"] for target in panel["targets"]]
        variables = document["templating"]["list"]
        asked += [each["query"]["query"] for each in variables if each["type"] == "query"]
        on_board = set().union(*map(names_in, asked))
        assert on_board and on_board <= names, f"{board}: {sorted(on_board - names)}"
        identities = [panel["id"] for panel in document["panels"]]
        assert len(set(identities)) == len(identities)
    page = (REPOSITORY / "docs" / "reference" / "metrics.md").read_text()
    listed = set(re.findall(r"`(troupe_[a-z0-9_]+)(?:\{[^`]*\})?`", page))
    example = {each for each in listed if each.startswith("troupe_app_")}
    shown = {
        each + ("_total" if kind == "counter" else "")
        for each, kind in there.items()
        if each.startswith("troupe_") and not each.startswith("troupe_app_")
    }
    assert listed - example == shown


@pytest.mark.skipif(PROMTOOL is None, reason=NEEDS_PROMETHEUS)
def test_promtool_has_nothing_to_say(scraped: Scraped) -> None:
    assert PROMTOOL is not None
    checked = subprocess.run(
        [PROMTOOL, "check", "metrics"],
        input=scraped.text(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.mark.long
@pytest.mark.skipif(PROMETHEUS is None, reason=NEEDS_PROMETHEUS)
def test_prometheus_scrapes_by_the_printed_section(scraped: Scraped, tmp_path: Path) -> None:
    assert PROMETHEUS is not None
    token = tmp_path / "observer.token"
    token.write_text(scraped.token)
    line = ["--credentials-file", str(token), "--interval", "1s", "--dcgm-names"]
    section = scraped.home.run("prometheus", "config", *line).stdout
    (tmp_path / "prometheus.yml").write_text(section)
    port = free_port()
    server = subprocess.Popen(
        [
            PROMETHEUS,
            f"--config.file={tmp_path}/prometheus.yml",
            f"--storage.tsdb.path={tmp_path}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def found() -> bool:
        url = f"http://127.0.0.1:{port}/api/v1/query?query=troupe_nodes"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                result = json.load(answer)["data"]["result"]
        except OSError:
            return False
        return any(
            each["metric"]["state"] == "alive"
            and each["value"][1] == "1"
            and each["metric"]["cluster"] == scraped.started["cluster_id"]
            for each in result
        )

    try:
        eventually(found, what="a scrape by Prometheus")
    finally:
        server.terminate()
        server.wait(60)


def test_the_section_for_prometheus_names_head_authority_and_token(scraped: Scraped) -> None:
    address = scraped.started["address"]
    section = scraped.home.json("prometheus", "config", "--ray-names")["scrape_configs"][0]
    discovery = section["http_sd_configs"][0]
    assert discovery["url"] == f"https://{address}/api/v1/prometheus-sd"
    assert section["params"] == {"names": ["ray"]}
    assert Path(discovery["tls_config"]["ca_file"]).read_text().startswith("-----BEGIN")
    targets = scraped.client.get("/api/v1/prometheus-sd", scraped.token)
    assert targets.headers["Content-Type"] == "application/json"
    assert targets.json()[0]["targets"] == [address]
    static = scraped.home.json("prometheus", "config", "--static")["scrape_configs"][0]
    assert static["static_configs"] == [{"targets": [address]}]
    away = scraped.home.run("prometheus", "config", "--address", "10.9.8.7:6400", ok=False)
    assert away.returncode == 1 and "--ca-file" in away.stderr
