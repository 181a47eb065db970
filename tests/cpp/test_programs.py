"""Programs in C++ that drive a cluster, without Python on their side."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from e2e_conftest import Home, all_returned

import troupe
from troupe.cross_language import cpp_actor_class


def run(program: Path, *arguments: str, ok: bool = True, **env: str) -> subprocess.CompletedProcess:
    done = subprocess.run(
        [program, *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=180,
        env={**os.environ, **env},
    )
    if ok:
        assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_the_example_runs_as_it_is(idle: Home, programs: Path) -> None:
    assert run(programs / "hello_actor").stdout.splitlines() == [
        "total 6",
        "total 8",
        "total 11",
        "refused, std::invalid_argument",
    ]


def test_calls_waits_and_large_values(idle: Home, programs: Path) -> None:
    assert run(programs / "actors", "calls").stdout.splitlines() == [
        "last 105",
        "ready 100 of 100",
        "variable oak",
        "moved 1.500000 2.500000",
        "large 20000000",
        "back 20000000",
    ]


def test_errors_are_exceptions_with_their_cause(idle: Home, programs: Path) -> None:
    lines = run(programs / "actors", "errors").stdout
    for words in (
        "raised std::out_of_range: there are three shelves",
        "no method Ad(); it registers: Add",
        "argument 1 of Counter.Add()",
        "SIGABRT",
        "the counter is about to abort",
        "it cannot be made",
        "CPU",
        "nobody",
    ):
        assert words in lines


def test_an_actor_is_started_again_as_often_as_it_may(idle: Home, programs: Path) -> None:
    lines = run(programs / "actors", "restarts").stdout.splitlines()
    assert lines[0] == "anew 15 elsewhere" and "SIGKILL" in "\n".join(lines[1:])


def test_names_and_actors_of_python(idle: Home, programs: Path) -> None:
    @troupe.remote
    class Sums:
        def sums(self, rows: dict) -> dict:
            return {name: sum(row) for name, row in rows.items()}

        def fail(self, text: str) -> None:
            raise KeyError(text)

        def strange(self) -> object:
            return {1, 2}

    sums = Sums.options(name="sums", namespace="shared").remote()
    troupe.get(sums.sums.remote({}), timeout=60)
    lines = run(programs / "actors", "names", "sums", "shared").stdout
    assert lines.splitlines()[:3] == ["mine 2", "sum a 3.000000", "sum b 0.500000"]
    for words in ("KeyError: 'a text'", "it holds a set", "killed by troupe::Kill"):
        assert words in lines


def test_placement_groups(idle: Home, programs: Path) -> None:
    lines = run(programs / "actors", "groups").stdout
    assert lines.splitlines()[:2] == ["nodes one one", "inside 3"]
    for words in ("was not ready within 0.01 s", "1000", "is dead"):
        assert words in lines


def test_launches_of_functions_and_commands(idle: Home, programs: Path, tmp_path: Path) -> None:
    lines = run(programs / "actors", "launches", str(tmp_path)).stdout
    assert lines.splitlines()[:2] == ["rank 0: 2 0", "rank 1: 2 2.5"]
    for words in (
        "FailOnRank() threw std::out_of_range: no such batch",
        "words of 0",
        "7",
        "has not ended within 0.01 s",
        "was cancelled",
        "exactly one of processes and gpus",
        "1000",
    ):
        assert words in lines


def test_training_groups_between_actors(idle: Home, programs: Path) -> None:
    lines = run(programs / "actors", "training").stdout
    assert lines.splitlines()[:6] == [
        "rank 2",
        *["sum 7.000000 7.000000"] * 3,
        "gathered 1 -1 2 -1 4 -1",
        "first 1.000000",
    ]
    for words in ("in no group other; it is in: dp", "troupe::GroupError", "rank 1"):
        assert words in lines
    assert lines.splitlines()[-1] == "anew 13.000000"


def test_sessions_one_after_the_other(idle: Home, programs: Path) -> None:
    lines = run(programs / "actors", "sessions").stdout
    assert (
        "hatched 7" in lines
        and "kept 1" in lines
        and lines.splitlines()[-2:] == ["again 9", "whole 8"]
    )
    for words in ("was called before", "troupe::Shutdown() was called", "troupe::Init() first"):
        assert words in lines


def test_what_a_program_has_made_ends_with_its_handles_and_with_it(
    idle: Home, programs: Path
) -> None:
    assert run(programs / "actors", "handles").stdout.splitlines() == ["second 2"]
    stays = troupe.get_actor("stays", namespace="cpp")
    assert troupe.get(stays.Total.remote(), timeout=60) == 42
    troupe.kill(stays)
    all_returned(timeout=60)


def test_a_program_that_is_killed_takes_its_actors_along(idle: Home, programs: Path) -> None:
    # An actor of this program: it stays
    counter = cpp_actor_class(programs / "actors", "Counter").remote(0)
    for _ in range(2):
        with subprocess.Popen(
            [programs / "hello_actor"], stdout=subprocess.PIPE, text=True
        ) as program:
            assert program.stdout is not None and program.stdout.readline() == "total 6\n"
            program.kill()
    assert troupe.get(counter.Total.remote(), timeout=60) == 0


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"TROUPE_ADDRESS": "127.0.0.1:1"}, "needs a token"),
        ({"TROUPE_ADDRESS": "nonsense"}, "host:port"),
        (
            {"TROUPE_ADDRESS": "127.0.0.1:1", "TROUPE_TOKEN_FILE": "/nowhere/token"},
            "/nowhere/token",
        ),
        ({"TROUPE_HOME": "/nowhere"}, "troupe start --head"),
    ],
    ids=range(4),
)
def test_who_finds_no_cluster_is_told_what_to_do(
    idle: Home, programs: Path, env: dict[str, str], words: str
) -> None:
    done = run(programs / "hello_actor", ok=False, **env)
    assert done.returncode == 1 and re.search(words, done.stderr), done.stderr


def test_by_address_and_token_over_tls(cluster: Home, idle: Home, programs: Path) -> None:
    status = cluster.json("status")
    lines = run(
        programs / "hello_actor",
        TROUPE_ADDRESS=status["address"],
        TROUPE_TOKEN_FILE=cluster.token("--role", "client"),
    ).stdout
    assert lines.splitlines()[:3] == ["total 6", "total 8", "total 11"]
