"""`troupe submit` on nodes that are as other hosts: the folder travels, and ranks are spread as
asked.

Method: two workers by --force-tcp, which take no path of this host for theirs; a script tells where
it was run.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from submits import printed, project, torchrun_in, training, troupe_in

from troupe.launch import submit_command

WHERE = """
import os
import beside
print(os.environ["RANK"], os.environ["GROUP_RANK"], os.environ["LOCAL_RANK"], beside.X, open("data.txt").read().strip(), os.path.dirname(__file__))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return project(tmp_path / "w", where=WHERE, beside="X = 3\n", **{"data.txt": "text"})


@pytest.mark.long
def test_b7_the_folder_travels_and_the_training_is_the_same(
    hosts: dict[str, str], tmp_path: Path
) -> None:
    here = training(tmp_path / "repository")
    torchrun = torchrun_in(here, "--standalone", "--nproc_per_node=2", "train.py", "--lr", "0.01")
    assert printed(
        troupe_in(here, "submit", "--nnodes", "2", "train.py", "--lr", "0.01")
    ) == printed(torchrun)


@pytest.mark.parametrize("how", [[], ["--fresh"]], ids=["forked", "fresh"])
def test_ranks_are_as_many_on_each_node_as_asked(
    hosts: dict[str, str], folder: Path, how: list[str]
) -> None:
    lines = [
        line.split()
        for line in printed(
            troupe_in(folder, "submit", "--nnodes", "2", "--nproc-per-node", "2", *how, "where.py")
        )
    ]
    assert [line[:5] for line in lines] == [
        ["0", "0", "0", "3", "text"],
        ["1", "0", "1", "3", "text"],
        ["2", "1", "0", "3", "text"],
        ["3", "1", "1", "3", "text"],
    ]
    assert all(line[5] != str(folder) for line in lines), "none of the nodes is this host"


def test_ranks_that_cannot_be_even_over_the_nodes_are_one_more_on_the_first(
    hosts: dict[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    handle = submit_command(["where.py"], processes=3, nodes=2, remote=True)
    handle.result(timeout=120)
    assert sorted(line.split()[1:4] for line in handle.logs()) == [
        ["0", "0", "0"],
        ["1", "0", "1"],
        ["2", "1", "0"],
    ]


def test_as_many_nodes_as_there_are_within_the_limits(hosts: dict[str, str], folder: Path) -> None:
    for asked, groups in (("1:4", 2), ("1:1", 1), ("2:2", 2)):
        lines = printed(troupe_in(folder, "submit", "--nnodes", asked, "where.py"))
        assert len({line.split()[1] for line in lines}) == len(lines) == groups
    done = troupe_in(folder, "submit", "--nnodes", "3:4", "where.py")
    assert done.returncode == 1 and "PlacementError" in done.stderr


def test_a_script_beside_the_current_directory_brings_its_folder(
    hosts: dict[str, str], folder: Path, tmp_path: Path
) -> None:
    elsewhere = project(tmp_path / "elsewhere", **{"data.txt": "of the current directory"})
    (line,) = printed(troupe_in(elsewhere, "submit", "../w/where.py"))
    assert line.split(maxsplit=4)[3:][0] == "3" and "of the current directory" in line


def test_a_module_and_a_command_find_the_folder_too(hosts: dict[str, str], folder: Path) -> None:
    assert printed(troupe_in(folder, "submit", "-m", "where"))[0].split()[3:5] == ["3", "text"]
    assert printed(troupe_in(folder, "submit", "--", "cat", "data.txt")) == ["text"]


def test_a_folder_that_is_too_large_is_refused_with_its_largest_file(
    hosts: dict[str, str], folder: Path
) -> None:
    with open(folder / "huge.bin", "wb") as file:
        file.truncate(5 << 30)
    done = troupe_in(folder, "submit", "where.py")
    assert done.returncode == 1 and "huge.bin" in done.stderr and "--exclude" in done.stderr
    assert printed(troupe_in(folder, "submit", "--exclude", "*.bin", "where.py"))[0].startswith(
        "0 0 0 3 text"
    )


def test_a6_what_gitignore_names_stays_here_unless_it_is_wanted(
    hosts: dict[str, str], folder: Path
) -> None:
    project(folder, **{"large/weights.bin": "w", ".gitignore": "large/\n*.log\n", "a.log": ""})
    find = ["--", "bash", "-c", "find . -type f -not -path '*/__pycache__/*' | sort | xargs"]
    travels = ["./.gitignore", "./beside.py", "./data.txt", "./where.py"]
    assert printed(troupe_in(folder, "submit", *find))[0].split() == travels
    assert printed(troupe_in(folder, "submit", "--exclude", "!large", *find))[0].split() == sorted(
        [*travels, "./large/weights.bin"]
    )
