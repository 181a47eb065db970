"""Actors and programs in C++ on hosts of their own: calls go over TLS, by names that the head
certifies."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from e2e_conftest import Home

import troupe
from troupe.cross_language import cpp_actor_class
from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy


def test_calls_and_large_values_between_hosts(hosts: dict[str, str], programs: Path) -> None:
    there = NodeAffinitySchedulingStrategy(hosts["b"], soft=False)
    echo = cpp_actor_class(programs / "actors", "Echo").options(scheduling_strategy=there).remote()
    assert troupe.get(echo.Same.remote({"a": [1, 2.5]}), timeout=60) == {"a": [1, 2.5]}
    size = 20_000_000
    assert troupe.get(echo.SizeOf.remote(b"z" * size), timeout=120) == size
    assert troupe.get(echo.Large.remote(size), timeout=120) == b"x" * size
    counter = (
        cpp_actor_class(programs / "actors", "Counter")
        .options(
            name="away", scheduling_strategy=NodeAffinitySchedulingStrategy(hosts["a"], soft=False)
        )
        .remote(1)
    )
    assert troupe.get(echo.Relay.remote("away", "Add", 2), timeout=60) == 3
    assert troupe.get(counter.Total.remote(), timeout=60) == 3


def test_a_program_calls_actors_of_other_hosts(
    hosts: dict[str, str], shared_home: Home, programs: Path
) -> None:
    done = subprocess.run(
        [programs / "actors", "calls"],
        check=False,
        capture_output=True,
        text=True,
        timeout=180,
        env=dict(os.environ),
    )
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout.splitlines()[0] == "last 105"
        and done.stdout.splitlines()[-1] == "back 20000000"
    )


def test_training_groups_over_two_hosts(hosts: dict[str, str], programs: Path) -> None:
    done = subprocess.run(
        [programs / "actors", "training", "spread"],
        check=False,
        capture_output=True,
        text=True,
        timeout=180,
        env=dict(os.environ),
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:6] == [
        "rank 2",
        *["sum 7.000000 7.000000"] * 3,
        "gathered 1 -1 2 -1 4 -1",
        "first 1.000000",
    ]
    assert "troupe::GroupError" in done.stdout and lines[-1] == "anew 13.000000"


def test_an_executable_that_is_missing_on_the_node_is_told(hosts: dict[str, str]) -> None:
    lost = cpp_actor_class("/nowhere/actors", "Counter").remote(1)
    with pytest.raises(troupe.exceptions.ActorDiedError, match="/nowhere/actors") as caught:
        troupe.get(lost.Add.remote(1), timeout=60)
    assert "No such file" in str(caught.value)
