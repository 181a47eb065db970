"""The parts of the caller's environment that travelled with a launch, for people: names of
variables, never values; directories, modules, requirements; and the front door it came by.

The head keeps it as texts with the launch (`RuntimeEnvironment.travelled`): names of variables as
they are, all else as `KIND=TEXT`, of which a variable's name has no `=`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from troupe._code import capture

DIRECTORY, MODULES, REQUIREMENTS, PATH = "working_dir", "py_modules", "pip", "import_path"
_DOOR = "door="
_REQUEST = "request="
_ABOUT = "about."
KINDS = (DIRECTORY, MODULES, PATH, REQUIREMENTS)
_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._-]*")
_TEXTS_MAX, _TEXT_MAX = 40, 400
_PIECE_CHARS = 350


def texts(env: Mapping[str, Any], directory: str, import_path: Iterable[str]) -> list[str]:
    """Return the texts of an environment in the form that travels; `directory`: the caller's, where
    ranks on its host run; `import_path`: of the caller's host."""
    found = []
    if DIRECTORY in env:
        found.append(f"{DIRECTORY}={_place(env[DIRECTORY])}")
    elif directory:
        found.append(f"{DIRECTORY}={directory} (on this host alone, where it lies)")
    found += [f"{MODULES}={_place(each)}" for each in env.get(MODULES, ())]
    found += [f"{PATH}={each} (on this host alone, where it lies)" for each in import_path]
    if REQUIREMENTS in env:
        from troupe._code import requirements

        found += [
            f"{REQUIREMENTS}={requirements.shown(line)}" for line in env[REQUIREMENTS]["lines"]
        ]
    return [each[:_TEXT_MAX] for each in found[:_TEXTS_MAX]]


def _place(directory: Mapping[str, Any]) -> str:
    package = directory.get("package")
    if package is None:
        return f"{directory['path']} (where it lies)"
    if "tree" not in package:
        return (
            f"{directory['path']} ({capture.size_text(package['size_bytes'])}, "
            f"{package['sha256'][:8]})"
        )
    many = "1 file" if package["files"] == 1 else f"{package['files']:,} files"
    left = f"; .gitignore leaves here: {package['left']}" if package.get("left") else ""
    return (
        f"{directory['path']} ({many}, {capture.size_text(package['bytes'])}, "
        f"{package['tree'][:8]}{left})"
    )


def of_door(door: str) -> str:
    """The text that says by which front door a launch came."""
    return f"{_DOOR}{door}"


def door(info: Mapping[str, Any]) -> str:
    """Return the front door of a launch, such as `azure`; "" if its caller did not say."""
    return next(
        (each.removeprefix(_DOOR) for each in info["travelled"] if each.startswith(_DOOR)), ""
    )


def of_request(request: str) -> str:
    """Return the text that holds the id of a submission with an idempotency key."""
    return f"{_REQUEST}{request}"


def of_about(about: Mapping[str, str]) -> list[str]:
    """Return the texts that hold what a front door tells with a launch."""
    return [f"{_ABOUT}{name}={value}"[:_TEXT_MAX] for name, value in about.items()]


def about(info: Mapping[str, Any]) -> dict[str, str]:
    """Return what a front door told with the launch of this LaunchInfo."""
    pairs = (
        each.removeprefix(_ABOUT).partition("=")
        for each in info["travelled"]
        if each.startswith(_ABOUT)
    )
    return {name: value for name, _, value in pairs}


def pieces(name: str, text: str) -> dict[str, str]:
    """Return the parts of a text that is too long for one, for `of_about`."""
    return {
        f"{name}.{number}": text[place : place + _PIECE_CHARS]
        for number, place in enumerate(range(0, len(text), _PIECE_CHARS))
    }


def whole(about: Mapping[str, str], name: str) -> str:
    """Return the text that `pieces` has parted; "": there is none."""
    found: list[str] = []
    while (piece := about.get(f"{name}.{len(found)}")) is not None:
        found.append(piece)
    return "".join(found)


def variables(travelled: Iterable[str]) -> list[str]:
    """The names of variables among the texts."""
    return [each for each in travelled if "=" not in each]


def environment(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the environment that travelled with a launch, by the rule of
    docs/guides/runtime_env.md."""
    pairs = [each.partition("=") for each in info["travelled"] if "=" in each]
    by = {kind: [text for name, _, text in pairs if name == kind] for kind in KINDS}
    return {
        "variables": variables(info["travelled"]),
        "variables_left": list(info["not_taken"]),
        DIRECTORY: next(iter(by[DIRECTORY]), ""),
        MODULES: by[MODULES],
        PATH: by[PATH],
        REQUIREMENTS: by[REQUIREMENTS],
    }


def required(info: Mapping[str, Any]) -> frozenset[str]:
    """Names of the packages that the launch has asked for itself."""
    found = (
        _NAME.match(each.partition("=")[2])
        for each in info["travelled"]
        if each.startswith(f"{REQUIREMENTS}=")
    )
    return frozenset(match[0].lower() for match in found if match)
