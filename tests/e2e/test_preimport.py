"""preimport=: what is forked has loaded the modules, and goes by the variables that they read when they were loaded.

Method: a module made for it, which counts its imports in a file and reads a variable when it is loaded; ranks, actors and
tasks that tell what they have found. Real zygotes; the default one is looked at too, which stays clean.
"""
from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from conftest import Home, eventually

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
    (tmp_path / "threaded_module.py").write_text(SLOW + "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    troupe.init(home.json("start", "--head", "--port", "0", "--num-cpus", "4")["address"])
    eventually(lambda: all(node["zygote_ready"] for node in troupe.state.list_nodes()), what="the zygote")
    return lambda: (tmp_path / "imports").read_text().split() if (tmp_path / "imports").exists() else []


def look() -> tuple[bool, str]:
    """Whether the module is loaded, and what it read."""
    import sys

    loaded = "slow_module" in sys.modules
    import slow_module

    return loaded, slow_module.MODE


def zygotes(home: Home) -> list[str]:
    return [command for command in home.processes().values() if "troupe._zygote" in command]


def test_ranks_are_forked_from_what_has_loaded_it_once(imports, home: Home) -> None:
    launched = distributed(processes=2, remote=True, preimport=["slow_module"])(look)
    assert launched.distributed() == [(True, "none")] * 2
    assert launched.distributed() == [(True, "none")] * 2
    assert len(imports()) == 1, "by the zygote, at the first use"
    assert distributed(processes=1, remote=True)(look).distributed() == [(False, "none")], "the node's own stays clean"
    assert len(zygotes(home)) == 2


def test_actors_and_tasks_too(imports) -> None:
    class Looks:
        """Tells of its process."""

        def look(self) -> tuple[bool, str]:
            return look()

    options = {"num_cpus": 1, "preimport": ["slow_module"]}
    assert troupe.get(troupe.remote(**options)(Looks).remote().look.remote(), timeout=60) == (True, "none")
    assert troupe.get(troupe.remote(**options)(look).remote(), timeout=60) == (True, "none")
    assert len(imports()) == 1


def test_another_value_of_a_variable_that_is_read_at_import_is_another_zygote(imports, home: Home) -> None:
    def of(mode: str) -> list:
        environment = {"env_vars": {"HF_MODE": mode, "OTHER": mode}}
        return distributed(processes=1, remote=True, preimport=["slow_module"], runtime_env=environment)(look).distributed()

    assert of("fast") == [(True, "fast")] and of("slow") == [(True, "slow")] and of("fast") == [(True, "fast")]
    assert len(imports()) == 2
    for mode in "abcd":
        assert of(mode) == [(True, mode)]
    eventually(lambda: len(zygotes(home)) <= 5, what="the end of the least recently used")
    assert of("slow") == [(True, "slow")] and len(imports()) == 7, "it had ended"


@pytest.mark.parametrize("module", ["threaded_module", "module_that_is_nowhere"])
def test_what_cannot_be_forked_from_is_executed(imports, home: Home, module: str) -> None:
    launched = distributed(processes=1, remote=True, preimport=[module])(look)
    assert launched.distributed() == [(False, "none")] and launched.distributed() == [(False, "none")]
    assert len([1 for each in Path(home.path).rglob("zygote.log") if "Traceback" in each.read_text()]) <= 1


def test_a_variable_that_the_interpreter_reads_is_obeyed_at_every_use(imports, home: Home) -> None:
    """Executed at first, forked later: what is seen is the same."""
    def hashed() -> int:
        return hash("troupe")

    launched = distributed(processes=1, remote=True, runtime_env={"env_vars": {"PYTHONHASHSEED": "7"}})(hashed)
    first = launched.distributed()
    for _ in range(3):
        assert launched.distributed() == first
    eventually(lambda: len(zygotes(home)) == 2, what="a zygote for it")
