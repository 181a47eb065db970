"""The fixtures of tests/e2e, and programs in C++ that an outside project builds from an installed
Troupe."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path

import pytest
from e2e_conftest import *  # noqa: F403

from troupe import _native

ROOT = Path(__file__).parents[2]


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, (
        f"{' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    )


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of the outside project's programs: `actors`, `hello_actor`.

    Built once for all who ask at the same time.
    """
    build = Path(_native.__file__).resolve().parents[2]
    if not (build / "lib" / "libtroupe.so").exists():
        pytest.skip(f"{build} has no libtroupe.so: build its target troupe_api")
    work = build / "cpp_tests"
    work.mkdir(exist_ok=True)
    with open(work / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _run("cmake", "--install", build, "--prefix", work / "prefix", "--component", "cpp")
        _run(
            "cmake",
            "-S",
            ROOT / "tests/cpp/project",
            "-B",
            work / "project",
            "-G",
            "Ninja",
            "-DCMAKE_BUILD_TYPE=Debug",
            f"-DCMAKE_PREFIX_PATH={work / 'prefix'}",
            f"-DEXAMPLES={ROOT / 'examples/cpp'}",
        )
        _run("cmake", "--build", work / "project")
    return work / "project"
