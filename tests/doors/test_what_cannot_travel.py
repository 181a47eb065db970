"""Values that cannot travel, in a function's closure and in results, and modules that a node lacks:
named, with the path to them and what to do.

Method: launches, tasks and actors of a real cluster, each with one thing that is at fault, deep
inside others; the text is looked at.
"""

from __future__ import annotations

import functools
import io
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from e2e_conftest import Home

import troupe
from troupe import exceptions
from troupe._code import closures
from troupe.launch import distributed

cloudpickle.register_pickle_by_value(sys.modules[__name__])
LARGE_BYTES = 101 << 20


class Config:
    """Something with attributes."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    def method(self) -> int:
        """May be launched."""
        return 1


class Slots:
    """Something with slots."""

    __slots__ = ("kept",)

    def __init__(self, kept: Any) -> None:
        self.kept = kept


class Careful:
    """A value that leaves out its unpicklable part by itself; the fault is in something else."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.other = [threading.Lock()]

    def __getstate__(self) -> dict:
        return {"other": self.other}


def by(value: Any) -> Callable[[], Any]:
    """A function that captures another one that captures `value`."""
    held = value

    def helper() -> Any:
        return held

    def train() -> Any:
        return helper()

    return train


LOCKED = {
    "a closure": (
        lambda: by(threading.Lock()),
        "captures `helper`, and in it helper > held (_thread.lock), which cannot be pickled",
    ),
    "a dict and a list": (
        lambda: by({"a": 1, "b": [1, threading.Lock()]}),
        "helper > held['b'][1] (_thread.lock)",
    ),
    "attributes": (
        lambda: by(Config(inner=Config(lock=threading.Lock()))),
        "helper > held.inner.lock (_thread.lock)",
    ),
    "slots": (lambda: by(Slots((1, threading.Lock()))), "helper > held.kept[1] (_thread.lock)"),
    "its own state": (lambda: by(Careful()), "helper > held.other[0] (_thread.lock)"),
    "a partial": (
        lambda: by(functools.partial(print, end=threading.Lock())),
        "helper > held.keywords['end'] (_thread.lock)",
    ),
    "a method": (
        lambda: by(Config(lock=threading.Lock()).method),
        "helper > held.__self__.lock (_thread.lock)",
    ),
    "a file": (lambda: by([open(os.devnull, "wb")]), "helper > held[0] (_io.BufferedWriter)"),
}


@pytest.mark.parametrize("what", LOCKED)
def test_the_way_to_what_cannot_be_pickled(idle: Home, what: str) -> None:
    """A10, B4."""
    make, text = LOCKED[what]
    with pytest.raises(exceptions.LaunchError) as caught:
        distributed(processes=1, remote=True)(make()).submit()
    assert (
        text in str(caught.value)
        and "make it inside the function" in str(caught.value)
        and isinstance(caught.value, TypeError)
    ), caught.value


def test_the_way_inside_an_argument(idle: Home) -> None:
    with pytest.raises(
        exceptions.LaunchError,
        match=r"argument 1 of the function, and in it argument 1\['x'\] \(_thread.lock\) cannot be pickled",
    ):
        distributed(processes=1, remote=True)(print).submit({"x": threading.Lock()})
    with pytest.raises(
        exceptions.LaunchError,
        match=r"argument `sep` of the function, and in it sep\[0\] \(_thread.lock\) cannot be pickled",
    ):
        distributed(processes=1, remote=True)(print).submit(sep=[threading.Lock()])


def test_the_way_to_what_is_too_large(idle: Home) -> None:
    """A10: variable, way, type, size and what to do, before anything starts."""
    train = by({"small": b"x", "rows": Config(table=bytearray(LARGE_BYTES))})
    with pytest.raises(exceptions.TooLargeError) as caught:
        distributed(processes=1, remote=True)(train).submit()
    assert str(caught.value).startswith(
        "cannot start: the function captures `helper`, and in it helper > held['rows'].table "
        "(bytearray, 101.0 MiB pickled; the limit is 100.0 MiB)\n"
        "  load it inside the function"
    ), caught.value
    halves = by(
        [bytearray(LARGE_BYTES // 2), bytearray(LARGE_BYTES // 2 + 1)]
    )  # neither of them is most of it
    with pytest.raises(
        exceptions.TooLargeError, match=r"in it helper > held \(list, 101.0 MiB pickled"
    ):
        distributed(processes=1, remote=True)(halves).submit()


def test_the_way_in_tasks_and_actors(idle: Home) -> None:
    with pytest.raises(TypeError, match=r"helper > held\[0\] \(_thread.lock\)"):
        troupe.get(troupe.remote(by([threading.Lock()])).remote(), timeout=60)

    class Actor:
        kept = {"lock": threading.Lock()}

    with pytest.raises(
        TypeError, match=r"captures `kept`, and in it kept\['lock'\] \(_thread.lock\)"
    ):
        troupe.get(troupe.remote(Actor).remote().__ray_ready__.remote(), timeout=60)


def test_what_refers_to_itself_ends() -> None:
    loop: list = []
    loop.append(loop)
    assert closures.locate("loop", loop, lambda part, whole: True) == ("loop", loop)
    deep: Any = threading.Lock()
    for _ in range(100):
        deep = [deep]
    way, _ = closures.locate("deep", deep, lambda part, whole: True)
    assert way == "deep" + "[0]" * 12
    assert closures.locate("many", [0] * 2000, lambda part, whole: True)[0] == "many"


RESULTS = {
    "an open file": (
        lambda: open(os.devnull, encoding="utf-8"),
        "_io.TextIOWrapper",
        r"result \(_io.TextIOWrapper\)",
    ),
    "a file to write": (
        lambda: {"log": open(os.devnull, "w", encoding="utf-8")},
        "dict",
        r"result\['log'\] \(_io.TextIOWrapper\)",
    ),
    "a file of bytes": (
        lambda: [1, open(os.devnull, "rb")],
        "list",
        r"result\[1\] \(_io.BufferedReader\)",
    ),
    "a lock": (lambda: Config(lock=threading.Lock()), "Config", r"result.lock \(_thread.lock\)"),
}


@pytest.mark.parametrize("what", RESULTS)
def test_a_result_that_cannot_travel(idle: Home, what: str) -> None:
    make, kind, part = RESULTS[what]
    kind = kind.rpartition(".")[2]
    text = rf"the result of rank 0 \({kind}\) cannot be pickled: .*\n.*of it, {part} stays in the process that made it: return plain values"
    with pytest.raises(TypeError, match=text):
        distributed(processes=1, remote=True)(make).submit().result(60)


def test_contents_of_a_file_may_be_returned(idle: Home) -> None:
    assert (
        distributed(processes=1, remote=True)(lambda: io.StringIO("text"))
        .submit()
        .result(60)[0]
        .getvalue()
        == "text"
    )


class Lacking:
    """An import hook of a node that lacks a package."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        """No such module."""
        if name.partition(".")[0] in ("click", "own_module", "ensurepip"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        (
            "import click",
            r"No module named 'click' on one .*try: runtime_env=\{\"pip\": \[\"click==[\d.]+\"\]\}, for one has no module 'click', "
            r"which is of the package click here; or pip install click==",
        ),
        (
            "import own_module.part",
            r"on one .*try: runtime_env=\{\"pip\": \[...\]\} with the package that has the module 'own_module', which one lacks; or",
        ),
        (
            "import click.nothing",
            r"on one .*try: another name: one has 'click', without a module 'nothing'; click [\d.]+ here has none either",
        ),
        (
            "import threading.Lock",
            r"on one .*try: from threading import Lock: one has 'threading', of which 'Lock' is a name and no module",
        ),
        (
            "import yaml.nodes",
            r"on one .*try: runtime_env=\{\"pip\": \[\"PyYAML==[\d.]+\"\]\}, which has the module 'yaml.nodes' here; what one has of 'yaml' is",
        ),
        (
            "import yaml.nodes.part",
            r"on one .*try: another name: one has 'yaml.nodes', as a single file, which has no modules below it$",
        ),
        ("import xml.nope", r"on one .*try: another name: one has 'xml', without a module 'nope'$"),
        (
            "import ensurepip",
            r"on one .*try: a Python on one that has 'ensurepip': it is of Python's own library",
        ),
    ],
    ids=[
        "installed here",
        "unknown here",
        "unknown below what is installed",
        "a name and no module",
        "only in the package here",
        "below a file",
        "below one of Python's own",
        "of Python's own",
    ],
)
def test_a_module_that_the_node_lacks(idle: Home, statement: str, text: str) -> None:
    """Node and package are named; no package is advised that the node has."""
    is_below = "." in statement

    @distributed(processes=1, remote=True)
    def train() -> None:
        if not is_below or "own_module" in statement:
            sys.modules.pop("click", None)
            sys.meta_path.insert(0, Lacking)  # type: ignore[arg-type]
        if statement == "import yaml.nodes":
            import yaml

            yaml.__path__ = []
            sys.modules.pop("yaml.nodes")
        exec(statement)

    with pytest.raises(ModuleNotFoundError, match=rf"(?s){text}"):
        train.submit().result(60)


def test_a_module_of_the_program_that_the_node_lacks(idle: Home, tmp_path: Path) -> None:
    """A function that is taken along by its name."""
    (tmp_path / "mine.py").write_text("def train(): return 1\n")
    code = """
import sys, troupe
sys.path.insert(0, sys.argv[1])
import mine
sys.path.pop(0)
from troupe.launch import distributed
troupe.init("auto")
distributed(processes=1, remote=True)(mine.train).submit().result(60)
"""
    done = idle.python(f"import sys; sys.argv[1:] = [{str(tmp_path)!r}]\n{code}")
    assert "needs the module 'mine', which cannot be imported on" in done.stderr, done.stderr
    assert '"py_modules" with its folder' in done.stderr


@pytest.mark.parametrize("kind", ["launch", "task", "actor"])
def test_a_package_whose_module_has_another_name(idle: Home, kind: str, tmp_path: Path) -> None:
    """B4: what a process cannot load names the package too, of what is started in each way."""
    start = {
        "launch": "distributed(processes=1, remote=True)(lambda: helper()).submit().result(60)",
        "task": "troupe.get(troupe.remote(lambda: helper()).remote(), timeout=60)",
        "actor": "troupe.get(troupe.remote(type('A', (), {'go': lambda self: "
        "helper()})).remote().go.remote(), timeout=60)",
    }[kind]
    code = f"""
import sys, types, troupe
from troupe.launch import distributed
module = types.ModuleType("cv2.of_here")
exec("def helper(): return 1", module.__dict__)
module.helper.__module__ = "cv2.of_here"
sys.modules["cv2"], sys.modules["cv2.of_here"] = types.ModuleType("cv2"), module
troupe.init("auto")
helper = module.helper
{start}
"""
    done = idle.python(code, cwd=tmp_path)
    assert "of the package opencv-python, which cannot be imported on" in done.stderr, done.stderr


def test_a_part_of_a_package_that_the_node_has(idle: Home) -> None:
    """A function of a module that is only here: the package is not advised, for the node has it."""
    code = """
import json, sys, types, troupe
from troupe.launch import distributed
module = types.ModuleType("json.of_here")
exec("def helper(): return 1", module.__dict__)
module.helper.__module__ = "json.of_here"
sys.modules["json.of_here"] = module
troupe.init("auto")
helper = module.helper
distributed(processes=1, remote=True)(lambda: helper()).submit().result(60)
"""
    done = idle.python(code)
    assert (
        " has 'json', without 'of_here'" in done.stderr
        and "pip" not in done.stderr
        and "install it" not in done.stderr
    ), done.stderr
