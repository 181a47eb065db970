"""runtime_env: what a caller asks for (`resolve`), and what a started process makes of it
    (`enter`).

`resolve` runs where the work is asked for: it checks, and where nodes are on other hosts it zips
directories and puts them on a worker. What it returns travels as JSON in the variable
TROUPE_RUNTIME_ENV, is entered before anything of the user's is loaded, and is what further work of
that process starts from.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from troupe import exceptions
from troupe._base import identity as _identity, job as _job
from troupe._cluster import variables as _variables, workers
from troupe._code import user_main
from troupe._code.environment_checks import SETUP_TIMEOUT_S, check as check
from troupe._typed.per_session import PerSession

VARIABLE = "TROUPE_RUNTIME_ENV"
RAY_COMPAT = "ray_compat"
WHEN_IMPORTED = "when imported"  # value that makes a program one for Ray if it runs `import ray`
# Value that makes `import ray` mean the installed Ray, whatever it means in the parent
INSTALLED = "installed"
"""A key of the form that travels, not of the users': `import ray` means Troupe."""
STAND_INS = "stand_ins"
"""Another one: other packages that mean Troupe here, and in every Python below, by their names
(`troupe.stand_ins`)."""
PROGRAM = "program"
"""Another one: the script, its arguments, the names of its variables that travelled and of those
that it has removed, and what its policies are."""
SETUP = ("pip", "py_modules", "setup_timeout_s", "working_dir")
"""Keys of that form which say what is on the import path: a process with modules imported ahead is
of one such text."""
_SPREAD_ASKED_S = 5.0
_SCRIPT_BYTES_MAX = 16 << 10  # packed; it travels in a variable, as the hook does
# Limit because it travels in a variable, of which the kernel takes 128 KiB
_HOOK_BYTES_MAX = 64 << 10
_HOOK_PICKLED = "pickle:"


def inherited(session: Any, *, as_now: bool = False) -> dict[str, Any]:
    """Return the runtime environment that work of this process starts from: that of init(), or that
    of this process itself. `as_now`: see `resolve`."""
    if VARIABLE in os.environ and session.in_process:
        return {
            key: value for key, value in _parsed(os.environ[VARIABLE]).items() if key != PROGRAM
        }
    given = {**of_job(), **(session.runtime_env or {})}
    if given.get("env_vars"):
        given["env_vars"] = {**of_job().get("env_vars", {}), **given["env_vars"]}
    return resolve(given, session, as_now=as_now) if given else {}


def of_job() -> dict[str, Any]:
    """Return the runtime_env of the job that this process belongs to; empty: it belongs to none, or
    the job has none."""
    return dict(json.loads(os.environ.get(_job.RUNTIME_ENV, "{}")))


def resolve(
    runtime_env: Mapping[str, Any] | None, session: Any, *, as_now: bool = False
) -> dict[str, Any]:
    """The form that travels.

    Directories of this host become packages where the cluster has other hosts: as they were when
    the session first used them, or `as_now`.
    """
    env = check(runtime_env)
    found: dict[str, Any] = {"env_vars": dict(env.get("env_vars") or {})}
    excludes = tuple(env.get("excludes", ()))
    if "working_dir" in env:
        found["working_dir"] = _directory(
            os.path.abspath(env["working_dir"]), excludes, "", session, "working_dir", as_now=as_now
        )
    if "py_modules" in env:
        found["py_modules"] = [
            _directory(path, excludes, os.path.basename(path), session, "py_modules", as_now=as_now)
            for path in env["py_modules"]
        ]
    if "pip" in env or "uv" in env:
        from troupe._code import requirements

        found["pip"] = requirements.travelling(env.get("pip") or env["uv"])
    if "setup_timeout_seconds" in env.get("config", {}):
        found["setup_timeout_s"] = env["config"]["setup_timeout_seconds"]
    if "worker_process_setup_hook" in env:
        found["setup_hook"] = _as_text(env["worker_process_setup_hook"])
    return found


def _as_text(hook: Callable[[], Any] | str) -> str:
    """A name as it is; a function, with what it captures, as `pickle:` and its pickle."""
    if isinstance(hook, str):
        return hook
    from troupe._code import capture

    pickled = capture.dumps(
        hook, (), {}, what="runtime_env['worker_process_setup_hook']", limit=_HOOK_BYTES_MAX
    )
    return _HOOK_PICKLED + base64.b64encode(pickled).decode()


def _run_hook(hook: str) -> None:
    """Calls it, before anything of the user's is loaded. Raises RuntimeEnvSetupError."""
    try:
        if hook.startswith(_HOOK_PICKLED):
            import cloudpickle

            cloudpickle.loads(base64.b64decode(hook.removeprefix(_HOOK_PICKLED)))[0]()
        else:
            module, _, name = hook.rpartition(".")
            getattr(importlib.import_module(module), name)()
    except Exception as error:
        named = "" if hook.startswith(_HOOK_PICKLED) else f" {hook}"
        raise exceptions.RuntimeEnvSetupError(
            f"runtime_env['worker_process_setup_hook']{named} raised {type(error).__name__}: "
            f"{error}"
        ) from error


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Two of the form that travels: variables together, other keys from `over` where it has
    them."""
    return {**base, **over, "env_vars": {**base.get("env_vars", {}), **over.get("env_vars", {})}}


def _directory(
    path: str, excludes: tuple[str, ...], inside: str, session: Any, key: str, *, as_now: bool
) -> dict[str, Any]:
    """A directory as it travels: its path, good on this host, and the package for others.

    A file (an archive, a module) is a package for all, named by what it holds now.
    """
    from troupe._code import ignore_files, listing, packages, trees

    here = {"path": path, "host": _identity.boot_id()}
    what = f"runtime_env[{key!r}]"
    if os.path.isfile(path):
        about = os.stat(path)
        packed = _once(
            (path, about.st_mtime_ns, about.st_size),
            session,
            lambda: _put(packages.of_file(path, what), session),
        )
        return {"path": path, "host": "", "package": packed}
    if not _spread(session):
        return here
    left_out = tuple(each for each in excludes if not each.startswith("!"))

    def send() -> dict[str, Any]:
        wanted = [each[1:] for each in excludes if each not in left_out]
        ignored = (
            ignore_files.Ignored(path, listing.matcher(wanted), wanted=wanted)
            if key == "working_dir"
            else None
        )  # a module that was named is wanted as it is
        return trees.sent(
            path, left_out, inside=inside, what=what, session=session, ignored=ignored
        )

    return {**here, "package": _once((path, excludes, inside, key), session, send, anew=as_now)}


def directory(path: str, session: Any) -> dict[str, Any]:
    """A folder as it travels beside the working directory, for `folder_here`."""
    return _directory(os.path.abspath(path), (), "", session, "working_dir", as_now=True)


def folder_here(directory: Mapping[str, Any], session: Any) -> str:
    """Return this host's path of a folder that travelled. Raises RuntimeEnvSetupError."""
    return _folder(directory, session, "working_dir")


class Spread:
    """The known nodes on other hosts, and the time when the head was last asked for them."""

    def __init__(self, asked_s: float = float("-inf")) -> None:
        self.is_known = False
        self.asked_s = asked_s


SPREAD: PerSession[Spread] = PerSession("nodes of other hosts")
_scripts: PerSession[dict[str, dict[str, Any] | None]] = PerSession("scripts")
_packages: PerSession[dict[Any, dict[str, Any]]] = PerSession("packages")


def _spread(session: Any) -> bool:
    """Return True if the cluster has nodes on other hosts; a positive answer is remembered."""
    spread = SPREAD.of(session, Spread)
    if not spread.is_known:
        here = _identity.boot_id()
        spread.is_known = any(
            node["boot_id"] != here
            for node in workers.node_infos(session)
            if node["state"] != "dead"
        )
    return spread.is_known


def _may_be_spread(session: Any) -> bool:
    """Return True if the cluster is known to have nodes on other hosts, asking the head at most
    every _SPREAD_ASKED_S seconds. Called for each actor and task process."""
    spread, now = SPREAD.of(session, Spread), time.monotonic()
    if not spread.is_known and now - spread.asked_s >= _SPREAD_ASKED_S:
        spread.asked_s = now
        _spread(session)
    return spread.is_known


@functools.lru_cache(1)
def _parsed(text: str) -> dict[str, Any]:
    """Parse the variable; the result is cached, so callers must not change it."""
    return dict(json.loads(text))


def begin() -> None:
    """This process of the runtime has its environment: what its program has removed goes from
    it."""
    program = _parsed(os.environ.get(VARIABLE, "{}")).get(PROGRAM, {})
    removed = program.get("removed", ())
    for name in removed:
        os.environ.pop(name, None)
    _variables.began(os.environ, program.get("carried", ()), removed)


def enter(session: Any) -> None:
    """Makes this process what its TROUPE_RUNTIME_ENV says: directory, import path, requirements,
    what `ray` is.

    Blocks while packages are fetched and requirements installed; a second process of the host waits
    for the first. Raises RuntimeEnvSetupError.
    """
    text = os.environ.get(VARIABLE)
    if not text:
        return
    env = _parsed(text)
    program = env.get(PROGRAM, {})
    session.infeasible = program.get("infeasible")
    user_main.enter(_script_here(program.get("script", {}), session), program.get("arguments"))
    if env.get(RAY_COMPAT) == INSTALLED:
        from troupe import ray_compat

        ray_compat.give_way()
    elif env.get(RAY_COMPAT):
        from troupe import ray_compat

        ray_compat.install(starts=False, when_imported=env[RAY_COMPAT] == WHEN_IMPORTED)
    if env.get(STAND_INS):
        from troupe import stand_ins

        if env[STAND_INS]["here"]:
            stand_ins.install(env[STAND_INS]["here"], starts=False)
        if env[STAND_INS]["below"]:
            stand_ins.pass_on(env[STAND_INS]["below"])
    enter_paths(env, session)
    if "setup_hook" in env:
        _run_hook(env["setup_hook"])


def setup_text(env: Mapping[str, Any]) -> str:
    """Return the parts of a travelling environment that a process which imports modules ahead must
    enter first, as one text; "" if there are none."""
    found = {key: env[key] for key in SETUP if key in env}
    if "pip" in found:  # the text stands in a command line, where the requirements' lines may not
        found["pip"] = {"digest": found["pip"]["digest"]}
    return json.dumps(found, sort_keys=True) if set(found) - {"setup_timeout_s"} else ""


def enter_paths(env: Mapping[str, Any], session: Any) -> None:
    """Directory, packages and requirements: in front of the import path.

    Without a `session` what is not on this host cannot be fetched.

    Raises RuntimeEnvSetupError.
    """
    try:
        paths = [_enter_module(each, session) for each in env.get("py_modules", ())]
        if "working_dir" in env:
            folder = _folder(env["working_dir"], session, "working_dir")
            os.chdir(folder)
            paths.insert(0, folder)
        if "pip" in env:
            from troupe._code import virtual_environments

            paths += virtual_environments.enter(
                env["pip"], env.get("setup_timeout_s", SETUP_TIMEOUT_S), session
            )
    except (exceptions.TroupeError, OSError) as error:
        if isinstance(error, exceptions.RuntimeEnvSetupError):
            raise
        raise exceptions.RuntimeEnvSetupError(
            f"the runtime_env could not be set up: {error}"
        ) from error
    sys.path[:0] = [path for path in paths if path not in sys.path]


def script(session: Any) -> dict[str, Any]:
    """This program's script as it travels; with its source where the cluster has other hosts."""
    found = user_main.describe()
    file = found.get("file")
    if file is None or not os.path.isfile(file) or not _may_be_spread(session):
        return found
    known = _scripts.of(session, dict)
    if file not in known:
        known[file] = _source(file, session)
    return {**found, "source": known[file]} if known[file] else found


def _source(file: str, session: Any) -> dict[str, Any] | None:
    """A script's source as it travels: in the variable itself, which asks no worker for anything,
    or a large one as a package that a worker keeps. None where no worker can be reached from here:
    hosts without the file then know its name alone."""
    from troupe._code import packages

    packed = packages.zip_of_file(file, os.path.basename(file))
    if len(packed) <= _SCRIPT_BYTES_MAX:
        return {"zip": base64.b64encode(packed).decode()}
    try:
        return _once(file, session, lambda: _put(packed, session))
    except exceptions.TroupeError:
        return None


def package_of(key: Any, session: Any, make: Callable[[], bytes]) -> dict[str, Any]:
    """Return the location from which other hosts fetch these bytes, a zip, made once per session.
    For `package_here`."""
    return _once(key, session, lambda: _put(make(), session))


def _once(
    key: Any, session: Any, make: Callable[[], dict[str, Any]], *, anew: bool = False
) -> dict[str, Any]:
    """Return the location of a package: made once per session, or `anew`, for this and later
    uses."""
    known = _packages.of(session, dict)
    if anew or key not in known:
        known[key] = make()
    found: dict[str, Any] = known[key]
    return found


def _put(package: bytes, session: Any) -> dict[str, Any]:
    """Store bytes with a worker of this host and return their location for other hosts."""
    from troupe._cluster import blobs

    blob = blobs.put(session, package)
    return {**blob, "sha256": blob["sha256"].hex()}


def _script_here(script: Mapping[str, Any], session: Any) -> Mapping[str, Any]:
    """The script as it is to be known in this process: where this host has no such file, by a copy
    of it."""
    file = script.get("file")
    if file is None or "source" not in script or os.path.exists(file):
        return script
    from troupe._code import packages

    source = script["source"]
    if "zip" in source:
        packed = base64.b64decode(source["zip"])
        digest = hashlib.sha256(packed).hexdigest()
        folder = str(
            packages.made_once(
                f"package-{digest[:32]}",
                lambda made: packages.unpack(packed, made, f"the script {file}"),
                f"the script {file}",
            )
        )
    else:
        folder = package_here(source, session, f"the script {file}")
    return {**script, "file": os.path.join(folder, os.path.basename(file))}


def package_here(package: Mapping[str, Any], session: Any, what: str) -> str:
    """The folder of this host that has what was packed; `what` it is, for errors.

    Raises RuntimeEnvSetupError, ObjectLostError.
    """
    from troupe._code import manifests, packages, trees

    if "tree" in package:
        return trees.made(package, what, session)
    if not manifests.is_digest(package["sha256"]):
        raise ValueError(f"{what}: {str(package['sha256'])[:80]!r} is no name of a package")

    def make(folder: Path) -> None:
        from troupe._cluster import blobs

        packages.need(session, what)
        packages.unpack(
            blobs.get(
                session,
                package["holder"],
                bytes.fromhex(package["sha256"]),
                package["size_bytes"],
                what=what,
            ),
            folder,
            what,
        )

    return str(packages.made_once(f"package-{package['sha256'][:32]}", make, what))


def _enter_module(directory: Mapping[str, Any], session: Any) -> str:
    """Return the folder of a package's directory, to be put on the import path."""
    if "package" in directory and directory["host"] != _identity.boot_id():
        return _folder(
            directory, session, "py_modules"
        )  # for a file, the folder that it lies in does not exist on any host
    found: str = os.path.dirname(directory["path"])
    return found


def _folder(directory: Mapping[str, Any], session: Any, key: str) -> str:
    """The directory itself on its own host; elsewhere its package, unpacked."""
    if directory["host"] == _identity.boot_id():
        found: str = directory["path"]
        return found
    package = directory.get("package")
    if package is None:
        raise exceptions.RuntimeEnvSetupError(
            f"runtime_env[{key!r}]: {directory['path']} is on another host, and this one was not "
            "in the cluster when this "
            "was asked for\n  ask again, now that the node is there"
        )
    return package_here(package, session, f"the package of runtime_env[{key!r}]")
