"""Method: a wheel is built as `pip wheel .` does, and installed into a fresh environment; its
    programs, its extension and its console script are used there, from a folder that has no source
    tree. The compiler cache has its objects once the preset `release` was built.

The environment sees the dependencies of the one that runs the tests, so that nothing is downloaded.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD_TIMEOUT_S = 1500
COMMAND_TIMEOUT_S = 60
LAUNCH = """
from troupe.launch import distributed

@distributed(processes=2, remote=True)
def ranks():
    import os
    return int(os.environ["RANK"]), os.environ["WORLD_SIZE"]

print(ranks.distributed())
"""


def pip_wheel(folder: Path, build: Path, compilers: dict[str, str], *settings: str) -> None:
    """Makes a wheel of this source tree in `folder`, with CC and CXX as in `compilers`."""
    environment = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX")}
    environment |= {
        **compilers,
        "CCACHE_BASEDIR": str(ROOT),
        "CCACHE_DEPEND": "1",
        "CCACHE_NOHASHDIR": "1",
    }
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        str(ROOT),
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        folder,
    ]
    for setting in (f"build-dir={build}", *settings):
        command += ["--config-settings", setting]
    built = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S
    )
    assert built.returncode == 0, (
        f"pip wheel failed\n{built.stdout[-4000:]}\n{built.stderr[-4000:]}"
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this source tree."""
    folder = tmp_path_factory.mktemp("wheel")
    pip_wheel(folder, ROOT / "build" / "wheel", {})
    (made,) = folder.glob("*.whl")
    return made


class Installed:
    """An environment with the wheel and a TROUPE_HOME of its own, where commands run outside the
    source tree."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder
        self.bin = folder / "env" / "bin"
        venv.create(folder / "env", with_pip=False, symlinks=True)
        (self.packages,) = (folder / "env").glob("lib/python*/site-packages")
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "--python",
                self.bin / "python",
                "install",
                "-q",
                "--no-deps",
                "--no-index",
                wheel,
            ],
            check=True,
            capture_output=True,
            timeout=COMMAND_TIMEOUT_S,
        )
        (self.packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        runtime = folder / "run"
        runtime.mkdir(mode=0o700)
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TROUPE_", "PYTHONPATH", "RAY_"))
        }
        self.environment = {
            **kept,
            "TROUPE_HOME": str(folder / "home"),
            "XDG_RUNTIME_DIR": str(runtime),
        }

    def run(self, program: str, *args: str, env: dict[str, str] | None = None) -> str:
        """Runs a program of the environment to its end and returns its output; it must succeed."""
        done = subprocess.run(
            [self.bin / program, *args],
            cwd=self.folder,
            env={**self.environment, **(env or {})},
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
        )
        assert done.returncode == 0, (
            f"{program} {' '.join(args)} ended with {done.returncode}\n{done.stderr}"
        )
        return done.stdout


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    made = Installed(tmp_path_factory.mktemp("w"), wheel)
    yield made
    made.run("troupe", "stop", "--all")


@pytest.mark.parametrize(
    ("asked", "taken"),
    [({}, "clang++-19"), ({"CC": "gcc", "CXX": "g++"}, "g++"), ({"CC": "gcc"}, "c++")],
)
def test_the_compiler_is_the_release_s_unless_another_is_asked_for(
    asked: dict[str, str], taken: str, tmp_path: Path
) -> None:
    pip_wheel(
        tmp_path, tmp_path / "build", asked, "build.targets=help", "install.components=none"
    )  # nothing is compiled
    (found,) = (tmp_path / "build").glob("CMakeFiles/*/CMakeCXXCompiler.cmake")
    (compiler,) = re.findall(r'^set\(CMAKE_CXX_COMPILER "(.*)"\)$', found.read_text(), re.MULTILINE)
    assert Path(compiler).name == taken


def test_wheel_contains_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    tops = {name.split("/")[0] for name in names}
    assert tops == {"troupe", f"troupe-{wheel.name.split('-')[1]}.dist-info"}
    assert {
        "troupe/bin/troupe-head",
        "troupe/bin/troupe-worker",
        "troupe/py.typed",
        "troupe/cli/__init__.py",
    } <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    sources = {
        f"troupe/{path.relative_to(ROOT / 'bindings/python/troupe')}"
        for path in (ROOT / "bindings/python/troupe").rglob("*.py")
    }
    assert {name for name in names if name.endswith(".py")} == sources
    assert {
        f"troupe/licenses/{each}.txt" for each in ("abseil", "boost", "capnproto", "sqlite")
    } <= names
    built_there = {
        # for the torch that is found: docs/guides/collectives.md
        f"troupe/_process/torch_backend/{path.name}"
        for path in (ROOT / "bindings/python/troupe/_process/torch_backend").iterdir()
        if path.suffix in (".h", ".cc")
    }
    assert {
        name
        for name in names
        if "__pycache__" in name or name.endswith((".h", ".a", ".cc", ".cmake"))
    } == built_there


def test_torch_is_an_extra_and_pinned(installed: Installed) -> None:
    (found,) = importlib.metadata.distributions(path=[str(installed.packages)], name="troupe")
    always = [each for each in found.requires or [] if "extra ==" not in each]
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert sorted(always) == sorted(declared)
    assert not [each for each in always if each.startswith(("torch", "numpy"))]
    assert [
        each.split(";")[0].strip()
        for each in found.requires or []
        if each.startswith("torch") and 'extra == "torch"' in each
    ] == ["torch==2.11.*"]


def test_everything_the_extension_needs_travels_with_it(installed: Installed) -> None:
    subprocess.run(
        [
            sys.executable,
            ROOT / "tests/package/needed.py",
            "--installed",
            installed.packages / "troupe",
        ],
        check=True,
        timeout=COMMAND_TIMEOUT_S,
    )
    mapped = installed.run(
        "python", "-c", "import troupe._native\nprint(open('/proc/self/maps').read())"
    )
    loaded = {
        line.split()[-1] for line in mapped.splitlines() if "libcapnp" in line or "libabsl" in line
    }
    assert loaded and all(path.startswith(str(installed.packages)) for path in loaded)


def test_a_cluster_runs_from_the_wheel(installed: Installed) -> None:
    assert "start" in installed.run("troupe", "--help")
    started = json.loads(
        installed.run("troupe", "start", "--head", "--port", "0", "--num-cpus", "2", "--json")
    )
    program = installed.folder / "ranks.py"
    program.write_text(LAUNCH)
    said = installed.run("python", str(program), env={"TROUPE_ADDRESS": started["address"]})
    assert said.splitlines()[-1] == "[(0, '2'), (1, '2')]"
    executable = Path(f"/proc/{started['pid']}/exe").resolve()
    assert executable == (installed.packages / "troupe/bin/troupe-head").resolve()
    installed.run("troupe", "stop", "--all")
    with contextlib.suppress(
        FileNotFoundError, ProcessLookupError
    ):  # or ended and not yet reaped by init
        assert Path(f"/proc/{started['pid']}/cmdline").read_bytes() == b""
