"""Pipelines of command jobs that run: steps in their order, outputs that are the next one's inputs, what is reused, how they fail and are cancelled.

Method: real pipelines on a cluster of this process, by files as people write them, and one by the command.
"""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from azure_jobs import folder_of
from e2e_conftest import Home

from troupe.azure import MLClient, load_job as azure_file

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


def test_a_chain_hands_its_files_on_and_equal_steps_are_reused(idle: Home, tmp_path: Path, storage: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = folder_of(tmp_path / "w", **{"words.txt": "a b c\n", "src__count.py": COUNT, "p.yml": CHAIN})
    first = ran(folder / "p.yml")
    assert (first.type, first.status, [each["status"] for each in first.steps.values()]) == ("pipeline", "Completed", ["Completed"] * 2)
    assert (storage / first.name / "steps/count/outputs/total/n.txt").read_text() == "6"
    said = capfd.readouterr().err
    assert "└─ count  NotStarted" in said and "└─ count  Completed in " in said
    jobs = MLClient().jobs
    assert jobs.get(f"{first.name}_count").status == "Completed"
    assert "[0] counted 6" in list(jobs.handle(jobs.info(f"{first.name}_count")).logs())
    assert sorted(each.name for each in jobs.list(parent_job_name=first.name)) == [f"{first.name}_count", f"{first.name}_prep"]
    assert first.name in {each.name for each in jobs.list()}
