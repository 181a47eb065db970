"""Nodes whose Python or main libraries are other versions than the caller's: told once, at the
launch, a row for each library.

Method: a node that was told, by its label, that it has an older torch and no numpy; what is
compared does not depend on what is installed.
"""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
from conftest import TIMEOUT_S, Home
from submits import project, troupe_in

import troupe
from troupe._cluster import selectors, versions
from troupe.launch import distributed

MINE = {
    "Python": "3.11.2",
    "torch": "2.5.1",
    "CUDA of torch": "12.4",
    "numpy": "2.0",
    "troupe": "0.1",
}


@pytest.mark.parametrize(
    ("nodes", "without", "rows"),
    [
        ({"a": MINE, "b": dict(MINE)}, (), []),
        ({"a": {}}, (), []),
        (
            {"a": MINE, "b": {**MINE, "torch": "2.4.0"}, "c": {**MINE, "torch": "2.4.0"}},
            (),
            ["torch: 2.5.1 here, 2.4.0 on b, c"],
        ),
        (
            {
                "a": {**MINE, "Python": "3.11.9", "CUDA of torch": "none"},
                "b": {**MINE, "CUDA of torch": "11.8"},
            },
            (),
            ["Python: 3.11.2 here, 3.11.9 on a", "CUDA of torch: 12.4 here, none on a, 11.8 on b"],
        ),
        (
            {"a": {name: found for name, found in MINE.items() if name != "numpy"}},
            (),
            ["numpy: 2.0 here, none on a"],
        ),
        (
            {"a": {**MINE, "numpy": "1.26", "torch": "2.4.0"}},
            ("numpy",),
            ["torch: 2.5.1 here, 2.4.0 on a"],
        ),
    ],
)
def test_a_row_for_each_difference_with_the_nodes(nodes: dict, without: tuple, rows: list) -> None:
    assert versions.differences(MINE, nodes, frozenset(without)) == rows


def test_what_is_here_is_told_as_a_label_and_read_again() -> None:
    found = versions.here()
    assert (
        found["Python"] == platform.python_version()
        and found["troupe"] == troupe.__version__
        and found["cloudpickle"]
    )
    assert versions.of_label(versions.as_label(found)) == found
    given = ["--labels=zone=a", "--name=x"]
    first, *rest = versions.with_label(given)
    assert first.startswith(f"--labels=zone=a,{selectors.VERSIONS}=Python:") and rest == [
        "--name=x"
    ]
    assert versions.with_label([f"--labels={selectors.VERSIONS}=torch:1.0"]) == [
        f"--labels={selectors.VERSIONS}=torch:1.0"
    ]


def test_the_table_comes_once_with_the_launch(home: Home, tmp_path: Path) -> None:
    head = home.json("start", "--head", "--port", "0", "--num-cpus", "2", "--node-name", "same")
    told = versions.as_label({**versions.here(), "torch": "1.13.0", "numpy": "none"})
    home.run(
        "start",
        "--address",
        head["address"],
        "--token-file",
        home.token(),
        "--num-cpus",
        "2",
        "--node-name",
        "old",
        "--labels",
        f"{selectors.VERSIONS}={told}",
    )
    here = versions.here()
    rows = [
        f"torch: {here['torch']} here, 1.13.0 on old",
        f"numpy: {here['numpy']} here, none on old",
    ]
    done = troupe_in(
        project(tmp_path / "w", nothing="pass\n"),
        "submit",
        "--nnodes",
        "2",
        "--max-restarts",
        "1",
        "nothing.py",
    )
    assert done.returncode == 0 and all(done.stderr.count(row) == 1 for row in rows), done.stderr
    with troupe.init(head["address"]):
        handle = distributed(processes=4, remote=True, quiet=True)(int).submit()
        handle.result(timeout=TIMEOUT_S)
        assert handle.status()["differences"] == rows
        assert all(
            selectors.VERSIONS not in str(view)
            for view in (troupe.nodes(), troupe.state.list_nodes())
        )
