"""`troupe sweep`: each command on a sweep that runs, one that is over, and one whose engine has
died; names that are wrong.

Method: real commands beside a real cluster; trials wait for files, so that a command finds the
sweep as the test wants it.
"""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually

import troupe
from troupe import tune
from troupe._cluster import session
from troupe.tune import _handle
from troupe.tune._journal import view

cloudpickle.register_pickle_by_value(sys.modules[__name__])

PROGRAM = """
import sys, time
from pathlib import Path
from troupe import tune
folder = Path(sys.argv[1])

@tune.sweep(remote=True, metric="x", mode="max", space={"a": tune.grid_search([1, 2])}, storage=folder, name="program", cpus=0.1)
def train(a, go):
    print("trial", a, "is there", flush=True)
    tune.report({"x": a})
    while not Path(go).exists():
        time.sleep(0.02)  # lint-ok: a trial that waits for the test
    tune.report({"x": 10 * a})

train.sweep(go=str(folder / "go"))
"""


class Sweep:
    """A submitted sweep of three trials, of which `failing` fail as long as there is no file
    `well`; each waits for the file `go`."""

    def __init__(self, home: Home, folder: Path, name: str) -> None:
        self.home, self.folder, self.name = home, folder, name

        @tune.sweep(
            remote=True,
            metric="x",
            mode="max",
            space={"a": tune.grid_search([1, 2, 3])},
            storage=folder,
            name=name,
            cpus=0.1,
            max_concurrent=2,
        )
        def train(a: int, folder: str, call: Any = len) -> None:
            import time

            print("trial", a, "is there", flush=True)
            tune.report({"x": a, "inner": {"y": -a}})
            while not Path(folder, "go").exists():
                time.sleep(0.02)  # lint-ok: a trial that waits for the test
            if a == 2 and not Path(folder, "well").exists():
                raise KeyError(f"trial {a} is not well")
            tune.report({"x": 10 * a, "inner": {"y": 0}})

        self.handle = train.submit(folder=str(folder))
        self.at(running=2)

    def at(self, **counts: int) -> None:
        eventually(
            lambda: all(
                self.handle.status()["trials"][name] == count for name, count in counts.items()
            ),
            what=f"{counts} of {self.name}",
        )

    def go(self) -> None:
        (self.folder / "go").touch()

    def run(self, command: str, *args: str, ok: bool = True) -> subprocess.CompletedProcess:
        return self.home.run(
            "sweep", command, self.name, "--storage", str(self.folder), *args, ok=ok
        )

    def json(self, command: str, *args: str) -> Any:
        return json.loads(self.run(command, "--json", *args).stdout)


@pytest.fixture
def swept(idle: Home, tmp_path: Path) -> Iterator[Callable[[str], Sweep]]:
    yield lambda name: Sweep(idle, tmp_path, name)


def test_a_sweep_that_runs_is_listed_shown_and_read(swept: Callable[[str], Sweep]) -> None:
    sweep = swept("looked-at")
    eventually(lambda: (sweep.handle.status()["best"] or {}).get("value") == 2, what="both reports")
    (listed,) = json.loads(
        sweep.home.run("sweep", "list", "--storage", str(sweep.folder), "--json").stdout
    )
    assert (
        listed["name"],
        listed["state"],
        listed["trials"]["running"],
        listed["best"]["value"],
    ) == ("looked-at", "running", 2, 2)
    table = sweep.home.run("sweep", "list", "--storage", str(sweep.folder)).stdout
    assert "looked-at" in table and "0/3, 2 running" in table and "x=2" in table
    shown = sweep.run("show").stdout
    assert (
        "sweep looked-at · running, pid" in shown
        and "best x=2: trial 00001: a=2" in shown
        and "a=1" in shown
    )
    assert json.loads(sweep.run("export", "--format", "json").stdout)[0]["state"] == "running"
    lines = sweep.json("logs")["lines"]
    assert "[00000] trial 1 is there" in lines and "[00001] trial 2 is there" in lines
    assert sweep.json("logs", "--trial", "1")["lines"] == ["[00001] trial 2 is there"]
    assert "has no trial 'none'" in sweep.run("logs", "--trial", "none", ok=False).stderr
    sweep.go()
    sweep.handle.result(TIMEOUT_S)


def test_stop_resume_and_what_failed_tried_again(swept: Callable[[str], Sweep]) -> None:
    """Each command says what a sweep in the other states can have instead."""
    sweep = swept("gone-on-with")
    assert sweep.run("resume").stdout == "sweep gone-on-with runs already\n"
    assert (
        "what failed is tried again once it is over" in sweep.run("retry-failed", ok=False).stderr
    )
    assert (
        sweep.run("stop").stdout
        == "sweep gone-on-with is stopped: troupe sweep resume gone-on-with goes on with it\n"
    )
    assert sweep.run("stop").stdout == "sweep gone-on-with is stopped already, and stays so\n"
    assert "stopped; troupe sweep resume gone-on-with goes on with it" in sweep.run("show").stdout
    assert "does not run: it is stopped" in sweep.run("pause", ok=False).stderr
    assert "goes on in a process of the cluster" in sweep.run("resume").stdout
    sweep.go()
    sweep.at(completed=2, failed=1)
    eventually(sweep.handle.done, what="the end")
    shown = sweep.run("show").stdout
    assert "finished: all trials are over" in shown and "trial 2 is not well" in shown
    assert (
        "`troupe sweep retry-failed gone-on-with` tries the 1 trials again that failed"
        in sweep.run("resume", ok=False).stderr
    )
    (sweep.folder / "well").touch()
    sweep.run("retry-failed")
    sweep.at(completed=3, failed=0)
    eventually(sweep.handle.done, what="the end")
    assert "no trial of it has failed" in sweep.run("retry-failed", ok=False).stderr
    assert sorted(each.metrics["x"] for each in sweep.handle.result(TIMEOUT_S)) == [10, 20, 30]


def test_a_paused_sweep_starts_nothing_and_its_trials_go_on(swept: Callable[[str], Sweep]) -> None:
    sweep = swept("held")
    (sweep.folder / "well").touch()
    assert "starts nothing more, and what runs goes on" in sweep.run("pause").stdout
    eventually(lambda: sweep.handle.status()["held"], what="the hold")
    sweep.go()
    sweep.at(completed=2)
    os.kill(
        sweep.handle.status()["engine"]["pid"], signal.SIGKILL
    )  # another process takes over, and holds too
    eventually(
        lambda: (
            len(view.of(sweep.handle.path).trials) == 2
            and sweep.handle.status()["state"] == "running"
        ),
        what="another engine",
    )
    assert (
        sweep.handle.status()["held"]
        and "paused: what runs goes on, nothing is started" in sweep.run("show").stdout
    )
    assert sweep.run("resume").stdout == "sweep held starts trials again\n"
    assert len(sweep.handle.result(TIMEOUT_S)) == 3


def test_exports_have_all_trials_and_all_reports_and_unpickle_nothing(
    swept: Callable[[str], Sweep], tmp_path: Path
) -> None:
    sweep = swept("exported")
    sweep.go()
    sweep.handle.result(TIMEOUT_S)
    for name in ("tuner.pkl", "trainable.pkl"):
        (sweep.handle.path / name).write_bytes(b"no pickle")
    rows = list(csv.DictReader(sweep.run("export").stdout.splitlines()))
    assert [(row["state"], row["config/a"], row["x"], row["inner/y"]) for row in rows] == [
        ("completed", "1", "10", "0"),
        ("failed", "2", "2", "-2"),
        ("completed", "3", "30", "0"),
    ]
    assert "trial 2 is not well" in rows[1]["error/text"]
    sweep.run("export", "--reports", "--format", "json", "-o", str(tmp_path / "reports.json"))
    reports = json.loads((tmp_path / "reports.json").read_text())
    assert [(each["config"]["a"], each["report"], each["metrics"]["x"]) for each in reports] == [
        (1, 1, 1),
        (1, 2, 10),
        (2, 1, 2),
        (3, 1, 3),
        (3, 2, 30),
    ]
    assert "finished" in sweep.run("show", "--trials", "0").stdout


def test_a_sweep_of_a_program_is_stopped_by_ctrl_c_there_and_one_whose_engine_died_is_gone_on_with(
    idle: Home, tmp_path: Path
) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    env = {**os.environ, "TROUPE_ADDRESS": session.current().address}
    program = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    where = ("program", "--storage", str(tmp_path))
    handle = tune.SweepHandle("program", tmp_path / "program")

    def at_two() -> bool:
        return (
            handle.path.is_dir()
            and (handle.path / "sweep.json").exists()
            and (handle.status()["best"] or {}).get("value") == 2
        )

    eventually(lambda: at_two() or program.poll() is not None, what="two reports")
    assert program.poll() is None, program.communicate()
    paused = idle.run("sweep", "pause", *where, ok=False)
    assert (
        f"runs in a program, pid {program.pid} on " in paused.stderr
        and "pause is for sweeps that were submitted" in paused.stderr
    )
    assert "is stopped" in idle.run("sweep", "stop", *where).stdout
    assert "KeyboardInterrupt" in program.communicate(timeout=TIMEOUT_S)[1]
    idle.run("sweep", "resume", *where)
    eventually(lambda: handle.status()["trials"]["running"] == 2, what="both trials")
    troupe.kill(_handle._actor("program"))
    eventually(lambda: handle.status()["state"] == "dead", what="its death")
    assert "dead: its engine (pid " in idle.run("sweep", "show", *where).stdout
    assert "is dead already" in idle.run("sweep", "stop", *where).stdout
    (tmp_path / "go").touch()
    idle.run("sweep", "resume", *where)
    assert [each.metrics["x"] for each in handle.result(TIMEOUT_S)] == [10, 20]


def test_wrong_names_are_answered_with_the_nearest(idle: Home, tmp_path: Path) -> None:
    for name in ("digits-one", "digits-two"):
        tune.Tuner(
            lambda config: {"x": 1},
            run_config=tune.RunConfig(name=name, storage_path=tmp_path, verbose=0),
        ).fit()
    where = ("--storage", str(tmp_path))
    assert (
        "did you mean 'digits-one'?"
        in idle.run("sweep", "show", "digit-one", *where, ok=False).stderr
    )
    assert "several sweeps" in idle.run("sweep", "show", "digits", *where, ok=False).stderr
    assert "sweep digits-two" in idle.run("sweep", "show", "digits-t", *where).stdout
    assert (
        "there is no sweep called"
        in idle.run("sweep", "stop", "x", "--storage", str(tmp_path / "none"), ok=False).stderr
    )
    assert idle.run("sweep", "show", str(tmp_path / "digits-one")).returncode == 0


def test_the_dashboard_answers_its_link_alone_unpickles_nothing_and_follows_the_sweep(
    swept: Callable[[str], Sweep],
) -> None:
    """`tuner.pkl` and the journal's objects are of no use to it: the first is damaged here."""
    pytest.importorskip("optuna_dashboard")
    sweep = swept("seen")
    (sweep.folder / "seen" / "tuner.pkl").write_bytes(b"no pickle")
    server = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "troupe",
            "sweep",
            "dashboard",
            "seen",
            "--storage",
            str(sweep.folder),
            "--port",
            "0",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    try:
        assert server.stdout is not None
        link = server.stdout.readline().strip()
        address, _, token = link.partition("login?token=")
        assert address.startswith("http://127.0.0.1:") and len(token) > 40
        assert token not in Path(f"/proc/{server.pid}/cmdline").read_text()
        studies = f"{address}api/studies/0?after=0"
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(studies, timeout=TIMEOUT_S)
        browser.open(link, timeout=TIMEOUT_S).close()
        with browser.open(address, timeout=TIMEOUT_S) as answer:
            assert answer.url == f"{address}sweeps/seen"
            page = answer.read().decode()
        assert "optuna" in page and page.count("running") >= 3
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(link, timeout=TIMEOUT_S)

        def trials() -> list[tuple[str, Any]]:
            with browser.open(studies, timeout=TIMEOUT_S) as answer:
                return sorted(
                    (each["state"], [one["param_external_value"] for one in each["params"]])
                    for each in json.load(answer)["trials"]
                )

        assert trials() == [("Running", ["1"]), ("Running", ["2"])]
        sweep.go()
        sweep.handle.result(TIMEOUT_S)
        # The dashboard looks at a storage every 10 s at most
        eventually(
            lambda: trials() == [("Complete", ["1"]), ("Complete", ["3"]), ("Fail", ["2"])],
            what="the end there",
        )
        with browser.open(f"{address}sweeps/seen", timeout=TIMEOUT_S) as answer:
            page = answer.read().decode()
        assert "Best so far" in page and "<polyline" in page and "s-finished" in page
        with browser.open(f"{address}sweeps", timeout=TIMEOUT_S) as answer:
            assert 'href="/sweeps/seen"' in answer.read().decode()
        for path in ("sweeps/none", "nodes", "sweeps/..%2f..%2fetc"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                browser.open(f"{address}{path}", timeout=TIMEOUT_S)
        wrong = urllib.request.Request(f"{address}api/studies", data=b"{}", method="POST")
        with pytest.raises(urllib.error.HTTPError, match="405"):  # read-only
            browser.open(wrong, timeout=TIMEOUT_S)
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(TIMEOUT_S) == 130
