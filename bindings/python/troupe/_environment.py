"""Which environment travels with a launch or an actor: variables, directory, import path (decision 14)."""
from __future__ import annotations

import json
import os
import site
import sys
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from troupe import _program, _runtime_env
from troupe._identity import PYTHON_VERSION

INHERITED = ("NCCL_*", "GLOO_*", "TORCH_*", "OMP_NUM_THREADS", "MLFLOW_*", "WANDB_*", "HF_*",
             "CUDA_LAUNCH_BLOCKING")
_REMEMBERED_MAX = 1000
_NEVER = ("TROUPE_TOKEN_FILE",)


def inherited(inherit_env: Iterable[str] = ()) -> dict[str, str]:
    """The caller's variables that travel: those of the fixed list and those named (patterns allowed)."""
    patterns = (*INHERITED, *inherit_env)
    return {name: value for name, value in os.environ.items()
            if name not in _NEVER and any(fnmatchcase(name, pattern) for pattern in patterns)}


def check_preimport(modules: Iterable[str]) -> tuple[str, ...]:
    """The names of modules that are to be imported ahead. Raises TypeError or ValueError for what is no list of such names."""
    if isinstance(modules, str):
        raise TypeError(f"preimport must be a list of modules' names, not a text: preimport=[{modules!r}]")
    names = tuple(modules)
    for name in names:
        if not isinstance(name, str) or not all(part.isidentifier() for part in name.split(".")):
            raise ValueError(f"preimport: {name!r} is no name of a module")
    return names


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


def _count(session: Any, environment: str) -> None:
    """One more asks for it; those asked for last are remembered."""
    counts = session.store.setdefault("runtime_envs", {})
    counts[environment] = counts.pop(environment, 0) + 1
    if len(counts) > _REMEMBERED_MAX:
        del counts[next(iter(counts))]


def asked_for(session: Any) -> list[tuple[dict[str, Any], int]]:
    """The environments that this process has asked for, and how often, the latest last; the latest 1,000."""
    return [(json.loads(environment), count) for environment, count in dict(session.store.get("runtime_envs", {})).items()]


def build(runtime_env: Mapping[str, Any] | None, inherit_env: Iterable[str] = (), *, session: Any,
          ray_compat: bool = False, preimport: Iterable[str] = ()) -> dict[str, Any]:
    """The RuntimeEnvironment message. `ray_compat`: `import ray` is to mean Troupe there, as it does if it does here.

    `runtime_env` is over what init(), or the process that this one is, was given. Requirements ask for a fresh interpreter
    instead of a fork: what a fork has loaded could not be replaced. For variables that libraries read when they are loaded the
    worker sees to that (`worker/core/read_at_import.cc`), and to `preimport`, modules that are to be loaded already.
    """
    env = _runtime_env.merged(_runtime_env.inherited(session), _runtime_env.resolve(runtime_env, session))
    given = dict(env["env_vars"])
    taken = inherited(inherit_env)
    installed = getattr(sys.modules.get("troupe.ray_compat"), "is_installed", None)  # without it: it is being imported
    if ray_compat or (installed is not None and installed()):
        env[_runtime_env.RAY_COMPAT] = True
    if any(env.values()):
        given[_runtime_env.VARIABLE] = json.dumps(env, sort_keys=True)
        _count(session, given[_runtime_env.VARIABLE])
    given.setdefault(_program.JOB, session.job)
    if session.namespace:
        given.setdefault(_program.NAMESPACE, session.namespace)
    same_host = bool(session.store.get("same_host", True))
    return {
        "env": [{"name": name, "value": value} for name, value in sorted({**taken, **given}.items())],
        "working_directory": os.getcwd() if same_host and "working_dir" not in env else "",
        "import_path": import_path() if same_host else [],
        "fresh_interpreter": "pip" in env,
        "preimport": list(preimport),
        "python_version": PYTHON_VERSION,
        "travelled": sorted(taken),
    }
