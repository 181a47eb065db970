"""The import hook: modules `ray`, `ray.util` and so on, whose names are looked up in Troupe when used."""
from __future__ import annotations

import importlib
import types
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from typing import Any

from troupe.ray_compat import _starting
from troupe.ray_compat._missing import instead_of
from troupe.ray_compat._names import MODULES, VERSION


def missing(name: str) -> str:
    """What to tell who asks for `name`, e.g. "ray.tune.Tuner", which Troupe has not."""
    instead = instead_of(name)
    if instead:
        return f"{name} is not a part of Troupe, which stands in for ray here; use {instead}"
    parts = name.split(".")
    home = next((module for module in (".".join(parts[:end]) for end in range(len(parts) - 1, 0, -1)) if module in MODULES),
                "ray")
    has = sorted({*MODULES[home], *(each.removeprefix(home + ".") for each in MODULES if each.startswith(home + "."))})
    return f"{name} is not a part of Troupe, which stands in for ray here; {home} has {', '.join(has)}"


class RayModule(types.ModuleType):
    """One of Ray's modules, of Troupe's names."""

    def __getattr__(self, name: str) -> Any:
        where = MODULES[self.__name__].get(name)
        if where is not None:
            home, _, own = where.partition(":")
            home = home.removeprefix("=") if home.startswith("=") else f"troupe.{home}".rstrip(".")
            value = getattr(importlib.import_module(home), own or name)
            if self.__name__ == "ray" and name in _starting.NAMES:
                value = _starting.starting(name)
        elif f"{self.__name__}.{name}" in MODULES:  # ray.util without an import of its own, as with Ray
            value = importlib.import_module(f"{self.__name__}.{name}")
        elif name == "__version__" and self.__name__ == "ray":
            value = VERSION
        else:
            # Python asks for names of its own (__wrapped__, __file__): plain words for those.
            raise AttributeError(missing(f"{self.__name__}.{name}") if not name.startswith("__") else name)
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        """The import system binds a module to its parent once it is loaded: where a name of Ray's is both, as
        `ray.util.placement_group`, the attribute is the name, whatever was imported before."""
        if isinstance(value, RayModule) and name in MODULES[self.__name__]:
            return
        super().__setattr__(name, value)

    def __reduce__(self) -> tuple:
        return importlib.import_module, (self.__name__,)  # a class that uses `ray` travels with its name

    def __dir__(self) -> list[str]:
        inside = self.__name__ + "."
        return sorted({*MODULES[self.__name__], *(each.removeprefix(inside).partition(".")[0] for each in MODULES
                                                  if each.startswith(inside))})


class Finder:
    """Answers for `ray` and all below it, so that an installed Ray is never found by halves."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """The spec of one of Ray's modules; raises ModuleNotFoundError for those that Troupe has not."""
        if name != "ray" and not name.startswith("ray."):
            return None
        if name in MODULES:
            return ModuleSpec(name, self, is_package=True)
        # Without the name that was asked for: `from ray import tune` would swallow the text with it.
        raise ModuleNotFoundError(missing(name))

    def create_module(self, spec: ModuleSpec) -> RayModule:
        """An empty one: it fills as it is used."""
        module = RayModule(spec.name, f"Ray's {spec.name}, of Troupe.")
        module.__all__ = sorted(MODULES[spec.name])
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""
