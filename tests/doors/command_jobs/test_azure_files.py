"""Job files that are wrong: each error with file, line and column, all of a file at once.

Method: the files of `wrong_job_files`, read without a cluster.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from wrong_job_files import JOB, RIGHT, WRONG

from troupe import azure


@pytest.mark.parametrize("what", WRONG)
def test_c1_a_wrong_file_is_refused_with_all_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    text, places, words = WRONG[what]
    monkeypatch.chdir(tmp_path)
    Path("job.yml").write_text(text)
    with pytest.raises(ValueError) as refused:
        azure.load_job("job.yml")
    said = str(refused.value)
    assert re.findall(r"^ *job\.yml:(\d+:\d+): ", said, re.M) == places, said
    assert all(each in said for each in words), said
    assert len(said.splitlines()) <= 2 + len(places), said


@pytest.mark.parametrize("what", RIGHT)
def test_c1_a_file_that_the_service_takes_is_taken(tmp_path: Path, what: str) -> None:
    (tmp_path / "job.yml").write_text(RIGHT[what])
    assert azure.load_job(tmp_path / "job.yml").type in ("command", "sweep")


def test_c1_a_value_of_the_caller_is_named_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.yml").write_text(JOB + "resources: {instance_count: 1}\n")
    with pytest.raises(
        ValueError, match=r"^job\.yml with resources\.instance_count set: resources: "
    ):
        azure.load_job("job.yml", params_override=[{"resources.instance_count": "two"}])
