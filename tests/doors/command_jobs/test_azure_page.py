"""The page of a job, a file on the caller's host: what `studio_url` names and `--web` opens.

Method: `troupe azure job create --web` with a browser that writes down what it is to open, on a
cluster and without one; pages are read as files.
"""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from azure_jobs import folder_of
from e2e_conftest import Home, eventually
from submits import troupe_in

from troupe.azure import MLClient, command
from troupe.azure._jobs.job import Job
from troupe.azure._past import page

JOB = """
type: command
command: echo "a < b"; echo kept > ${{outputs.o}}/b.txt
environment: azureml:any@latest
inputs: {epochs: 3}
outputs: {o: {}}
"""
BROWSER = f"""#!{sys.executable}
import pathlib, sys
pathlib.Path(__file__).with_name("opened").write_text(sys.argv[1])
"""


def _path(address: str) -> Path:
    parts = urlsplit(address)
    assert parts.scheme == "file" and not parts.netloc, address
    return Path(unquote(parts.path))


def _browser(folder: Path) -> dict[str, str]:
    program = folder / "browser"
    program.write_text(BROWSER)
    program.chmod(0o755)
    return {"BROWSER": f"{program} %s"}


def test_the_page_of_a_clusters_job_opens_and_follows_its_state(home: Home, tmp_path: Path) -> None:
    home.run("start", "--head", "--port", "0", "--num-cpus", "2")
    folder_of(tmp_path, **{"job.yml": JOB})
    words = ("azure", "job", "create", "-f", "job.yml", "-n", "one", "--web")
    web = _browser(tmp_path)
    made = troupe_in(tmp_path, *words, "--query", "services.Studio.endpoint", "-o", "tsv", env=web)
    assert made.returncode == 0, made.stderr
    address = made.stdout.strip()
    assert (tmp_path / "opened").read_text() == address
    jobs = MLClient().jobs
    eventually(lambda: jobs.get("one").status == "Completed", what="the job's end")
    job = jobs.get("one")
    assert job.studio_url == address == job.services["Studio"].endpoint
    assert [each.studio_url for each in jobs.list() if each.name == "one"] == [address]
    text = _path(address).read_text()
    assert stat.S_IMODE(_path(address).stat().st_mode) == 0o600
    for each in (
        *("<h1>job one</h1>", "Completed, as of ", "epochs: 3", "<pre>troupe dashboard</pre>"),
        *("a &lt; b", "troupe azure job download -n one --output-name o"),
    ):
        assert each in text, text
    assert "refresh" not in text  # the job has ended


def test_the_page_of_a_job_without_a_cluster_stays_with_what_it_printed(
    home: Home, tmp_path: Path
) -> None:
    folder_of(tmp_path, **{"job.yml": JOB})
    words = ("azure", "job", "create", "-f", "job.yml", "-n", "own", "--stream", "--web")
    done = troupe_in(tmp_path, *words, env=_browser(tmp_path))
    assert done.returncode == 0, done.stderr
    text = _path((tmp_path / "opened").read_text()).read_text()
    assert "Completed, as of " in text and "Its cluster ended with its program" in text
    job = MLClient().jobs.get("own")
    assert job.studio_url == (tmp_path / "opened").read_text()
    (printed,) = job.log_files.values()
    assert printed in text and _path(printed).read_text() == "a < b\n"


def test_pages_are_limited_and_a_folder_of_others_gives_none(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "PAGES_MAX", 2)
    made = [Job("j<script>", f"{n:032x}", "Running") for n in range(4)]
    ended = Job("ended", "f" * 32, "Completed")
    addresses = [page.write(each) for each in (*made, ended)]
    there = [_path(each).exists() for each in addresses if each]
    assert there == [False, False, False, True, True]
    text = _path(str(addresses[3])).read_text()
    assert "<script>" not in text and 'http-equiv="refresh"' in text
    _path(str(addresses[-1])).parent.chmod(0o777)
    assert page.write(made[0]) is None and made[0].studio_url is None
    step = Job("a-reused-step", "", "Completed")
    assert page.write(step) is None
    assert command(command="true").studio_url is None
