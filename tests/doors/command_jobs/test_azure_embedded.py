"""Command jobs of an embedded cluster, found by other programs: while theirs runs, once it has
ended, and after it was killed.

Method: scripts and `troupe azure job create --stream` in processes of their own without a cluster;
this process, which has none either, looks for their jobs.
"""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from azure_jobs import LIMIT_S
from e2e_conftest import Home, eventually
from submits import started_in, troupe_in

from troupe import exceptions
from troupe.azure import MLClient
from troupe.azure._past import records

SCRIPT = """
from azure.ai.ml import MLClient, Output, command
jobs = MLClient(None, "s", "g", "w").jobs
for name, text in (("kept", "echo said; echo kept > outputs/a.txt; echo kept > ${{outputs.o}}/b.txt"), ("failed", "echo why >&2; exit 7")):
    jobs.create_or_update(command(command=text, name=name, environment="e", outputs={"o": Output()}))
jobs.stream("kept")
jobs.download("kept", output_name="o", download_path="here")
"""
STEPS = """
type: pipeline
jobs:
  first:
    command: echo kept > outputs/a.txt; echo of the step > logs/b.txt; echo x > ${{outputs.o}}/x
    environment: azureml:any@latest
    outputs: {o: {}}
  second:
    command: cat ${{inputs.i}}/x
    environment: azureml:any@latest
    inputs: {i: "${{parent.jobs.first.outputs.o}}"}
"""
TRIALS = """
type: sweep
trial:
  command: python -c "from troupe import tune; tune.report({'m':${{search_space.c}}})"
  environment: azureml:any@latest
search_space: {c: {type: choice, values: [1, 2]}}
objective: {goal: maximize, primary_metric: m}
sampling_algorithm: grid
limits: {max_total_trials: 2}
"""
BOTH = """
from azure.ai.ml import MLClient, load_job
jobs = MLClient().jobs
for name in ("steps", "trials"):
    job = load_job(f"{name}.yml")
    job.name = name
    jobs.create_or_update(job)
"""
JOB = """
command: echo kept > outputs/begun; echo begun; exec sleep 1000
environment: e
"""


def test_a_job_is_found_after_the_program_whose_cluster_ran_it(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = troupe_in(tmp_path, "run-as", "script.py")
    assert (
        done.returncode == 0 and (tmp_path / "here/named-outputs/o/b.txt").read_text() == "kept\n"
    ), done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith("job kept · ")]
    assert (
        told
        and set(told) == {told[0]}
        and "troupe azure job download -n kept --all" in told[0]
        and Path(told[0].split()[-1]).is_dir()
    ), done.stderr
    assert sum(line.startswith("job failed · ") for line in done.stderr.splitlines()) == 1, (
        done.stderr
    )  # nobody has streamed it
    jobs = MLClient().jobs
    assert {each.name: each.status for each in jobs.list()} == {
        "kept": "Completed",
        "failed": "Failed",
    }
    jobs.download("kept", download_path=tmp_path / "d", all=True)
    assert (
        (tmp_path / "d/named-outputs/o/b.txt").read_text()
        == (tmp_path / "d/artifacts/outputs/a.txt").read_text()
        == "kept\n"
    )
    assert (tmp_path / "d/artifacts/user_logs/std_log.txt").read_text() == "said\n"
    kept = jobs.get("kept")
    assert Path(unquote(urlsplit(kept.log_files["user_logs/std_log.txt"]).path)).read_text() == (
        "said\n"
    )
    assert kept.creation_context.created_at is not None and kept.outputs.o.type == "uri_folder"
    with pytest.raises(ValueError, match="has no output 'p'"):
        jobs.download("kept", output_name="p")
    jobs.stream("kept")
    assert capsys.readouterr().out == "[0] said\n"
    with pytest.raises(exceptions.LaunchError, match="exited with code 7") as failed:
        jobs.stream("failed")
    assert "logs: troupe azure job stream -n failed" in str(failed.value)
    assert failed.value.exit_code == 7 and capsys.readouterr().out == "[0] why\n"
    with pytest.raises(exceptions.NotFoundError):
        jobs.get("neither")
    first = jobs.get("kept").id
    (tmp_path / "job.yml").write_text("command: echo again\nenvironment: e\n")
    assert (
        troupe_in(tmp_path, "azure", "job", "create", "-f", "job.yml", "-n", "kept", "--stream")
        .stderr.splitlines()[-1]
        .startswith("job kept · ")
    )
    assert jobs.get("kept").id != first and jobs.get(first[:8]).id == first
    home.run("start", "--head", "--port", "0", "--num-cpus", "2")
    listed = json.loads(troupe_in(tmp_path, "azure", "job", "list", "-o", "json").stdout)
    assert [each["name"] for each in listed] == ["kept", "failed", "kept"]
    assert troupe_in(tmp_path, "azure", "job", "stream", "-n", "failed").returncode == 7


def test_pipelines_and_sweeps_are_shown_after_their_cluster_without_another_one(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))  # parent of their folders
    for name, text in (("steps.yml", STEPS), ("trials.yml", TRIALS), ("both.py", BOTH)):
        (tmp_path / name).write_text(text)
    done = troupe_in(tmp_path, "run-as", "both.py")
    assert done.returncode == 0, done.stderr
    jobs = MLClient().jobs
    jobs.stream("steps")
    jobs.stream("trials")
    said = capfd.readouterr().err
    assert "pipeline steps · Completed" in said and "best m=2 of trials_" in said
    assert "is started, which ends with this program" not in said
    jobs.cancel("trials")
    jobs.download("steps", download_path=tmp_path / "d", all=True)
    step = tmp_path / "d/artifacts/steps/first"
    assert (step / "outputs/a.txt").read_text() == "kept\n"
    assert (step / "logs/b.txt").read_text() == "of the step\n"
    jobs.download("steps_first", download_path=tmp_path / "e", output_name="o")
    assert (tmp_path / "e/named-outputs/o/x").read_text() == "x\n"


def test_a_job_whose_program_is_killed_has_failed_and_its_files_are_found(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job.yml").write_text(JOB)
    program = started_in(
        tmp_path, "azure", "job", "create", "-f", "job.yml", "-n", "lost", "--stream"
    )
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == "[0] begun\n"
        jobs = MLClient().jobs
        assert jobs.get("lost").status == "Running"
        with pytest.raises(ValueError, match="is Running"):
            jobs.download("lost")
    finally:
        program.send_signal(signal.SIGKILL)
        program.wait(LIMIT_S)
    eventually(
        lambda: jobs.get("lost").status == "Failed", what="the end of the killed program's job"
    )
    with pytest.raises(exceptions.LaunchError, match=rf"\(pid {program.pid}\), which was killed"):
        jobs.stream("lost")
    assert capsys.readouterr().out == "[0] begun\n"
    jobs.download("lost", download_path=tmp_path / "d", all=True)
    assert (tmp_path / "d/artifacts/outputs/begun").read_text() == "kept\n"
    jobs.cancel("lost")


def test_another_program_cancels_a_job_that_runs(home: Home, tmp_path: Path) -> None:
    (tmp_path / "job.yml").write_text(JOB)
    program = started_in(
        tmp_path, "azure", "job", "create", "-f", "job.yml", "-n", "ended", "--stream"
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "[0] begun\n"
    MLClient().jobs.cancel("ended")
    out, err = program.communicate(timeout=LIMIT_S)
    assert program.returncode == 130, err
    assert MLClient().jobs.get("ended").status == "Canceled"


def test_records_of_ended_jobs_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TROUPE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(records, "JOBS_MAX", 2)
    now_us = int(time.time() * 1e6)
    old = records.Record(
        "0" * 32,
        "old",
        1,
        1,
        str(tmp_path / "gone"),
        "",
        os.getpid(),
        outcome="succeeded",
        ended_s=time.time() - 8 * 86400,
    )
    records.write(old)
    for number in range(1, 5):
        records.write(
            replace(
                old,
                launch=str(number) * 32,
                name=f"job-{number}",
                submitted_us=now_us + number,
                ended_s=time.time(),
            )
        )
    (tmp_path / "home/jobs" / ("4" * 32) / "record.json").write_text("{")
    records.prune()
    assert [each.name for each in records.read_all()] == ["job-3", "job-2"]
