"""Writes the reference pages of the public Python modules, from the package as it is imported."""

from __future__ import annotations

import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import markdown

MODULES = {
    "Launches and actors": ("troupe", "troupe.launch", "troupe.actor", "troupe.exceptions"),
    "Training, sweeps and data": (
        "troupe.train",
        "troupe.train.torch",
        "troupe.tune",
        "troupe.tune.search",
        "troupe.tune.schedulers",
        "troupe.tune.stopper",
        "troupe.tune.logger",
        "troupe.data",
    ),
    "Clusters and jobs": (
        "troupe.state",
        "troupe.job_submission",
        "troupe.runtime_env",
        "troupe.cluster_utils",
        "troupe.cross_language",
    ),
    "Utilities": (
        "troupe.util",
        "troupe.util.actor_pool",
        "troupe.util.collective",
        "troupe.util.metrics",
        "troupe.util.placement_group",
        "troupe.util.queue",
        "troupe.util.scheduling_strategies",
        "troupe.util.serialization",
        "troupe.util.state",
        "troupe.dag",
        "troupe.experimental",
        "troupe.experimental.collective",
        "troupe.experimental.tqdm_ray",
    ),
    "Interfaces of other launchers": (
        "troupe.serverless_gpu",
        "troupe.serverless_gpu.runtime",
        "troupe.air",
        "troupe.spark",
        "troupe.azure",
        "troupe.azure.sweep",
        "troupe.azure.dsl",
    ),
}
"""The public modules, in the order of the reference."""
FIRST = ("troupe.exceptions", "troupe.launch")
"""Modules that describe what others offer too."""


def write(folder: Path) -> None:
    """Write a page for each module into a folder, and `index.md`."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = ["# Python\n\nThe public modules. Each page is made of the docstrings.\n"]
    for title, names in MODULES.items():
        entries = "\n".join(names)
        parts.append(f"```{{toctree}}\n:caption: {title}\n:maxdepth: 1\n\n{entries}\n```\n")
    described_in: dict[int, str] = {}
    names = [name for each in MODULES.values() for name in each]
    for name in sorted(names, key=lambda name: name not in FIRST):
        text = page(importlib.import_module(name), described_in)
        (folder / f"{name}.md").write_text(text)
    (folder / "index.md").write_text("\n".join(parts))


def public_names(module: ModuleType) -> list[str]:
    """Return `__all__`, or the classes and functions that the module defines."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return sorted(listed, key=str.lower)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and getattr(value, "__module__", None) == module.__name__
        and (inspect.isclass(value) or callable(value))
    ]


def page(module: ModuleType, described_in: dict[int, str]) -> str:
    """Return the page of a module. Classes and functions of earlier pages are links to these."""
    name = module.__name__
    above = importlib.import_module(name.rpartition(".")[0] or "troupe")
    shadowed = name != "troupe" and not inspect.ismodule(
        vars(above).get(name.split(".")[-1], module)
    )
    hidden = "\n:no-index:" if shadowed else ""  # a function of that name has the entry
    parts = [f"# {name}", f":::{{py:module}} {name}{hidden}\n:::"]
    parts.append(markdown.docstring(module.__doc__))
    links = []
    for each in public_names(module):
        try:
            value = getattr(module, each)
        except ImportError:
            continue  # needs a package that is not installed
        if inspect.ismodule(value):
            continue
        there = described_in.setdefault(id(value), name) if callable(value) else name
        if there == name:
            parts.append(described(each, value))
        else:
            links.append(f"`{each}` ([{there}]({there}.md))")
    if links:
        parts.append(f"Also here, described on other pages: {', '.join(links)}.")
    return "\n\n".join(filter(None, parts)) + "\n"


def described(name: str, value: Any) -> str:
    """Return the directive of a class, a function or a value."""
    if inspect.isclass(value):
        return _class(name, value)
    if callable(value):
        return _block("py:function", name + signature(value), value.__doc__)
    return _block("py:data", name, None if isinstance(value, (str, int, tuple)) else value.__doc__)


def _class(name: str, value: type) -> str:
    """Return the directive of a class with its own public methods and properties."""
    if issubclass(value, BaseException):
        bases = ", ".join(f"`{base.__name__}`" for base in value.__bases__)
        return _block("py:exception", name, value.__doc__, f"Bases: {bases}")
    members = [_block(*each) for each in _members(value)]
    call = "" if issubclass(value, enum.Enum) else signature(value)
    return _block("py:class", name + call, value.__doc__, *members)


def _members(value: type) -> Iterator[tuple[str, str, str | None]]:
    seen = set()
    for base in value.__mro__:
        if not base.__module__.startswith("troupe"):
            continue
        for name, member in vars(base).items():
            if name.startswith("_") or name in seen:
                continue
            seen.add(name)
            if isinstance(member, property):
                yield "py:property", name, member.__doc__
            elif isinstance(member, (staticmethod, classmethod)):
                kind = type(member).__name__.replace("method", "")
                called = signature(member.__func__, bound=kind == "class")
                yield f"py:{kind}method", name + called, member.__func__.__doc__
            elif inspect.isfunction(member):
                yield "py:method", name + signature(member, bound=True), member.__doc__


def signature(value: Any, bound: bool = False) -> str:
    """Return the parameters with annotations and plain defaults; "()" where Python knows none."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "()"
    parameters = list(found.parameters.values())[1 if bound else 0 :]
    parameters = [each for each in parameters if each.kind is each.VAR_POSITIONAL or _plain(each)]
    shown = [each.replace(default=_default(each)) for each in parameters]
    try:
        text = str(found.replace(parameters=shown))
    except ValueError:
        return "(...)"
    return re.sub(r"\b(?:troupe|collections|typing)\.(?:\w+\.)*", "", text).replace("'", "")


def _plain(parameter: inspect.Parameter) -> bool:
    return not parameter.name.startswith("_")


class _Shown:
    """A default that is shown as its text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _default(parameter: inspect.Parameter) -> Any:
    if parameter.default is parameter.empty:
        return parameter.empty
    text = repr(parameter.default)
    plain = isinstance(parameter.default, (str, int, float, bool, type(None), tuple))
    return _Shown(text.replace("'", '"') if plain and len(text) < 40 else "...")


def _block(kind: str, head: str, text: str | None, *inside: str) -> str:
    """Return a directive; its fence is longer than those inside."""
    body = "\n\n".join(filter(None, [markdown.docstring(text), *inside]))
    longest = max(map(len, re.findall(r"^:::+", body, re.M)), default=2)
    fence = ":" * (longest + 1)
    return f"{fence}{{{kind}}} {head}\n\n{body}\n{fence}"
