"""preimport=: what is forked has loaded the modules, and goes by the variables that they read when
they were loaded.

Method: a module made for it, which counts its imports in a file and reads a variable when it is
loaded; ranks, actors and tasks that tell what they have found. Real zygotes; the default one is
looked at too, which stays clean.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
from conftest import Home, eventually
from test_runtime_env import wheel

import troupe
from troupe.launch import distributed

SLOW = """
import os
MODE = os.environ.get("HF_MODE", "none")
with open(os.path.join(os.path.dirname(__file__), "imports"), "a") as file:
    file.write(f"{os.getpid()} ")
"""


@pytest.fixture
def imports(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A node, a module `slow_module` on the caller's import path, and how often it was imported."""
    (tmp_path / "slow_module.py").write_text(SLOW)
    (tmp_path / "threaded_module.py").write_text(
        SLOW
        + "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    troupe.init(home.json("start", "--head", "--port", "0", "--num-cpus", "4")["address"])
    eventually(
        lambda: all(node["zygote_ready"] for node in troupe.state.list_nodes()), what="the zygote"
    )
    return lambda: (
        (tmp_path / "imports").read_text().split() if (tmp_path / "imports").exists() else []
    )


def look() -> tuple[bool, str]:
    """Return True if the module is loaded, and the value it read."""
    import sys

    loaded = "slow_module" in sys.modules
    import slow_module

    return loaded, slow_module.MODE


def zygotes(home: Home) -> list[str]:
    return [command for command in home.processes().values() if "troupe._process.zygote" in command]


def test_ranks_are_forked_from_what_has_loaded_it_once(imports, home: Home) -> None:
    launched = distributed(processes=2, remote=True, preimport=["slow_module"])(look)
    assert launched.distributed() == [(True, "none")] * 2
    assert launched.distributed() == [(True, "none")] * 2
    assert len(imports()) == 1, "by the zygote, at the first use"
    assert distributed(processes=1, remote=True)(look).distributed() == [(False, "none")], (
        "the node's own stays clean"
    )
    eventually(
        lambda: len(zygotes(home)) == 2,
        what="zygotes: 2, beside processes that were forked just now",
    )


def test_actors_and_tasks_too(imports) -> None:
    class Looks:
        """Tells of its process."""

        def look(self) -> tuple[bool, str]:
            return look()

    options = {"num_cpus": 1, "preimport": ["slow_module"]}
    assert troupe.get(troupe.remote(**options)(Looks).remote().look.remote(), timeout=60) == (
        True,
        "none",
    )
    assert troupe.get(troupe.remote(**options)(look).remote(), timeout=60) == (True, "none")
    assert len(imports()) == 1


def test_another_value_of_a_variable_that_is_read_at_import_is_another_zygote(
    imports, home: Home
) -> None:
    def of(mode: str) -> list:
        environment = {"env_vars": {"HF_MODE": mode, "OTHER": mode}}
        return distributed(
            processes=1, remote=True, preimport=["slow_module"], runtime_env=environment
        )(look).distributed()

    assert (
        of("fast") == [(True, "fast")]
        and of("slow") == [(True, "slow")]
        and of("fast") == [(True, "fast")]
    )
    assert len(imports()) == 2
    for mode in "abcd":
        assert of(mode) == [(True, mode)]
    eventually(lambda: len(zygotes(home)) <= 5, what="the end of the least recently used")
    assert of("slow") == [(True, "slow")] and len(imports()) == 7, "it had ended"


@pytest.mark.parametrize("module", ["threaded_module", "module_that_is_nowhere"])
def test_what_cannot_be_forked_from_is_executed(imports, home: Home, module: str) -> None:
    launched = distributed(processes=1, remote=True, preimport=[module])(look)
    assert launched.distributed() == [(False, "none")] and launched.distributed() == [
        (False, "none")
    ]
    assert (
        len([1 for each in Path(home.path).rglob("zygote.log") if "Traceback" in each.read_text()])
        <= 1
    )


def test_a_variable_that_the_interpreter_reads_is_obeyed_at_every_use(imports, home: Home) -> None:
    """Executed at first, forked later: what is seen is the same."""

    def hashed() -> int:
        return hash("troupe")

    launched = distributed(
        processes=1, remote=True, runtime_env={"env_vars": {"PYTHONHASHSEED": "7"}}
    )(hashed)
    first = launched.distributed()
    for _ in range(3):
        assert launched.distributed() == first
    eventually(lambda: len(zygotes(home)) == 2, what="a zygote for it")


def test_the_launch_says_what_its_ranks_were_started_from(
    imports, capsys: pytest.CaptureFixture
) -> None:
    def says(**options: object) -> str:
        """Return the text behind the time until it was ready, and in its status."""
        launched = distributed(processes=2, remote=True, **options)(os.getpid)
        capsys.readouterr()
        launched.distributed()
        line = re.search(r"2 ranks on 1 node · ready in [0-9.]+ s(.*)", capsys.readouterr().err)
        handle = launched.submit()
        handle.result(timeout=60)
        return f"{line[1]} / {handle.status()['started_from']}"

    assert re.fullmatch(
        " · forked from a new zygote with slow_module, [0-9.]+ s of imports / forked from a zygote "
        "with slow_module",
        says(preimport=["slow_module"]),
    )
    assert says() == " / ", "the node's own zygote is the usual"
    variables = {"env_vars": {"PYTHONHASHSEED": "3", "OTHER": "x"}}
    assert (
        says(runtime_env=variables)
        == " · in fresh interpreters for PYTHONHASHSEED / in fresh interpreters for PYTHONHASHSEED"
    )
    said = (
        "in fresh interpreters: no zygote with module_that_is_nowhere: ModuleNotFoundError: No "
        "module named 'module_that_is_nowhere'"
    )
    assert says(preimport=["module_that_is_nowhere"]) == f" · {said} / {said}"


AHEAD = """
import json, os, sys, troupe
from troupe.launch import distributed

def look():
    import sys
    loaded = "mailbox" in sys.modules
    import mailbox
    return loaded, os.path.dirname(mailbox.__file__)

troupe.init({init})
def state():
    return troupe.state.list_nodes()[0]["preimport"]

import time
until = time.monotonic() + 60
while not any(each.startswith("mailbox: ready") for each in state()) and time.monotonic() < until:
    time.sleep(0.02)  # lint-ok: polling the node, up to a deadline
found = []
for preimport in ([], ["mailbox"]):
    handle = distributed(processes=1, remote=True, preimport=preimport, quiet=True)(look).submit()
    found.append([handle.result(timeout=60)[0], handle.status()["started_from"]])
print(json.dumps([state(), *found]))
"""
LIBRARY = os.path.dirname(os.__file__)


def looked(home: Home, folder: Path, init: str) -> list:
    done = home.python(AHEAD.replace("{init}", init), cwd=folder, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_node_makes_zygotes_ahead(home: Home, tmp_path: Path) -> None:
    """The module is one of the interpreter's own: programs that find nothing else by that name fork
    from it."""
    address = home.json(
        "start",
        "--head",
        "--port",
        "0",
        "--num-cpus",
        "4",
        "--preimport",
        "mailbox,wave",
        "--preimport",
        "mailbox",
        "--preimport",
        "module_that_is_nowhere",
    )["address"]
    (tmp_path / "elsewhere").mkdir()
    said, clean, forked = looked(home, tmp_path / "elsewhere", repr(address))
    assert clean == [[False, LIBRARY], ""] and forked == [
        [True, LIBRARY],
        "forked from a zygote with mailbox",
    ]
    with troupe.init(address):
        said = eventually(
            lambda: [
                each
                for each in troupe.state.list_nodes()[0]["preimport"]
                if "nowhere" in each and "made" not in each
            ],
            what="the word of it",
        )
    assert said == [
        "module_that_is_nowhere: no zygote with it: ModuleNotFoundError: No module named "
        "'module_that_is_nowhere'"
    ]
    assert said[0] in home.run("status", "--address", address).stdout
    eventually(
        lambda: "mailbox, wave: ready, " in home.run("status", "--address", address).stdout,
        what="the zygote with both",
    )
    assert any(
        "module_that_is_nowhere" in each.read_text() for each in home.path.rglob("worker.log")
    )
    project = tmp_path / "project"
    project.mkdir()
    (project / "mailbox.py").write_text("MINE = True\n")
    _, clean, forked = looked(home, project, repr(address))
    assert clean == [[False, str(project)], ""], "the program's own"
    assert forked[0] == [True, str(project)] and forked[1].startswith(
        "forked from a new zygote with mailbox, "
    )


def test_an_embedded_node_too(home: Home, tmp_path: Path) -> None:
    said, clean, forked = looked(home, tmp_path, "num_cpus=2, preimport=['mailbox']")
    assert clean == [[False, LIBRARY], ""] and forked == [
        [True, LIBRARY],
        "forked from a zygote with mailbox",
    ]
    assert len(said) == 1 and said[0].startswith("mailbox: ready, ")


def test_options_of_a_node_that_are_wrong(home: Home) -> None:
    for wrong in ("a b", "a,", ""):
        done = home.run("start", "--head", "--port", "0", "--preimport", wrong, ok=False)
        assert done.returncode == 2 and "--preimport: " in done.stderr
    with pytest.raises(TypeError, match="preimport must be a list"):
        troupe.init(num_cpus=1, preimport="mailbox")
    with pytest.raises(ValueError, match="preimport describe a node"):
        troupe.init("127.0.0.1:1", preimport=["mailbox"])


@pytest.mark.parametrize(
    "kind", ["pip", pytest.param("py_modules", marks=pytest.mark.long), "working_dir"]
)
def test_an_environment_of_its_own_shares_no_zygote(imports, tmp_path: Path, kind: str) -> None:
    """The module is in the program's folder and, with other values, in a path that runtime_env
    adds."""
    (tmp_path / "tiny_thing.py").write_text("VALUE = 'of the program'\n")

    def of(version: str) -> dict:
        if kind == "pip":
            return {"pip": [wheel(tmp_path, version=version)]}
        folder = tmp_path / f"project-{version}"
        folder.mkdir(exist_ok=True)
        (folder / "tiny_thing.py").write_text(f"VALUE = {version!r}\n")
        return {kind: [str(folder / "tiny_thing.py")] if kind == "py_modules" else str(folder)}

    def value() -> tuple[bool, str]:
        import sys

        loaded = "tiny_thing" in sys.modules
        import tiny_thing

        return loaded, tiny_thing.VALUE

    def looked(runtime_env: dict) -> tuple[str, str]:
        handle = distributed(
            processes=1, remote=True, preimport=["tiny_thing"], runtime_env=runtime_env, quiet=True
        )(value).submit()
        ((loaded, found),) = handle.result(timeout=300)
        started = handle.status()["started_from"]
        assert loaded == started.startswith("forked from a "), started
        return found, started

    environments = {"of the program": {}, "1.0": of("1.0"), "2.0": of("2.0")}
    for _ in range(2):
        for expected, environment in environments.items():
            assert looked(environment)[0] == expected
    for expected, environment in environments.items():
        of_it = " of its runtime_env" if environment else ""

        def forked() -> bool:
            found, started = looked(environment)
            assert found == expected
            return started == f"forked from a zygote with tiny_thing{of_it}"

        eventually(forked, what=f"the zygote of {expected}")
