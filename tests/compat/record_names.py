"""Writes ray_names.txt: the public dotted names of an installed Ray, each with its kind.

    python tests/compat/record_names.py > tests/compat/ray_names.txt      # by a Python that has Ray

A name is public when no part of it starts with an underscore and its module lists it in `__all__`;
where a module has none, when it is a class, a function or an exception that the module itself
defines. A library of Ray's (`ray.data`, `ray.tune`...) is one line. Kinds: `module`, `class`,
`function`, `value`, `library`; `module+function` is a path that is both, and so on.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import os
import pkgutil
import sys
import warnings

LIBRARIES = {
    "air",
    "autoscaler",
    "core",
    "dashboard",
    "data",
    "internal",
    "job_submission",
    "llm",
    "rllib",
    "scripts",
    "serve",
    "thirdparty_files",
    "tune",
    "widgets",
    "workflow",
}
"""Packages of `ray` that are no part of its core: what is inside is not listed."""
LIBRARIES_OF_UTIL = {
    "client",
    "dask",
    "horovod",
    "joblib",
    "lightgbm",
    "multiprocessing",
    "sgd",
    "spark",
    "tracing",
    "xgboost",
}
LIBRARIES_OF_TRAIN = {"examples", "v2"}
TESTS = {"conftest", "tests", "setup-dev"}


def public(name: str) -> bool:
    """Return True if no part of a dotted name is private."""
    return not any(part.startswith("_") for part in name.split("."))


def kind_of(value: object) -> str:
    """class, function, module or value."""
    for kind, is_one in (
        ("module", inspect.ismodule),
        ("class", inspect.isclass),
        ("function", callable),
    ):
        if is_one(value):
            return kind
    return "value"


def names_of(module: object) -> dict[str, str]:
    """A module's own public names with their kinds."""
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = [
            name
            for name, value in vars(module).items()
            if (inspect.isclass(value) or inspect.isfunction(value))
            and value.__module__ == module.__name__
        ]
    found = {}
    for name in listed:
        with contextlib.suppress(
            AttributeError, ImportError, RuntimeError
        ):  # imported at its first use, and may be missing
            if public(name) or name == "__version__":
                found[name] = kind_of(getattr(module, name))
    return found


def walk(package: str) -> dict[str, set[str]]:
    """All public dotted names in `package` and below it."""
    found: dict[str, set[str]] = {package: {"module"}}
    try:
        module = importlib.import_module(package)
    except (
        Exception
    ) as error:  # an optional dependency is not there: the module is known by its name alone
        print(f"{package} cannot be imported: {type(error).__name__}: {error}", file=sys.stderr)
        return found
    for name, kind in names_of(module).items():
        found.setdefault(f"{package}.{name}", set()).add(kind)
    for each in pkgutil.iter_modules(getattr(module, "__path__", [])):
        name = f"{package}.{each.name}"
        if not public(name) or each.name in TESTS:
            continue
        if (
            (package == "ray" and each.name in LIBRARIES)
            or (package == "ray.util" and each.name in LIBRARIES_OF_UTIL)
            or (package == "ray.train" and each.name in LIBRARIES_OF_TRAIN)
        ):
            found.setdefault(name, set()).add("library")
            continue
        for path, kinds in walk(name).items():
            found.setdefault(path, set()).update(kinds)
    return found


def main() -> None:
    """Prints the list."""
    warnings.simplefilter("ignore")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with contextlib.redirect_stdout(io.StringIO()):  # some modules greet
        found = walk("ray")
        version = importlib.import_module("ray").__version__
    print(f"# The public names of Ray {version}: written by record_names.py.")
    for path, kinds in sorted(found.items()):
        print(
            path,
            "+".join(
                sorted(
                    kinds - ({"module"} if "library" in kinds else set()),
                    key=lambda kind: (kind != "module", kind),
                )
            ),
        )


if __name__ == "__main__":
    main()
