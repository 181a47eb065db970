"""The environment that travels with a launch or an actor: variables, directory, import path
(decision 14)."""

from __future__ import annotations

import functools
import json
import os
import site
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from typing import Any

from troupe import exceptions, stand_ins
from troupe._base import job as _job
from troupe._base.identity import PYTHON_VERSION
from troupe._cluster import variables
from troupe._code import capture, runtime_env as _runtime_env, travelled
from troupe._typed.per_session import PerSession

_REMEMBERED_MAX = 1000
_OF_REQUIREMENTS = "troupe._code.requirements"
"""The module that a process has imported which is kept for requirements alone: one of the runtime's
own, for it is to serve every program."""
# Limit because they travel in a variable, of which the kernel takes 128 KiB
_ARGUMENTS_BYTES_MAX = 48 << 10


def import_path() -> list[str]:
    """The caller's import path without the interpreter's own folders: the script's, PYTHONPATH's,
    what the program has added."""
    own = _of_the_interpreter()
    package = os.path.realpath(
        os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    )
    found: list[str] = []
    for entry in sys.path:
        entry = os.path.abspath(entry or os.getcwd())
        real = os.path.realpath(entry)
        inside = any(real == path or real.startswith(path + os.sep) for path in own)
        if (
            not inside
            and real != package
            and entry not in found
            and (os.path.isdir(entry) or os.path.isfile(entry))
        ):
            found.append(entry)
    return found


def of_own_process() -> dict[str, str]:
    """Return the environment of a Python process of the runtime's own: this one's, but with no
    folder of the program in PYTHONPATH.

    What stays are the folders into which packages were installed, by the rule of
    `worker/python_path.h`, and the one that has Troupe. Start the process by `python -P`.
    """
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    folders = [package, *filter(_has_installed_packages, import_path())]
    own = [each for each in folders if os.path.realpath(each) not in _of_the_interpreter()]
    return {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        **({"PYTHONPATH": os.pathsep.join(own)} if own else {}),
    }


def _has_installed_packages(folder: str) -> bool:
    if os.path.basename(folder) in ("site-packages", "dist-packages"):
        return True
    try:
        return any(name.endswith(".dist-info") for name in os.listdir(folder))
    except OSError:  # an archive
        return False


@functools.cache
def _of_the_interpreter() -> tuple[str, ...]:
    """Folders of its library and of installed packages, and its library as an archive.

    Not its prefix: a project may lie under /usr too.
    """
    library = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    archive = os.path.join(
        sys.base_prefix, sys.platlibdir, f"python{sys.version_info[0]}{sys.version_info[1]}.zip"
    )
    packages = [
        *site.getsitepackages(),
        *([site.getusersitepackages()] if site.ENABLE_USER_SITE else []),
    ]
    base = os.path.dirname(os.__file__)  # in a virtual environment, the base interpreter's
    return tuple({os.path.realpath(path) for path in (*library, archive, *packages, base)})


def _are_installed(modules: Iterable[str], path: list[str]) -> bool:
    """Return True if these modules, and all that they import, come from the interpreter whatever is
    on `path`: no name there hides one of its packages. A process that has imported them then serves
    every program."""
    own = frozenset(sys.stdlib_module_names).union(
        *(_names_in(folder) for folder in _of_the_interpreter())
    )
    return all(module.split(".")[0] in own for module in modules) and not any(
        not os.path.isdir(entry) or own & _names_in(entry) for entry in path
    )


def _names_in(folder: str) -> frozenset[str]:
    """Names of the modules that this folder provides; a folder without an __init__ gives way to any
    module of its name."""
    try:
        return _names_as_of(folder, os.stat(folder).st_mtime_ns)
    except OSError:
        return frozenset()


@functools.lru_cache(64)
def _names_as_of(folder: str, changed_ns: int) -> frozenset[str]:
    names = set()
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith((".py", ".pyc", ".so")):
                names.add(entry.name.split(".")[0])
            elif "." not in entry.name and any(
                os.path.exists(os.path.join(entry.path, name))
                for name in ("__init__.py", "__init__.pyc")
            ):
                names.add(entry.name)
    return frozenset(names)


_asked: PerSession[dict[str, int]] = PerSession("environments asked for")


def _count(session: Any, environment: str) -> None:
    """Count a request for the environment; only the latest ones are remembered."""
    counts = _asked.of(session, dict)
    counts[environment] = counts.pop(environment, 0) + 1
    if len(counts) > _REMEMBERED_MAX:
        del counts[next(iter(counts))]


def asked_for(session: Any) -> list[tuple[dict[str, Any], int]]:
    """The environments that this process has asked for, and how often, the latest last; the latest
    1,000."""
    return [
        (json.loads(environment), count)
        for environment, count in dict(_asked.of(session, dict)).items()
    ]


def told(key: str, value: Any) -> Any:
    """Return `value` as shown to people: requirements without the credentials in their
    addresses."""
    if key != "pip":
        return value
    from troupe._code import requirements

    return {"packages": [requirements.shown(line) for line in value["lines"]]}


def build(
    runtime_env: Mapping[str, Any] | None,
    inherit_env: Iterable[str] = (),
    *,
    session: Any,
    ray_compat: bool | str | None = None,
    preimport: Iterable[str] = (),
    arguments: Iterable[str] | None = None,
    as_now: bool = False,
) -> dict[str, Any]:
    """The RuntimeEnvironment message.

    `ray_compat`: whether `import ray` is to mean Troupe there, or WHEN_IMPORTED; None: as here.
    `arguments`: of a program that is executed there, and brings its own script and import path;
    None: all that is this one's.

    `runtime_env` is over what init(), or the process that this one is, was given. Which of the
    caller's variables travel: `_cluster.variables`. Requirements ask for a fresh interpreter
    instead of a fork, or for one of a process that has loaded all from them: what a fork has loaded
    could not be replaced. For variables that libraries read when they are loaded the worker sees to
    that (`worker/core/read_at_import.cc`), and to `preimport`, modules that are to be loaded
    already; how many threads a library has it is told in the forked process (`_process.threads`).
    """
    env = _runtime_env.merged(
        _runtime_env.inherited(session, as_now=as_now),
        _runtime_env.resolve(runtime_env, session, as_now=as_now),
    )
    given = dict(env["env_vars"])
    choice = variables.travelling(inherit_env)
    if ray_compat is False:
        env[_runtime_env.RAY_COMPAT] = _runtime_env.INSTALLED
    elif _job.follows_ray() or ray_compat:
        env[_runtime_env.RAY_COMPAT] = True if _job.follows_ray() else ray_compat
    if "pip" in env and "digest" not in env["pip"]:
        from troupe._code import requirements

        env["pip"] = {
            **env["pip"],
            "digest": requirements.digest(env["pip"], {**choice.taken, **given}),
        }
    others = [each for each in stand_ins.installed() if each != stand_ins.RAY]
    below = [
        each for each in stand_ins.passed_on() if ray_compat is not False or each != stand_ins.RAY
    ]
    if others or below:
        env[_runtime_env.STAND_INS] = {"here": others, "below": below}
    if any(env.values()):
        _count(session, json.dumps(env, sort_keys=True))
    env[_runtime_env.PROGRAM] = {
        "script": _runtime_env.script(session) if arguments is None else {},
        "arguments": _arguments(sys.argv if arguments is None else arguments),
        "carried": sorted({*choice.taken, *given}),
        "removed": list(choice.removed),
        "infeasible": session.infeasible,
    }
    given[_runtime_env.VARIABLE] = json.dumps(env, sort_keys=True)
    given.setdefault(_job.JOB, session.job)
    if session.namespace:
        given.setdefault(_job.NAMESPACE, session.namespace)
    same_host = session.same_host
    path = import_path() if same_host and arguments is None else []
    directory = os.getcwd() if same_host and "working_dir" not in env else ""
    setup = ""
    installed = bool(preimport)
    if (
        "pip" in env and not preimport
    ):  # a process on each node has loaded what all need from there, whatever the program is
        preimport, setup = [_OF_REQUIREMENTS], _runtime_env.setup_text({"pip": env["pip"]})
    elif preimport:
        setup = _runtime_env.setup_text(env)
        installed = not setup and _are_installed(preimport, path)
    return {
        "env": [
            {"name": name, "value": value}
            for name, value in sorted({**choice.taken, **given}.items())
        ],
        "working_directory": directory,
        "import_path": path,
        "fresh_interpreter": "pip" in env,
        "preimport": list(preimport),
        "setup": setup,
        "preimport_installed": installed,
        "python_version": PYTHON_VERSION,
        "travelled": [*sorted(choice.taken), *travelled.texts(env, directory, path)],
        # A node that the program has started for itself has what the program itself was started
        # with.
        "not_taken": []
        if session.embedded is not None
        else [name for name in choice.left if name not in given],
    }


def started_from(text: str) -> str:
    """Return a worker's description of where processes came from, in words for people."""
    return text.replace(f"{_OF_REQUIREMENTS} of its runtime_env", "its pip requirements")


def _arguments(words: Iterable[str]) -> list[str]:
    """The program's. Raises LaunchError where they are more than a process can be started with."""
    given = list(words)
    size = sum(len(os.fsencode(each)) + 1 for each in given)
    if size > _ARGUMENTS_BYTES_MAX:
        raise exceptions.LaunchError(
            f"cannot start: sys.argv has {capture.size_text(size)}; "
            f"{capture.size_text(_ARGUMENTS_BYTES_MAX)} is the "
            "limit of what travels with a launch\n  put it into a file"
        )
    return given
