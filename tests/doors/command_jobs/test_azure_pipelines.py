"""Pipelines of command jobs that run: steps in their order, outputs that are the next one's inputs,
what is reused, how they fail and are cancelled.

Method: real pipelines on a cluster of this process, by files as people write them, and one by the
command.
"""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from azure_jobs import LIMIT_S, folder_of
from e2e_conftest import Home, eventually
from submits import troupe_in

from troupe import exceptions
from troupe.azure import (
    Input,
    MLClient,
    Output,
    command,
    dsl,
    load_component,
    load_job as azure_file,
    sweep,
)
from troupe.azure._pipeline import runs

CHAIN = """
$schema: https://azuremlschemas.azureedge.net/latest/pipelineJob.schema.json
type: pipeline
display_name: chain
settings: {default_compute: azureml:cpu-cluster}
inputs:
  words: {type: uri_file, path: words.txt}
  times: 2
outputs:
  total: {type: uri_folder}
jobs:
  prep:
    command: for i in $(seq ${{inputs.times}}); do cat ${{inputs.words}}; done > ${{outputs.clean}}/all.txt
    environment: azureml:any@latest
    inputs: {words: "${{parent.inputs.words}}", times: "${{parent.inputs.times}}"}
    outputs: {clean: {type: uri_folder}}
  count:
    type: command
    code: src
    command: python count.py ${{inputs.data}} ${{outputs.total}}
    environment: azureml:any@latest
    inputs: {data: "${{parent.jobs.prep.outputs.clean}}"}
    outputs: {total: "${{parent.outputs.total}}"}
"""
COUNT = """
import sys
count = len(open(sys.argv[1] + "/all.txt").read().split())
open(sys.argv[2] + "/n.txt", "w").write(str(count))
open("outputs/count.txt", "w").write(str(count))
print("counted", count)
"""


@pytest.fixture(autouse=True)
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of pipelines are in a home of the test's own."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "troupe_results"


def ran(path: Path, **overrides: Any) -> Any:
    """A pipeline of a file that has completed."""
    jobs = MLClient().jobs
    made = jobs.create_or_update(azure_file(path, params_override=[overrides]))
    jobs.stream(made.name)
    return jobs.get(made.name)


def test_a_chain_hands_its_files_on_and_equal_steps_are_reused(
    idle: Home, tmp_path: Path, storage: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = folder_of(
        tmp_path / "w", **{"words.txt": "a b c\n", "src__count.py": COUNT, "p.yml": CHAIN}
    )
    first = ran(folder / "p.yml")
    assert (first.type, first.status, [each["status"] for each in first.steps.values()]) == (
        "pipeline",
        "Completed",
        ["Completed"] * 2,
    )
    assert (storage / first.name / "steps/count/outputs/total/n.txt").read_text() == "6"
    said = capfd.readouterr().err
    assert "└─ count  NotStarted" in said and "└─ count  Completed in " in said
    jobs = MLClient().jobs
    assert jobs.get(f"{first.name}_count").status == "Completed"
    assert "[0] counted 6" in list(jobs.handle(jobs.info(f"{first.name}_count")).logs())
    assert sorted(each.name for each in jobs.list(parent_job_name=first.name)) == [
        f"{first.name}_count",
        f"{first.name}_prep",
    ]
    assert first.name in {each.name for each in jobs.list()}
    os.utime(folder / "words.txt", (1, 1))
    again = ran(folder / "p.yml")
    assert again.steps == {
        step: {"job": f"{first.name}_{step}", "status": "Completed", "reused": True}
        for step in ("prep", "count")
    }
    assert "count  Completed, reused from" in capfd.readouterr().err
    jobs.download(again.name, download_path=tmp_path / "got", all=True)
    assert (tmp_path / "got/named-outputs/total/n.txt").read_text() == "6"
    assert (
        tmp_path / "got/artifacts/steps/count/user_logs/std_log.txt"
    ).read_text() == "counted 6\n"
    assert (tmp_path / "got/artifacts/steps/count/outputs/count.txt").read_text() == "6"
    (storage / first.name / "steps/count/outputs/total/n.txt").write_text("7")
    third = ran(folder / "p.yml")
    assert ["reused" in each for each in third.steps.values()] == [True, False], (
        "an output that is not as it was written is made again"
    )
    (folder / "src/count.py").write_text(COUNT + "print('more')\n")
    assert ["reused" in each for each in ran(folder / "p.yml").steps.values()] == [True, False]
    assert [
        "reused" in each for each in ran(folder / "p.yml", **{"inputs.times": 3}).steps.values()
    ] == [False, False]
    assert [
        "reused" in each
        for each in ran(folder / "p.yml", **{"settings.force_rerun": True}).steps.values()
    ] == [False, False]


TRAIN = """
type: command
name: train
inputs: {data: {type: uri_folder}, level: {type: number, default: 0.5}}
outputs: {model: {type: uri_folder}}
command: python train.py ${{inputs.data}} ${{inputs.level}} ${{outputs.model}}
code: ./src
"""
SCRIPT = """
import sys, mlflow
mlflow.log_metric("accuracy", float(sys.argv[2]))
open(sys.argv[3] + "/model.txt", "w").write(open(sys.argv[1] + "/all.txt").read() + sys.argv[2])
"""
MLFLOW = "def log_metric(key, value, step=None): print('logged', key, value)\n"


def test_a_diamond_by_a_function_with_a_sweep_step(
    idle: Home, tmp_path: Path, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(
        folder_of(
            tmp_path / "w",
            **{
                "train.yml": TRAIN,
                "src__train.py": SCRIPT,
                "src__mlflow.py": MLFLOW,
                "raw__all.txt": "words ",
            },
        )
    )
    train = load_component("./train.yml")
    join = command(
        command="cat ${{inputs.one}}/model.txt ${{inputs.best}}/model.txt > ${{outputs.report}}",
        environment="e",
        inputs={"one": Input(type="uri_folder"), "best": Input(type="uri_folder")},
        outputs={"report": Output(type="uri_file")},
    )

    @dsl.pipeline(compute="cpu-cluster")
    def diamond(raw, level=0.25):
        one = train(data=raw, level=level)
        tried = train(data=raw, level=sweep.Choice([0.1, 0.9])).sweep(
            primary_metric="accuracy", goal="maximize", sampling_algorithm="grid"
        )
        both = join(one=one.outputs.model, best=tried.outputs.model)
        return {"report": both.outputs.report}

    client = MLClient()
    made = diamond(raw=Input(type="uri_folder", path="./raw"))
    made.outputs.report = Output(type="uri_file", path="./report.txt")
    made = client.jobs.create_or_update(made, experiment_name="all")
    client.jobs.stream(made.name)
    ended = client.jobs.get(made.name)
    assert (ended.status, ended.experiment_name, list(ended.steps)) == (
        "Completed",
        "all",
        ["one", "tried", "both"],
    )
    assert Path("report.txt").read_text() == "words 0.25words 0.9"
    assert client.jobs.get(f"{made.name}_tried").best_parameters == {"level": 0.9}


FAILING = """
type: pipeline
settings: {continue_on_step_failure: true}
jobs:
  bad: {command: "echo the last words; kill -9 $$", outputs: {o: {}}}
  after_bad: {command: "ls ${{inputs.i}}", inputs: {i: "${{parent.jobs.bad.outputs.o}}"}}
  a_step_with_a_name_that_is_longer_than_what_a_request_to_the_cluster_may_be_named_by: {command: "echo fine"}
"""
GOOD = "a_step_with_a_name_that_is_longer_than_what_a_request_to_the_cluster_may_be_named_by"
WRONG = """
type: pipeline
jobs:
  a: {command: ls, code: ./none}
  b: {command: "ls ${{inputs.i}}", inputs: {i: {type: uri_folder, path: "azureml:data@latest"}}}
"""
BLOCKED = """
type: pipeline
inputs: {gate: GATE}
jobs:
  waits: {command: "echo $AZUREML_ROOT_RUN_ID >> ${{inputs.gate}}.begun; cat ${{inputs.gate}} > ${{outputs.o}}/said", inputs: {gate: "${{parent.inputs.gate}}"}, outputs: {o: {}}}
  other: {command: OTHER, inputs: {gate: "${{parent.inputs.gate}}"}}
  after: {command: "cat ${{inputs.i}}/said", inputs: {i: "${{parent.jobs.waits.outputs.o}}"}}
"""


def blocked(tmp_path: Path, other: str) -> Path:
    """A pipeline whose step `waits` runs until somebody writes to the FIFO `gate`."""
    os.mkfifo(tmp_path / "gate")
    return (
        folder_of(
            tmp_path / "w",
            **{"p.yml": BLOCKED.replace("GATE", str(tmp_path / "gate")).replace("OTHER", other)},
        )
        / "p.yml"
    )


def states(name: str) -> dict[str, str]:
    return {step: each["status"] for step, each in MLClient().jobs.get(name).steps.items()}


def test_a_failed_step_names_itself_and_the_others_end(
    idle: Home, tmp_path: Path, storage: Path
) -> None:
    jobs = MLClient().jobs
    with pytest.raises(
        ValueError,
        match=r"(?s)2 steps are wrong\n  step a: \S*p\.yml:4:26: there is no code folder.*step b: \S*p\.yml:5:73: inputs: i: azureml:data",
    ):
        jobs.create_or_update(azure_file(folder_of(tmp_path / "f", **{"p.yml": WRONG}) / "p.yml"))
    assert not storage.exists() or not list(storage.iterdir()), "nothing has begun"
    made = jobs.create_or_update(
        azure_file(folder_of(tmp_path / "f", **{"p.yml": FAILING}) / "p.yml")
    )
    with pytest.raises(
        exceptions.LaunchError, match=r"(?s)step bad failed: .*SIGKILL.*never started: after_bad"
    ) as failed:
        jobs.stream(made.name)
    assert failed.value.signal == signal.SIGKILL
    assert (states(made.name), jobs.get(made.name).status) == (
        {"bad": "Failed", GOOD: "Completed", "after_bad": "NotStarted"},
        "Failed",
    )
    assert (storage / made.name / "steps/bad/std_log.txt").read_text() == "the last words\n"
    os.mkfifo(tmp_path / "go")
    made = jobs.create_or_update(
        azure_file(blocked(tmp_path, f"'cat {tmp_path}/go; echo no such data >&2; exit 7'"))
    )
    eventually(lambda: (tmp_path / "gate.begun").exists(), what="the first step", timeout=LIMIT_S)
    (tmp_path / "go").write_text("")
    with pytest.raises(
        exceptions.LaunchError,
        match=r"(?s)step other failed: .*no such data.*canceled: waits; never started: after",
    ) as failed:
        jobs.stream(made.name)
    assert failed.value.exit_code == 7
    assert states(made.name) == {"waits": "Canceled", "other": "Failed", "after": "NotStarted"}


def test_cancelling_ends_all_steps(idle: Home, tmp_path: Path) -> None:
    jobs = MLClient().jobs
    made = jobs.create_or_update(azure_file(blocked(tmp_path, "'cat ${{inputs.gate}}'")))
    eventually(lambda: (tmp_path / "gate.begun").exists(), what="the first step", timeout=LIMIT_S)
    assert jobs.begin_cancel(made.name).result() is None
    assert (states(made.name), jobs.get(made.name).status) == (
        {"waits": "Canceled", "other": "Canceled", "after": "NotStarted"},
        "Canceled",
    )
    with pytest.raises(exceptions.LaunchCancelledError, match="was cancelled"):
        jobs.stream(made.name)


def test_a_driver_that_is_killed_goes_on_with_the_steps_that_run(
    idle: Home, tmp_path: Path, storage: Path
) -> None:
    jobs = MLClient().jobs
    made = jobs.create_or_update(azure_file(blocked(tmp_path, "echo done")))
    eventually(
        lambda: (tmp_path / "gate.begun").exists() and states(made.name)["other"] == "Completed",
        what="the first step",
        timeout=LIMIT_S,
    )
    seen = runs.found(made.name)
    assert seen is not None
    os.kill(seen.state.pid, signal.SIGKILL)
    eventually(
        lambda: runs.found(made.name).state.pid != seen.state.pid,
        what="another driver",
        timeout=LIMIT_S,
    )
    (tmp_path / "gate").write_text("open")
    jobs.stream(made.name)
    assert states(made.name) == dict.fromkeys(("waits", "other", "after"), "Completed")
    assert (tmp_path / "gate.begun").read_text() == f"{made.name}\n", "the step ran once"
    assert (storage / made.name / "steps/after/std_log.txt").read_text() == "open\n"


def test_the_page_of_pipelines_runs_as_it_is_printed(idle: Home, tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/coming/azure_pipelines.md").read_text()
    component, pipeline, *_ = re.findall(r"^```yaml\n(.*?)^```", page, re.M | re.S)
    train, script, *_ = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    folder = folder_of(
        tmp_path / "w",
        **{
            "train.yml": component,
            "src__train.py": train,
            "pipeline.yml": pipeline,
            "pipeline.py": script,
            "text.txt": "Some Words are Longer\n",
        },
    )
    assert (
        json.loads(
            troupe_in(folder, "azure", "job", "create", "-f", "pipeline.yml", "-n", "words").stdout
        )["status"]
        == "Preparing"
    )
    streamed = troupe_in(folder, "azure", "job", "stream", "-n", "words")
    assert streamed.returncode == 0 and "└─ train  Completed" in streamed.stderr, streamed.stderr
    assert (folder / "model/words.txt").read_text() == "words longer"
    shown = json.loads(troupe_in(folder, "azure", "job", "show", "-n", "words").stdout)
    assert (shown["status"], shown["steps"]["train"]) == (
        "Completed",
        {"job": "words_train", "status": "Completed"},
    )
    done = troupe_in(folder, "run-as", "pipeline.py")
    assert (
        done.returncode == 0 and "prepare   Completed, reused from words_prepare" in done.stderr
    ), done.stderr
    assert (folder / "named-outputs/model/words.txt").read_text() == "some words longer"
