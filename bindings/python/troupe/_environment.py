"""Which environment travels with a launch or an actor: variables, directory, import path (decision 14)."""
from __future__ import annotations

import os
import site
import sys
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from troupe._identity import PYTHON_VERSION

INHERITED = ("NCCL_*", "GLOO_*", "TORCH_*", "OMP_NUM_THREADS", "MLFLOW_*", "WANDB_*", "HF_*",
             "CUDA_LAUNCH_BLOCKING")
READ_AT_IMPORT = ("OMP_*", "LD_*", "PYTHONHASHSEED", "MKL_*", "OPENBLAS_*", "GOMP_*", "KMP_*")
_NEVER = ("TROUPE_TOKEN_FILE",)
_KEYS = ("env_vars", "working_dir")
_LATER_KEYS = ("excludes", "py_modules", "pip")


def check(runtime_env: Mapping[str, Any] | None) -> dict[str, Any]:
    """The runtime environment as a dict. Raises ValueError or TypeError naming the key at fault."""
    env = dict(runtime_env or {})
    for key in env:
        if key in _LATER_KEYS:
            raise ValueError(f"runtime_env[{key!r}] is not supported by this version; supported: "
                             f"{', '.join(_KEYS)}")
        if key not in _KEYS:
            raise ValueError(f"runtime_env has no key {key!r}; supported: {', '.join(_KEYS)}")
    variables = env.get("env_vars") or {}
    if not isinstance(variables, Mapping):
        raise TypeError("runtime_env['env_vars'] must be a dict of texts")
    for name, value in variables.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"runtime_env['env_vars'][{name!r}] must be a text, not {type(value).__name__}")
    directory = env.get("working_dir")
    if directory is not None and not os.path.isdir(directory):
        raise ValueError(f"runtime_env['working_dir']: {directory} is no directory")
    return env


def inherited(inherit_env: Iterable[str] = ()) -> dict[str, str]:
    """The caller's variables that travel: those of the fixed list and those named (patterns allowed)."""
    patterns = (*INHERITED, *inherit_env)
    return {name: value for name, value in os.environ.items()
            if name not in _NEVER and any(fnmatchcase(name, pattern) for pattern in patterns)}


def _is_read_at_import(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in READ_AT_IMPORT)


def import_path() -> list[str]:
    """The caller's import path without the interpreter's own folders: script folder, PYTHONPATH."""
    own = [os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, *site.getsitepackages(),
                                               site.getusersitepackages())]
    package = os.path.realpath(os.path.join(os.path.dirname(__file__), os.pardir))
    found: list[str] = []
    for entry in sys.path:
        entry = os.path.abspath(entry or os.getcwd())
        real = os.path.realpath(entry)
        inside = any(real == path or real.startswith(path + os.sep) for path in own)
        if not inside and real != package and entry not in found and os.path.isdir(entry):
            found.append(entry)
    return found


def build(runtime_env: Mapping[str, Any] | None, inherit_env: Iterable[str] = (), *,
          same_host: bool = True, ray_compat: bool = False) -> dict[str, Any]:
    """The RuntimeEnvironment message. `ray_compat`: `import ray` is to mean Troupe there, as it does if it does here.

    An inherited OMP_NUM_THREADS is told to torch in the forked process; any other variable that
    libraries read when they are loaded asks for a fresh interpreter instead of a fork.
    """
    env = check(runtime_env)
    given = dict(env.get("env_vars") or {})
    taken = inherited(inherit_env)
    fresh = [name for name in given if _is_read_at_import(name)]
    fresh += [name for name in taken if _is_read_at_import(name) and name != "OMP_NUM_THREADS"]
    here = sys.modules.get("troupe.ray_compat")
    if ray_compat or (here is not None and here.is_installed()):
        given["TROUPE_RAY_COMPAT"] = "1"
    directory = env.get("working_dir") or (os.getcwd() if same_host else "")
    return {
        "env": [{"name": name, "value": value} for name, value in sorted({**taken, **given}.items())],
        "working_directory": os.path.abspath(directory) if directory else "",
        "import_path": import_path() if same_host else [],
        "fresh_interpreter": bool(fresh),
        "python_version": PYTHON_VERSION,
        "travelled": sorted(taken),
    }
