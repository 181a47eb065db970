"""Every public name of Ray is there, or is named in docs/coming/ray.md with what to use instead.

Method: Ray's namespace as recorded data (`ray_names.txt`), looked up name by name; for paths that
are both a module and a name, processes of their own that import in every order.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import Home
from programs import run_as_ray

from troupe.ray_compat import _missing
from troupe.ray_compat._finder import RayModule, missing
from troupe.ray_compat._names import MODULES

HERE = Path(__file__).parent
RECORDED = dict(
    line.split()
    for line in (HERE / "ray_names.txt").read_text().splitlines()
    if not line.startswith("#")
)
BOTH = sorted(name for name, kind in RECORDED.items() if kind.startswith("module+"))
DOCUMENT = (HERE.parents[1] / "docs" / "coming" / "ray.md").read_text()


def is_there(name: str) -> bool:
    """Return True if a program finds this name of Ray's here."""
    module, _, attribute = name.rpartition(".")
    if name in MODULES:
        return True
    try:
        return module in MODULES and getattr(RayModule(module), attribute) is not None
    except AttributeError:
        return False


@pytest.mark.parametrize(
    "library", sorted({name.split(".")[1] for name in RECORDED if "." in name})
)
def test_every_public_name_is_there_or_named_as_missing(library: str) -> None:
    names = [name for name in RECORDED if name.split(".")[1:2] == [library]]
    lost = [name for name in names if not is_there(name) and not _missing.instead_of(name)]
    assert not lost, f"neither there nor in a row of troupe/ray_compat/_missing.py: {lost}"


def test_nothing_that_is_there_is_called_missing() -> None:
    named = [name for names, _ in _missing.ROWS for name in names]
    assert len(named) == len(set(named))
    assert not [
        name
        for name in named
        if name in MODULES and RECORDED.get(name) != "module" and not name.startswith("ray._")
    ], "a row names a module that is there"
    for name in named:
        if name not in MODULES:
            assert not is_there(name), f"{name} is there"


def test_the_document_has_the_same_table() -> None:
    _, _, rest = DOCUMENT.partition("## What is not there")
    rows = re.findall(r"^\| (`.*`) \| (.*) \|$", rest.partition("\n## ")[0], re.MULTILINE)
    told = {tuple(re.findall(r"`([^`]+)`", names)): instead for names, instead in rows}
    assert told == {names: instead for names, instead in _missing.ROWS}


def test_what_is_missing_says_what_to_use() -> None:
    assert missing("ray.tune.CLIReporter").endswith(
        "use the rows that a sweep shows by itself, or a ray.tune.Callback"
    )


def test_a_path_that_is_module_and_name_is_recorded() -> None:
    assert BOTH == ["ray.util.placement_group"]


ORDERS = [
    "import ray.util.placement_group",
    "from ray.util.placement_group import placement_group",
    "import ray.util.placement_group as also\nassert callable(also)",
    "import importlib; importlib.import_module('ray.util.placement_group')",
    "from ray.util import placement_group\nimport ray.util.placement_group",
    "ray.util.placement_group\nimport ray.util.placement_group",
    "import sys\nimport ray.util.placement_group\ndel "
    "sys.modules['ray.util.placement_group']\nimport ray.util.placement_group",
    "from ray.util.placement_group import *\nimport ray.util.scheduling_strategies",
]


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("imports", ORDERS)
def test_it_is_the_name_whatever_was_imported(
    home: Home, tmp_path: Path, name: str, imports: str
) -> None:
    imports = imports.replace("ray.util.placement_group", name)
    done = run_as_ray(
        home,
        tmp_path / "script.py",
        f"import ray\n{imports}\nimport inspect, sys\nassert inspect.isfunction({name}), {name}\n"
        f"assert sys.modules[{name!r}].PlacementGroup\nprint({name}.__name__)",
    )
    assert done.stdout.split() == [name.rpartition(".")[2]]


def test_a_group_is_made_after_the_module_was_imported(home: Home, tmp_path: Path) -> None:
    done = run_as_ray(
        home,
        tmp_path / "script.py",
        "import ray\nimport ray.util.placement_group\nfrom ray.util.placement_group import "
        "PlacementGroup\n"
        "ray.init(num_cpus=1)\ngroup = ray.util.placement_group([{'CPU': "
        "1}])\nray.get(group.ready())\n"
        "@ray.remote(num_cpus=0)\ndef inside():\n    import ray.util.placement_group\n    return "
        "callable(ray.util.placement_group)\n"
        "print(isinstance(group, PlacementGroup), ray.get(inside.remote()))",
    )
    assert done.stdout.split() == ["True", "True"]
