"""Makes the pictures of docs/guides/dashboard.md: pages of `troupe dashboard` on a cluster that
works.

    PYTHONPATH=build/dev/python TROUPE_BIN_DIR=build/dev/bin python scripts/dashboard_pictures.py

Needs chromium, chromium-driver and the extras `dashboard`, `browser` and `tune`.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import threading
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/dashboard")]
PICTURES = ROOT / "docs/guides/dashboard"
SWEEP = """
from troupe import tune
from troupe.tune import RunConfig, TuneConfig, Tuner

def train(config):
    for epoch in range(5):
        loss = (config["lr"] - 0.01) ** 2 * 40 + config["layers"] * 0.02 + 0.5 / (epoch + 1)
        tune.report({"loss": loss})

space = {
    "lr": tune.loguniform(1e-4, 1.0),
    "layers": tune.choice([1, 2, 3, 4]),
    "optimizer": tune.choice(["sgd", "adam", "lion"]),
}
Tuner(
    train,
    param_space=space,
    tune_config=TuneConfig(metric="loss", mode="min", num_samples=30),
    run_config=RunConfig(name="digits", storage_path=STORAGE),
).fit()
"""
ACTORS = """
import time
import troupe
from troupe.launch import distributed

class Environment:
    pass

class Learner:
    pass

troupe.init("auto")
kept = [troupe.remote(num_cpus=0)(Environment).remote() for _ in range(12)]
kept.append(troupe.remote(num_gpus=2)(Learner).options(name="learner").remote())

@distributed(processes=24, cpus_per_rank=0.5, remote=True, name="pretrain")
def train():
    import os, threading
    for step in range(100000):
        print(f"rank {os.environ['RANK']} step {step} loss {2.5 / (step + 1):.4f}", flush=True)
        threading.Event().wait(2)

train.submit().wait_end()
"""


def work(home: Any, folder: str) -> list[subprocess.Popen]:
    """Start nodes, programs, jobs and a sweep, and return the programs."""
    head = home.json("start", "--head", "--no-worker", "--port", "0")
    for name in ("rack1-a", "rack1-b", "rack2-a"):
        line = ["--address", head["address"], "--token-file", home.token(), "--node-name", name]
        home.run("start", *line, "--num-cpus", "8", "--num-gpus", "4")
    code = SWEEP.replace("STORAGE", repr(folder))
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    program = subprocess.Popen([sys.executable, "-c", ACTORS])
    submit = ["job", "submit", "--name"]
    home.run(*submit, "prepare", "--id", "prepare", "--", "sh", "-c", "echo tokenized 12 files")
    home.run(*submit, "evaluate", "--id", "evaluate", "--", "sh", "-c", "echo no data >&2; exit 3")
    loop = "for i in $(seq 1000); do echo epoch $i of 1000; sleep 1; done"
    home.run(*submit, "train", "--id", "train", "--gpus", "2", "--", "sh", "-c", loop)
    for name, gpus in (("large", "4"), ("larger", "4"), ("small", "3")):
        home.run(*submit, name, "--id", name, "--gpus", gpus, "--cpus", "5", "--", "sleep", "600")
    home.run(*submit, "after it", "--id", "report", "--after", "train", "--", "true")
    threading.Event().wait(15)  # so that there is something to be seen
    return [program]


def take(window: Any, page: Any, home: Any) -> None:
    """Write the pictures."""
    launches = home.json("list", "launches")
    (pretrain,) = [each["id"] for each in launches if each["name"] == "pretrain"]
    node = home.json("list", "nodes")[0]["node_id"]
    base = f"http://{page.host}:{page.port}"
    window.open(f"{base}{page.login}")
    for name, path in {
        "overview": "/",
        "nodes": "/nodes",
        "node": f"/nodes/{node}",
        "launches": "/launches",
        "launch": f"/launches/{pretrain}",
        "jobs": "/jobs",
        "job": "/jobs/train",
        "actors": "/actors",
        "queue": "/queue",
        "sweep": "/sweeps/digits",
        "log": f"/logs?launch={pretrain}&rank=3",
        "events": "/events",
    }.items():
        window.open(f"{base}{path}")
        window.driver.save_screenshot(str(PICTURES / f"{name}.png"))
    window.colours("dark")
    window.open(f"{base}/")
    window.driver.save_screenshot(str(PICTURES / "dark.png"))


def main() -> None:
    from browser import opened
    from e2e_conftest import TIMEOUT_S, Home
    from page_client import served

    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="troupe-pictures-") as folder:
        os.environ["TROUPE_HOME"] = folder
        home = Home(pathlib.Path(folder), "")
        programs: list[subprocess.Popen] = []
        try:
            programs = work(home, f"{folder}/sweeps")
            with served(home, "--storage", f"{folder}/sweeps") as page, opened(TIMEOUT_S) as window:
                take(window, page, home)
        finally:
            for each in programs:
                each.kill()
                each.wait()
            home.run("stop", "--all", ok=False)


if __name__ == "__main__":
    main()
