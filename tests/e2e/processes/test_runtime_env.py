"""runtime_env: variables, directories and requirements where actors, tasks and ranks run, on this
    host and on others.

Method: nodes with --force-tcp are hosts of their own, so that directories have to travel; what is
installed is a wheel made here, so that nothing is fetched from anywhere.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import TIMEOUT_S, Home

import troupe
from troupe import exceptions
from troupe.launch import current, distributed, ray_launch


@troupe.remote(num_cpus=1)
class Look:
    def cwd(self) -> str:
        return os.getcwd()

    def read(self, path: str) -> str:
        with open(path) as file:
            return file.read()

    def variable(self, name: str) -> str | None:
        return os.environ.get(name)

    def value_of(self, module: str) -> object:
        return __import__(module).VALUE

    def listing(self) -> list[str]:
        return sorted(
            os.path.relpath(os.path.join(folder, name))
            for folder, _, names in os.walk(".")
            for name in names
        )

    def child_variable(self, name: str) -> str | None:
        return troupe.get(Look.options(num_cpus=0).remote().variable.remote(name))


@troupe.remote
def variable(name: str) -> str | None:
    return os.environ.get(name)


@troupe.remote
def value_of(module: str) -> object:
    return __import__(module).VALUE


def get(ref: object) -> object:
    return troupe.get(ref, timeout=TIMEOUT_S)


@pytest.fixture
def two_hosts(home: Home) -> Iterator[str]:
    """A cluster whose only worker is on another host than this process; its address."""
    started = home.json("start", "--head", "--no-worker", "--port", "0")
    home.run(
        "start",
        "--address",
        started["address"],
        "--token-file",
        home.token(),
        "--num-cpus",
        "4",
        "--force-tcp",
    )
    yield started["address"]
    troupe.shutdown()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with a module, data, and things that need not travel."""
    folder = tmp_path / "project"
    (folder / "data" / "deep").mkdir(parents=True)
    (folder / "large").mkdir()
    (folder / "my_module.py").write_text("VALUE = 'of the project'")
    (folder / "data" / "deep" / "text.txt").write_text("deep")
    (folder / "large" / "weights.bin").write_bytes(b"x" * 1000)
    (folder / "notes.log").write_text("no")
    script = folder / "run.sh"
    script.write_text("#!/bin/sh\necho ran\n")
    script.chmod(0o755)
    return folder


def wheel(folder: Path, name: str = "tiny_thing", version: str = "1.0") -> str:
    """A wheel with one module; its path."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr(f"{name}.py", f"VALUE = {version!r}\n")
        made.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        made.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        made.writestr(
            f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n"
        )
    return str(path)


def test_what_init_is_given_reaches_all_and_options_go_over_it(home: Home) -> None:
    with troupe.init(num_cpus=4, runtime_env={"env_vars": {"WORD": "of init", "OTHER": "x"}}):
        actor = Look.remote()
        assert get(actor.variable.remote("WORD")) == "of init"
        assert get(actor.child_variable.remote("WORD")) == "of init"
        assert get(variable.remote("WORD")) == "of init"
        own = Look.options(runtime_env={"env_vars": {"WORD": "own"}}).remote()
        assert (
            get(own.variable.remote("WORD")) == "own" and get(own.variable.remote("OTHER")) == "x"
        )
        assert get(own.child_variable.remote("WORD")) == "own"
        assert distributed(processes=1, remote=True)(lambda: os.environ["WORD"]).distributed() == [
            "of init"
        ]


def test_directories_of_this_host_are_used_where_they_are(home: Home, project: Path) -> None:
    with troupe.init(num_cpus=4, runtime_env={"working_dir": str(project)}):
        actor = Look.remote()
        assert (
            get(actor.cwd.remote()) == str(project)
            and get(actor.value_of.remote("my_module")) == "of the project"
        )
        assert get(value_of.remote("my_module")) == "of the project"
        package = project.parent / "extra" / "a_package"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("VALUE = 'of the package'")
        more = Look.options(runtime_env={"py_modules": [str(package)]}).remote()
        assert get(more.value_of.remote("a_package")) == "of the package" and get(
            more.cwd.remote()
        ) == str(project)


def test_directories_travel_to_other_hosts(home: Home, two_hosts: str, project: Path) -> None:
    package = project.parent / "extra" / "a_package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from a_package.inner import VALUE")
    (package / "inner.py").write_text("VALUE = 'of the package'")
    env = {
        "working_dir": str(project),
        "py_modules": [str(package)],
        "excludes": ["large", "*.log"],
    }
    troupe.init(two_hosts, token_file=home.token("--role", "client"), runtime_env=env)
    actor = Look.remote()
    there = get(actor.cwd.remote())
    assert there != str(project) and there.startswith(str(home.path / "cache" / "tree-"))
    assert get(actor.listing.remote()) == ["data/deep/text.txt", "my_module.py", "run.sh"]
    assert get(actor.read.remote("data/deep/text.txt")) == "deep"
    assert os.access(Path(there, "run.sh"), os.X_OK)
    assert get(actor.value_of.remote("my_module")) == "of the project"
    assert get(actor.value_of.remote("a_package")) == "of the package"
    (project / "my_module.py").write_text("VALUE = 'changed later'")
    assert get(value_of.remote("my_module")) == "of the project"  # the package of this session

    @ray_launch(processes=2, remote=True)
    def driver() -> list:
        return current().run(lambda: (os.path.exists("run.sh"), __import__("a_package").VALUE))

    assert driver.distributed()[0] == [(True, "of the package")] * 2


def test_requirements_are_installed_once_per_host(home: Home, tmp_path: Path) -> None:
    path = wheel(tmp_path)
    with troupe.init(num_cpus=4):
        env = {"pip": [path]}
        assert get(Look.options(runtime_env=env).remote().value_of.remote("tiny_thing")) == "1.0"
        (installed,) = [each for each in (home.path / "cache").glob("pip-*") if each.is_dir()]
        (module,) = installed.rglob("tiny_thing.py")
        before = module.stat().st_mtime_ns
        assert get(value_of.options(runtime_env=env).remote("tiny_thing")) == "1.0"
        assert module.stat().st_mtime_ns == before
        with pytest.raises(ModuleNotFoundError):
            get(Look.remote().value_of.remote("tiny_thing"))
        file = tmp_path / "requirements.txt"
        file.write_text(f"# what is needed\n{wheel(tmp_path, version='2.0')}\n")
        newer = Look.options(runtime_env={"pip": str(file)}).remote()
        assert get(newer.value_of.remote("tiny_thing")) == "2.0"
        as_uv = Look.options(
            runtime_env={"uv": {"packages": [wheel(tmp_path, version="3.0")]}}
        ).remote()
        assert get(as_uv.value_of.remote("tiny_thing")) == "3.0"


def test_requirements_that_cannot_be_installed(home: Home, tmp_path: Path) -> None:
    missing = str(tmp_path / "no_such-1.0-py3-none-any.whl")
    with troupe.init(num_cpus=2):
        actor = Look.options(runtime_env={"pip": [missing]}).remote()
        with pytest.raises(exceptions.ActorDiedError) as caught:
            get(actor.cwd.remote())
        assert isinstance(caught.value, exceptions.RuntimeEnvSetupError), caught.value
        assert f"pip install {missing} ended with 1" in str(caught.value) and "no_such" in str(
            caught.value
        )
        with pytest.raises(exceptions.RuntimeEnvSetupError, match="pip install"):
            get(variable.options(runtime_env={"pip": [missing]}, max_retries=0).remote("HOME"))
        with pytest.raises(exceptions.LaunchError, match="pip install"):
            distributed(processes=2, remote=True, runtime_env={"pip": [missing]})(
                os.getpid
            ).distributed()


def test_requirements_that_take_too_long(home: Home, tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "setup.py").write_text(
        "import select, setuptools\nselect.select([], [], [], 60)\nsetuptools.setup(name='slow')\n"
    )
    env = {"pip": [str(slow)], "config": {"setup_timeout_seconds": 0.5, "eager_install": True}}
    with (
        troupe.init(num_cpus=2),
        pytest.raises(exceptions.RuntimeEnvSetupError, match="was not done within 0.5 s"),
    ):
        get(variable.options(runtime_env=env, max_retries=0).remote("HOME"))


def fails() -> None:
    raise KeyError("no such setting")


def test_a_hook_is_called_in_each_process(home: Home, project: Path) -> None:
    (project / "my_module.py").write_text(
        "VALUE = None\ndef hook():\n    global VALUE\n    VALUE = 'set by the hook'\n"
    )
    marks = str(project / "marks")

    def mark() -> None:
        with open(marks, "a") as file:
            file.write(f"{os.getpid()}\n")

    env = {"working_dir": str(project), "worker_process_setup_hook": "my_module.hook"}
    with troupe.init(num_cpus=4, runtime_env=env):
        assert get(Look.remote().value_of.remote("my_module")) == "set by the hook"
        assert get(value_of.remote("my_module")) == "set by the hook"
        assert distributed(processes=1, remote=True)(
            lambda: __import__("my_module").VALUE
        ).distributed() == ["set by the hook"]
        own = Look.options(runtime_env={"worker_process_setup_hook": mark}).remote()
        pids = {str(get(own.__ray_call__.remote(lambda self: os.getpid())))}
        assert set(Path(marks).read_text().split()) == pids
        for wrong, words in (
            (fails, "raised KeyError: 'no such setting'"),
            ("my_module.nothing", "my_module.nothing raised AttributeError"),
        ):
            with pytest.raises(exceptions.RuntimeEnvSetupError, match=words):
                get(
                    variable.options(
                        runtime_env={"worker_process_setup_hook": wrong}, max_retries=0
                    ).remote("HOME")
                )
        data = b"x" * (100 << 10)
        with pytest.raises(
            exceptions.TooLargeError, match="worker_process_setup_hook.*captures `data`"
        ):
            Look.options(runtime_env={"worker_process_setup_hook": lambda: len(data)}).remote()


def test_a_directory_over_the_limit_names_its_largest_file(
    home: Home, two_hosts: str, project: Path
) -> None:
    with open(project / "large" / "weights.bin", "wb") as file:
        file.truncate(300 << 20)
    troupe.init(two_hosts, token_file=home.token("--role", "client"))
    with pytest.raises(
        exceptions.TooLargeError, match=r"over 256 MiB.*large/weights.bin \(300.0 MiB\)"
    ):
        Look.options(runtime_env={"working_dir": str(project)}).remote()


@pytest.mark.parametrize(
    ("env", "error", "words"),
    [
        ({"conda": "x"}, ValueError, "no key 'conda'; supported: config, env_vars"),
        ({"env_vars": {"A": 1}}, TypeError, "'A'.*must be a text"),
        ({"working_dir": "/nowhere/at/all"}, ValueError, "is no directory"),
        ({"py_modules": "x"}, TypeError, "must be a list"),
        ({"py_modules": [3]}, TypeError, "must be a path"),
        ({"pip": []}, TypeError, "list of requirements"),
        ({"pip": "nowhere.txt"}, ValueError, "nowhere.txt cannot be read"),
        ({"pip": ["--target=x"]}, ValueError, "no option --target"),
        ({"pip": {"packages": ["a"], "colour": 1}}, ValueError, "no 'colour'"),
        (
            {"uv": {"packages": ["a"], "pip_version": 1}},
            ValueError,
            r"runtime_env\['uv'\].*no 'pip_version'",
        ),
        ({"uv": ["a"], "pip": ["a"]}, ValueError, "give one of them"),
        ({"config": {"setup_timeout": 1}}, ValueError, "setup_timeout_seconds"),
        ({"config": {"setup_timeout_seconds": 0}}, ValueError, "above 0, or -1"),
        ({"worker_process_setup_hook": "hook"}, TypeError, "package.module.function"),
        ({"worker_process_setup_hook": 3}, TypeError, "must be a function"),
        ({"excludes": [1]}, TypeError, "patterns"),
        (["env_vars"], TypeError, "must be a dict"),
    ],
)
def test_what_is_wrong_is_said_before_anything_starts(
    home: Home, env: object, error: type, words: str
) -> None:
    with pytest.raises(error, match=words):
        troupe.init(num_cpus=1, runtime_env=env)
    with pytest.raises(error, match=words):
        distributed(processes=1, runtime_env=env)(os.getpid)
    assert not home.processes()


def archive(path: Path, files: dict[str, str]) -> Path:
    """A zip as other tools make it: with entries for folders, without modes."""
    with zipfile.ZipFile(path, "w") as opened:
        for folder in sorted({os.path.dirname(name) + "/" for name in files if "/" in name}):
            opened.writestr(zipfile.ZipInfo(folder), "")
        for name, text in files.items():
            opened.writestr(zipfile.ZipInfo(name), text)
    return path


@pytest.mark.parametrize("place", ["here", "away"])
def test_archives_and_single_modules_are_directories_too(
    place: str, request: pytest.FixtureRequest, home: Home, tmp_path: Path
) -> None:
    work = archive(
        tmp_path / "work.zip", {"main_module.py": "VALUE = 'zip'", "data/text.txt": "deep"}
    )
    wheel = archive(
        tmp_path / "of_a_wheel-1.0-py3-none-any.whl",
        {"of_a_wheel/__init__.py": "VALUE = 'wheel'", "of_a_wheel-1.0.dist-info/METADATA": ""},
    )
    single = tmp_path / "beside" / "single_module.py"
    single.parent.mkdir()
    single.write_text("VALUE = 'single'")
    (single.parent / "not_meant.py").write_text("VALUE = 'x'")
    if place == "away":
        troupe.init(request.getfixturevalue("two_hosts"))
    else:
        troupe.init(num_cpus=2)
    look = Look.options(
        runtime_env={"working_dir": str(work), "py_modules": [str(wheel), str(single)]}
    ).remote()
    assert get(look.read.remote("data/text.txt")) == "deep"
    assert [
        get(look.value_of.remote(name)) for name in ("main_module", "of_a_wheel", "single_module")
    ] == ["zip", "wheel", "single"]
    with pytest.raises(ModuleNotFoundError):
        get(look.value_of.remote("not_meant"))
    work.write_text("no archive")
    with pytest.raises(ValueError, match="no zip archive"):
        Look.options(runtime_env={"working_dir": str(work)}).remote()
