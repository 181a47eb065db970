"""Modules under another package's names, whose contents are Troupe's and are looked up when they
are used."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    Loader = object  # importlib.abc is not loaded at each start of Python


@dataclass(frozen=True)
class Package:
    """A package that Troupe stands in for.

    `claims`: modules that are Troupe's with all below them, whether or not they are installed.
    `above`: packages that these lie in, which stay those that are installed, and are empty where
    there are none. `modules`: of each module its names, and where each is: "util.queue" for the
    same name there, "mod:name" for another one, "=mod:name" outside of Troupe. `instead_of`: of a
    full name that is not there, what to use. `absent`: where the packages above are not installed,
    what to do without them. `otherwise`: modules as in `modules`, which are Troupe's only where
    none of that name is installed.
    """

    claims: tuple[str, ...]
    modules: Mapping[str, Mapping[str, str]]
    instead_of: Callable[[str], str]
    above: tuple[str, ...] = ()
    absent: str = ""
    version: str = ""
    otherwise: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def is_claimed(self, name: str) -> bool:
        """Return True if Troupe answers for a module of this name."""
        return any(name == each or name.startswith(f"{each}.") for each in self.claims)

    def names_in(self, module: str) -> Mapping[str, str] | None:
        """Return the names of a module here; None if there is no such module."""
        return self.modules.get(module, self.otherwise.get(module))

    def missing(self, name: str) -> str:
        """Return the message for a missing `name`, such as "ray.tune.Tuner"."""
        root = self.claims[0]
        begin = f"{name} is not a part of Troupe, which stands in for {root} here; "
        instead = self.instead_of(name)
        if instead:
            return f"{begin}use {instead}"
        parts = name.split(".")
        home = next(
            (
                each
                for end in range(len(parts) - 1, 0, -1)
                if (each := ".".join(parts[:end])) in self.modules
            ),
            root,
        )
        has = sorted(
            {
                *self.modules.get(home, ()),
                *(
                    each.removeprefix(f"{home}.")
                    for each in self.modules
                    if each.startswith(f"{home}.")
                ),
            }
        )
        return f"{begin}{home} has {', '.join(has) or 'nothing'}"


class StandInModule(types.ModuleType):
    """A module of a stand-in package, with Troupe's names. Subclasses name the package."""

    package: ClassVar[Package]

    def __getattr__(self, name: str) -> Any:
        modules = self.package.modules
        where = (self.package.names_in(self.__name__) or {}).get(name)
        if where is not None:
            home, _, own = where.partition(":")
            home = home.removeprefix("=") if home.startswith("=") else f"troupe.{home}".rstrip(".")
            value = self.made(name, getattr(importlib.import_module(home), own or name))
        elif (
            f"{self.__name__}.{name}" in modules
        ):  # ray.util without an import of its own, as with Ray
            value = importlib.import_module(f"{self.__name__}.{name}")
        elif name == "__version__" and self.package.version and "." not in self.__name__:
            value = self.package.version
        else:
            # Python asks for names of its own (__wrapped__, __file__): plain words for those.
            raise AttributeError(
                self.package.missing(f"{self.__name__}.{name}")
                if not name.startswith("__")
                else name
            )
        self.__dict__[name] = value
        return value

    def made(self, name: str, value: Any) -> Any:
        """Return the value of the name here, made from Troupe's value."""
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        """The import system binds a module to its parent once it is loaded: where a name of the
        package's is both, as `ray.util.placement_group`, the attribute is the name, whatever was
        imported before."""
        if isinstance(value, StandInModule) and name in self.package.modules.get(self.__name__, ()):
            return
        super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return importlib.import_module, (
            self.__name__,
        )  # a class that uses the module travels with its name

    def __dir__(self) -> list[str]:
        modules, inside = self.package.modules, self.__name__ + "."
        return sorted(
            {
                *(self.package.names_in(self.__name__) or ()),
                *(
                    each.removeprefix(inside).partition(".")[0]
                    for each in modules
                    if each.startswith(inside)
                ),
            }
        )


class Finder(Loader):
    """Answers for what a package claims, so that an installed one is never found by halves."""

    def __init__(self, module_class: type[StandInModule]) -> None:
        self.module_class = module_class
        self.package = module_class.package

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: Any = None
    ) -> ModuleSpec | None:
        """The spec of one of the modules; raises ModuleNotFoundError for those that Troupe has
        not."""
        if not self.package.is_claimed(name):
            return None
        if name in self.package.modules:
            return ModuleSpec(name, self, is_package=True)
        # Without the name that was asked for: `from ray import tune` would swallow the text with
        # it.
        raise ModuleNotFoundError(self.package.missing(name))

    def create_module(self, spec: ModuleSpec) -> StandInModule:
        """An empty one: it fills as it is used."""
        module = self.module_class(spec.name, f"{spec.name}, of Troupe.")
        module.__all__ = sorted(self.package.names_in(spec.name) or ())
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""


class FinderAbove(Loader):
    """Answers for the packages above what is claimed, after all others: where they are installed,
    these are what is found.

    Where they are not, they are there for what is claimed alone: who looks whether `pyspark` is
    installed is told that it is not, and who imports another module of it, what to do without.
    """

    def __init__(self, finder: Finder) -> None:
        self._finder = finder

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: Any = None
    ) -> ModuleSpec | None:
        """The spec of an empty package, while something below it is imported that is claimed; None
        for all other names."""
        package = self._finder.package
        if not package.above or name.partition(".")[0] != package.above[0]:
            return None
        if name in package.otherwise:
            return ModuleSpec(name, self._finder, is_package=True)
        imported = _being_imported()
        if name in package.above and any(
            package.is_claimed(each) or each in package.otherwise for each in imported
        ):
            return ModuleSpec(name, self, is_package=True)
        if package.absent and imported and self._is_absent(name):
            # Without the name that was asked for, as in Finder: `from pyspark import SparkContext`
            # would swallow the text with it.
            raise ModuleNotFoundError(
                f"No module named {imported[-1]!r}: {package.above[0]} is not installed; "
                f"{package.absent}",
                name=None if package.above[0] in sys.modules else name,
            )
        return None

    def _is_absent(self, name: str) -> bool:
        """Return True if the package this module would belong to is not installed."""
        root = sys.modules.get(self._finder.package.above[0])
        return (
            root is None
            if "." not in name
            else root is not None and getattr(root.__spec__, "loader", None) is self
        )

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """An empty package, which says of other names that they are not installed."""
        module = types.ModuleType(spec.name, f"{spec.name}, which is not installed.")
        package = self._finder.package

        def missing(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            raise AttributeError(
                f"{spec.name} is not installed, so there is no {spec.name}.{name}; "
                f"Troupe stands in for {' and '.join(package.claims)} alone"
            )

        module.__getattr__ = missing  # type: ignore[method-assign]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""


_BOOTSTRAP = "<frozen importlib._bootstrap>"


def _being_imported() -> list[str]:
    """Full names of the modules that this thread is importing, the one that was asked for first the
    last: the import system has them only in its own frames. Not one that is only looked for, by
    importlib.util.find_spec."""
    found, frame = [], sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if (
            code.co_filename == _BOOTSTRAP
            and code.co_name == "_find_and_load"
            and isinstance(name := frame.f_locals.get("name"), str)
        ):
            found.append(name)
        frame = frame.f_back  # type: ignore[assignment]
    return found


def add(finder: Finder) -> None:
    """From now on the package's modules are Troupe's in this process."""
    sys.meta_path.insert(0, finder)
    if finder.package.above:
        sys.meta_path.append(FinderAbove(finder))
