"""Hints for frequent mistakes in launches: shown with the error, or before there is one."""

from __future__ import annotations

import dis
import inspect
import os
import re
import sys
import types
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from troupe._cluster import resources, selectors, workers

_NO_MODULE = re.compile(
    r"(?:No module named|needs the module) '([\w.]+)'(; '[\w.]+' is not a package)?"
)
_OF_MODULES = ("builtins.AttributeError", "builtins.ImportError", "builtins.ModuleNotFoundError")
_SAID = tuple(each.partition(".")[2] + ":" for each in _OF_MODULES)


def check_function(function: Any, asked: str, of_a_method: str) -> None:
    """Raises TypeError for what cannot be run by ranks as it is: methods of classes, coroutines,
    generators. `asked`: by what the ranks were asked for; `of_a_method`: how it is for a method,
    whose object stands for `{}`."""
    name = getattr(function, "__name__", "function")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(
            f"{asked}: {name} is an async def, and a rank runs a plain function\n  call "
            "asyncio.run(...) inside one"
        )
    if inspect.isgeneratorfunction(function):
        raise TypeError(
            f"{asked}: {name} yields, and a rank's result is what its function returns\n  return a "
            "list"
        )
    if isinstance(function, types.FunctionType):
        owner = function.__qualname__.rpartition(".")[0]
        first = next(iter(inspect.signature(function, follow_wrapped=False).parameters), "")
        if owner and not owner.endswith("<locals>") and first in ("self", "cls"):
            raise TypeError(
                f"{asked}: {function.__qualname__} is a method, and ranks are given a function\n  "
                "define a function that "
                "takes what it needs, or launch a method of an object: "
                f"{of_a_method.format(f'object.{name}')}"
            )
    if isinstance(function, (staticmethod, classmethod)):
        raise TypeError(
            f"{asked} takes a function: say @{type(function).__name__} above it, not below"
        )


def imports_ray(function: Any) -> bool:
    """Return True if a function's own code imports Ray, or uses the module."""
    code = getattr(function, "__code__", None)
    if code is None:
        return False
    names = getattr(function, "__globals__", {})
    for each in _codes(code):
        for step in dis.get_instructions(each):
            if step.opname == "IMPORT_NAME" and str(step.argval).partition(".")[0] == "ray":
                return True
            if (
                step.opname == "LOAD_GLOBAL"
                and getattr(names.get(step.argval), "__name__", "") == "ray"
                and isinstance(names[step.argval], types.ModuleType)
            ):
                return True
    return False


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


_NO_MPI = "doesn't have MPI built in"  # torch's words
RAY = (
    'api="troupe" in @ray_launch makes `import ray` mean Troupe there, with the launch\'s nodes '
    "as its cluster"
)


def gpus_of(nodes: Iterable[dict[str, Any]]) -> dict[str, int]:
    """How many GPUs these nodes have, by type; "": without a label that says it."""
    found: Counter[str] = Counter()
    for node in nodes:
        if count := int(resources.from_wire(node["resources"]).get("GPU", 0)):
            found[
                next(
                    (
                        label["value"]
                        for label in node["labels"]
                        if label["key"] == selectors.GPU_TYPE
                    ),
                    "",
                )
            ] += count
    return dict(sorted(found.items()))


def of_gpus(session: Any, *, without: str = "processes=") -> str:
    """Return a sentence on the GPUs of a cluster's nodes; `without`: the option that asks for ranks
    without any."""
    found = gpus_of(workers.node_infos(session))
    if not found:
        return f"no node of the cluster has a GPU: {without} is for ranks without"
    there = ", ".join(f"{count} x {kind or 'without a gpu_type'}" for kind, count in found.items())
    return f"GPUs of the cluster: {there}"


def of_failure(info: dict[str, Any], failure: dict[str, Any]) -> str:
    """Return a hint where a rank's own error says too little; "" if there is none."""
    from troupe._code import environment, failures, shadows, travelled
    from troupe.launch import _device_lines, _interface_words

    words = failures.words_of_program(failure)
    if _device_lines.is_of_device(words) and not any(
        each["name"] == "GPU" for each in info["per_rank"]
    ):
        return _of_missing_gpu(failure, words)
    remedy = _interface_words.remedy(info, failure)
    if remedy:
        return remedy
    if _NO_MPI in (words or failure["log_tail"]):
        return (
            "init_process_group() without a backend, which takes nccl where there are GPUs and "
            "gloo elsewhere, and finds the others by the "
            "variables that are set; the mpi backend needs a torch that was built with MPI"
        )
    if (
        failure["exception_type"] == "builtins.ModuleNotFoundError"
        and "No module named 'ray'" in words
        and info["mode"] == "driver"
    ):
        return RAY
    told = _of_modules(failure)
    if told:
        return shadows.blamed(
            [*environment.import_path(), *shadows.folders_in(told)], told
        ) or _of_missing_module(failure, words or told, travelled.door(info))
    return ""


def _of_modules(failure: dict[str, Any]) -> str:
    """The words of an error of an import, or of a name that a module lacks; of a program of its own
    those it wrote last."""
    if failure["exception_type"] in _OF_MODULES:
        found: str = failure["traceback"] + failure["cause"]
        return found
    last = failure["log_tail"].rstrip().rpartition("\n")[2]
    return failure["log_tail"] if not failure["exception_type"] and last.startswith(_SAID) else ""


_NO_RUNTIME_ENV = ("azure",)
"""Front doors whose jobs have no runtime_env: packages come by the command itself, or are on the
nodes."""


def _of_missing_module(failure: dict[str, Any], words: str, door: str) -> str:
    """Return what to do about a module that a node lacks; "" where the error names none.

    `door`: the front door that the launch came by.

    Python names the first module of a path that is missing: of `a.b.c` the parents of a missing
    `a.b` are there.
    """
    found = _NO_MODULE.search(words)
    if found is None:
        return ""
    import importlib.metadata

    module, node = found[1], failure["node_name"] or failure["host"] or "the node"
    root, _, below = module.partition(".")
    packages = importlib.metadata.packages_distributions().get(root, [])
    if below:
        return _of_missing_submodule(module, node, packages, door, is_below_a_file=bool(found[2]))
    if root in sys.stdlib_module_names:
        return (
            f"a Python on {node} that has {root!r}: it is of Python's own library, and no "
            "package has it"
        )
    if packages:
        requirement = f"{packages[0]}=={importlib.metadata.version(packages[0])}"
        if door in _NO_RUNTIME_ENV:
            return (
                f"pip install {requirement} at the beginning of the command, or on {node}, which "
                f"has no module {root!r}; "
                f"it is of the package {packages[0]} here"
            )
        return (
            f'runtime_env={{"pip": ["{requirement}"]}}, for {node} has no module {root!r}, which '
            f"is of the package {packages[0]} here; "
            f"or pip install {requirement} there"
        )
    if door in _NO_RUNTIME_ENV:
        return (
            f"pip install at the beginning of the command, or on {node}, with the package that has "
            f"the module {root!r}, which {node} lacks; or its folder in "
            "code, where it is a part of the program"
        )
    return (
        f'runtime_env={{"pip": [...]}} with the package that has the module {root!r}, which {node} '
        'lacks; or "py_modules" with its '
        "folder, where it is a part of the program"
    )


def _of_missing_submodule(
    module: str, node: str, packages: list[str], door: str, *, is_below_a_file: bool
) -> str:
    """Return what to do about a module whose parent the node has.

    `packages`: those that have the module's root here.
    """
    import importlib.metadata

    parent, _, name = module.rpartition(".")
    named = getattr(sys.modules.get(parent), "__dict__", {})
    if name in named and not isinstance(
        named[name], types.ModuleType
    ):  # a module that was loaded is a name of its parent too
        return (
            f"from {parent} import {name}: {node} has {parent!r}, of which {name!r} is a name "
            "and no module"
        )
    path = module.replace(".", "/")
    for package in packages:
        files = {str(each) for each in importlib.metadata.files(package) or ()}
        if not is_below_a_file and files & {f"{path}.py", f"{path}/__init__.py"}:
            requirement = f"{package}=={importlib.metadata.version(package)}"
            remedy = (
                f"pip install {requirement} at the beginning of the command"
                if door in _NO_RUNTIME_ENV
                else f'runtime_env={{"pip": ["{requirement}"]}}'
            )
            return (
                f"{remedy}, which has the module {module!r} here; what {node} has of {parent!r} "
                "is without it"
            )
    what = (
        "as a single file, which has no modules below it"
        if is_below_a_file
        else f"without a module {name!r}"
    )
    here = (
        f"; {' and '.join(f'{each} {importlib.metadata.version(each)}' for each in packages)} here "
        "has none either"
        if packages and not is_below_a_file
        else ""
    )
    return f"another name: {node} has {parent!r}, {what}{here}"


def _of_missing_gpu(failure: dict[str, Any], words: str) -> str:
    from troupe.launch import _device_lines

    line = _device_lines.line_of(failure["traceback"])
    what = (
        f"{line}\n    needs a GPU, and these ranks have none: "
        if line
        else "these ranks have no GPU: "
    )
    instead = (
        "init_process_group() without a backend takes gloo where there are none"
        if "NCCL" in words
        else (
            'torch.device("cuda" if torch.cuda.is_available() else "cpu") takes what there is, '
            "DDP without device_ids= too"
        )
    )
    without = (
        f", without TROUPE_CPU_RANKS={asked},"
        if (asked := os.environ.get("TROUPE_CPU_RANKS"))
        else ""
    )
    return f"{what}gpus=N{without} gives each rank one where the cluster has them; {instead}"
