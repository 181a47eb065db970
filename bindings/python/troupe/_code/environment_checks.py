"""Checks of a runtime_env, made where it is given."""

from __future__ import annotations

import os
import types
import zipfile
from collections.abc import Mapping
from typing import Any

SETUP_TIMEOUT_S = 600.0
_KEYS = (
    "config",
    "env_vars",
    "excludes",
    "pip",
    "py_modules",
    "uv",
    "worker_process_setup_hook",
    "working_dir",
)


_OF_THE_WORKER = (
    "it is the node's: start its worker there (troupe start), and the processes that "
    "it starts are in it too"
)


_INSTEAD = {
    "conda": f"a conda environment is not made here; {_OF_THE_WORKER}. What is on PyPI is a key of "
    "its own: pip",
    **dict.fromkeys(
        ("container", "image_uri"), f"a container is not started here; {_OF_THE_WORKER}"
    ),
    "java_jars": "no Java runs here",
    "nsight": "start what profiles inside the function, or: troupe submit -- nsys profile python "
    "train.py",
    "mpi": "troupe submit -- mpirun ... runs a program of MPI",
    "local_dir": "working_dir is the directory",
}


def check(runtime_env: Mapping[str, Any] | None) -> dict[str, Any]:
    """A copy as a dict. Raises ValueError or TypeError naming the key at fault."""
    if runtime_env is not None and not isinstance(runtime_env, Mapping):
        raise TypeError(f"runtime_env must be a dict, not {type(runtime_env).__name__}")
    env = {key: value for key, value in (runtime_env or {}).items() if value is not None}
    for key in env:
        if key not in _KEYS:
            instead = _INSTEAD.get(key)
            raise ValueError(
                f"runtime_env has no key {key!r}; supported: {', '.join(_KEYS)}"
                + (f"\n  {instead}" if instead else "")
            )
    _check_variables(env.get("env_vars") or {})
    if "working_dir" in env:
        _check_directory("runtime_env['working_dir']", env["working_dir"], or_archive=".zip")
    for key in ("excludes", "py_modules"):
        if not isinstance(env.get(key, []), (list, tuple)):
            raise TypeError(f"runtime_env[{key!r}] must be a list, not {type(env[key]).__name__}")
    if not all(isinstance(each, str) for each in env.get("excludes", ())):
        raise TypeError("runtime_env['excludes'] must be a list of patterns")
    if "py_modules" in env:
        env["py_modules"] = [_module_path(each) for each in env["py_modules"]]
    if "pip" in env and "uv" in env:
        raise ValueError(
            "runtime_env has 'pip' and 'uv', which mean the same here: give one of them"
        )
    for key in ("pip", "uv"):
        if key in env:
            from troupe._code import requirements

            env[key] = requirements.read(key, env[key])
    if "config" in env:
        env["config"] = _check_config(env["config"])
    hook = env.get("worker_process_setup_hook")
    if hook is not None and not callable(hook) and not (isinstance(hook, str) and hook.count(".")):
        raise TypeError(
            "runtime_env['worker_process_setup_hook'] must be a function, or its name like "
            "'package.module.function', "
            f"not {hook!r}"
        )
    return env


def _check_config(config: Any) -> dict[str, Any]:
    """Ray's: `setup_timeout_seconds`, and `eager_install`, which means nothing here."""
    if not isinstance(config, Mapping) or set(config) - {"setup_timeout_seconds", "eager_install"}:
        raise ValueError(
            "runtime_env['config'] is a dict of 'setup_timeout_seconds' and 'eager_install', not "
            f"{config!r}"
        )
    seconds = config.get("setup_timeout_seconds", SETUP_TIMEOUT_S)
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | float)
        or not (seconds > 0 or seconds == -1)
    ):
        raise ValueError(
            "runtime_env['config']['setup_timeout_seconds'] must be a number of seconds above 0, "
            "or -1 for no limit, "
            f"not {seconds!r}"
        )
    return dict(config)


def _check_variables(variables: Any) -> None:
    if not isinstance(variables, Mapping):
        raise TypeError("runtime_env['env_vars'] must be a dict of texts")
    for name, value in variables.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(
                f"runtime_env['env_vars'][{name!r}] must be a text, not {type(value).__name__}"
            )


def _check_directory(what: str, path: Any, *, or_archive: str) -> None:
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"{what} must be a path, not {type(path).__name__}")
    text = os.fspath(path)
    if text.endswith(or_archive) and os.path.isfile(text):
        if not zipfile.is_zipfile(text):
            raise ValueError(f"{what}: {text} is no zip archive, whatever its name says")
    elif not os.path.isdir(text):
        raise ValueError(f"{what}: {text} is no directory, nor a {or_archive} file")


def _module_path(module: Any) -> str:
    """The directory of a package, a module's file or a wheel, given as such or as the imported
    module."""
    if isinstance(module, types.ModuleType):
        file = module.__file__ or ""
        module = (
            os.path.dirname(file)
            if os.path.basename(file).startswith("__init__.") or not file
            else file
        )
    if not (
        isinstance(module, (str, os.PathLike))
        and os.fspath(module).endswith(".py")
        and os.path.isfile(module)
    ):
        _check_directory("runtime_env['py_modules']", module, or_archive=".whl")
    found: str = os.path.abspath(module)
    return found
