"""The training in C++ of examples/cpp/digits_ddp: two hosts of two ranks each, of which one is
killed on the way."""

from __future__ import annotations

import gzip
import importlib.util
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.long,  # compiling against torch takes a minute
    pytest.mark.skipif(
        not all(importlib.util.find_spec(name) for name in ("torch", "sklearn")),
        reason="needs torch and scikit-learn",
    ),
]


@pytest.fixture(scope="module")
def digits(programs: Path) -> Path:
    """The example's program, built as its CMakeLists.txt says."""
    torch = Path(importlib.util.find_spec("torch").origin).parent  # type: ignore[union-attr,arg-type]
    work = programs.parent / "digits"
    for command in (
        [
            "cmake",
            "-S",
            ROOT / "examples/cpp/digits_ddp",
            "-B",
            work,
            "-DCMAKE_BUILD_TYPE=Release",
            f"-DCMAKE_PREFIX_PATH={programs.parent / 'prefix'}",
            f"-DTORCH={torch}",
        ],
        ["cmake", "--build", work],
    ):
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return work / "digits_ddp"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    packed = Path(importlib.util.find_spec("sklearn").origin).parent / "datasets/data/digits.csv.gz"  # type: ignore[union-attr,arg-type]
    path = tmp_path_factory.mktemp("digits") / "digits.csv"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    return path


def train(program: Path, *arguments: str | Path) -> str:
    done = subprocess.run(
        [program, *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        env=dict(os.environ),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_learns_what_the_example_in_python_learns(
    hosts: dict[str, str], digits: Path, data: Path, tmp_path: Path
) -> None:
    told = train(digits, data, tmp_path / "checkpoint")
    assert float(re.findall(r"test accuracy (\S+) on 4 ranks", told)[0]) >= 0.95


def test_one_that_is_killed_is_replaced_and_all_go_on_from_the_checkpoint(
    hosts: dict[str, str], digits: Path, data: Path, tmp_path: Path
) -> None:
    told = train(digits, data, tmp_path / "checkpoint", "--kill")
    assert "rank 2 is replaced" in told and "SIGKILL" in told and "going on with epoch 4" in told
    assert [int(each) for each in re.findall(r"^epoch +(\d+)  loss", told, re.MULTILINE)] == list(
        range(1, 11)
    )
    assert float(re.findall(r"test accuracy (\S+) on 4 ranks", told)[0]) >= 0.95


def test_what_is_no_data_is_said(hosts: dict[str, str], digits: Path, tmp_path: Path) -> None:
    (tmp_path / "digits.csv").write_text("1,2,3\n")
    done = subprocess.run(
        [digits, tmp_path / "digits.csv", tmp_path / "checkpoint"],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        env=dict(os.environ),
    )
    assert done.returncode == 1 and "holds no lines of 64 pixels and a digit" in done.stderr
    assert subprocess.run(
        [digits], check=False, capture_output=True, text=True, timeout=300
    ).stderr.startswith("digits_ddp: digits_ddp DIGITS.CSV CHECKPOINT")
