"""Jobs on a warm cluster: from `submit_job` to the command's first instruction; 1,000 submissions
that queue; from a line's writing to whoever follows the log.

With `--ray PYTHON` the first and the last of them by Ray's own client too, in the same run, by
turns.

    python benchmarks/doors/jobs.py [--rounds 20] [--ray PYTHON] [--keep]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from typing import Any

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parent.parent))
QUEUED = 1000
LINES = 50
STAMP = re.compile(r"^[0-9]+\.[0-9]{9}$", re.MULTILINE)
BEGINS = "date +%s.%N"
SAYS = f"for each in $(seq {LINES}); do date +%s.%N; sleep 0.05; done"


def client_of(address: str) -> Any:
    """The client of whichever package this interpreter is to measure."""
    if os.environ.get("MEASURES") == "ray":
        from ray.job_submission import JobSubmissionClient
    else:
        from troupe.job_submission import JobSubmissionClient
    return JobSubmissionClient(address)


def ended(client: Any, job: str) -> str:
    """The log of a job, once it has ended."""

    async def told() -> str:
        return "".join([text async for text in client.tail_job_logs(job)])

    return asyncio.run(told())


def to_running(client: Any) -> float:
    begin = time.time()
    job = client.submit_job(entrypoint=BEGINS, entrypoint_num_cpus=1)
    ended(client, job)
    while not (
        times := STAMP.findall(client.get_job_logs(job))
    ):  # Ray's following may end before the last line
        time.sleep(0.05)  # lint-ok: the time that counts is in the log
    return float(times[-1]) - begin


def line_to_reader(client: Any) -> list[float]:
    """Seconds from the writing of each line until it was read."""
    job, late = client.submit_job(entrypoint=SAYS, entrypoint_num_cpus=1), []

    async def follow() -> None:
        async for text in client.tail_job_logs(job):
            now = time.time()
            late.extend(now - float(each) for each in STAMP.findall(text))

    asyncio.run(follow())
    return late


def serve(address: str) -> None:
    """Answer each line of stdin, the name of a measurement, with its figures on stdout."""
    client = client_of(address)
    ended(client, client.submit_job(entrypoint="true", entrypoint_num_cpus=1))
    print("ready", flush=True)
    for line in sys.stdin:
        print(
            json.dumps(
                {"running": lambda: [to_running(client)], "line": lambda: line_to_reader(client)}[
                    line.strip()
                ]()
            ),
            flush=True,
        )


class Side:
    """A process that measures one package."""

    def __init__(self, python: str, address: str, **environment: str) -> None:
        self._process = subprocess.Popen(
            [python, str(HERE), "--serve", address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        self._next()

    def _next(self) -> str:
        assert self._process.stdout is not None
        while (line := self._process.stdout.readline()) and not line.startswith(("ready", "[")):
            pass
        if not line:
            raise SystemExit("a side has ended")
        return line

    def figures(self, what: str) -> list[float]:
        assert self._process.stdin is not None
        print(what, file=self._process.stdin, flush=True)
        return list(json.loads(self._next()))

    def end(self) -> None:
        self._process.communicate()


def queue_many() -> float:
    """Seconds for QUEUED submissions by one client, on a cluster without a free CPU."""
    from troupe.job_submission import JobSubmissionClient

    client = JobSubmissionClient()
    client.submit_job(entrypoint="sleep 1000", submission_id="holder", entrypoint_num_cpus=2)
    begin = time.perf_counter()
    for _ in range(QUEUED):
        client.submit_job(entrypoint="true", entrypoint_num_cpus=1)
    took = time.perf_counter() - begin
    assert sum(each.status == "PENDING" for each in client.list_jobs()) >= QUEUED
    return took


def measure(rounds: int, ray: str | None) -> dict:
    import report

    import troupe

    command = [sys.executable, "-m", "troupe"]
    head = json.loads(
        subprocess.run(
            [*command, "start", "--head", "--port", "0", "--num-cpus", "2", "--json"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    sides = {"troupe": Side(sys.executable, head["address"])}
    if ray:
        subprocess.run(
            [
                str(pathlib.Path(ray).parent / "ray"),
                "start",
                "--head",
                "--port=6479",
                "--num-cpus=2",
                "--dashboard-port=8266",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        sides["ray"] = Side(ray, "http://127.0.0.1:8266", MEASURES="ray", PYTHONPATH="")
    try:
        report.await_rest()
        found: dict[str, Any] = {}
        times: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(rounds):
            for name, side in sides.items():
                times[name] += side.figures("running")
                report.settle()
        found["submit to running"] = {name: report.summary(each) for name, each in times.items()}
        found["a line to its reader"] = {
            name: report.summary(side.figures("line")) for name, side in sides.items()
        }
        for side in sides.values():
            side.end()
        troupe.init(head["address"])
        found[f"{QUEUED} submissions"] = {"troupe": {"seconds": round(queue_many(), 2)}}
        troupe.shutdown()
        return found
    finally:
        subprocess.run([*command, "stop", "--all"], stdout=subprocess.DEVNULL)
        if ray:
            subprocess.run(
                [str(pathlib.Path(ray).parent / "ray"), "stop", "--force"],
                stdout=subprocess.DEVNULL,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--ray", metavar="PYTHON", help="interpreter with ray[default]")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--serve", metavar="ADDRESS", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve)
    import report

    with tempfile.TemporaryDirectory() as home:
        os.environ["TROUPE_HOME"] = home
        found = measure(options.rounds, options.ray)
    report.keep("jobs", found, options.keep)
    return None


if __name__ == "__main__":
    main()
