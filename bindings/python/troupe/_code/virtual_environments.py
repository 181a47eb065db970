"""Virtual environments of a host, one for each set of requirements: made once, whole or not at all,
seen by the processes that ask for it.

View: a process on the node. An environment sees what is installed beside the node's own
interpreter, so that only what that lacks, or has in another version, is installed: by uv where it
is found and knows no less of indexes than pip does, else by pip. Its name is the digest of the
requirements and of what there is beside the interpreter. A process enters it by its import path,
its PATH and what `sys.executable` is; a zygote of it, once it is there, too.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import signal
import site
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from troupe import exceptions
from troupe._base import identity
from troupe._cluster import variables
from troupe._code import disk, packages, packed, requirements

_OUTPUT_LINES = 12
_PLACEHOLDER = "troupe: of the interpreter's own packages"
_PIP_FILES = ("/etc/pip.conf", "/etc/xdg/pip/pip.conf", "~/.config/pip/pip.conf", "~/.pip/pip.conf")
_INDEXES = (
    "INDEX_URL",
    "EXTRA_INDEX_URL",
    "FIND_LINKS",
    "NO_INDEX",
    "DEFAULT_INDEX",
    "INDEX",
    "CONFIG_FILE",
)
_ELSEWHERE = (
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_USER",
    "PIP_REQUIREMENT",
    "UV_TARGET",
    "UV_PREFIX",
    "UV_PYTHON",
    "UV_SYSTEM_PYTHON",
)
"""Settings that would have it installed somewhere else."""


def enter(pip: Mapping[str, Any], timeout_s: float, session: Any) -> list[str]:
    """Enters the environment of these requirements, made first where this host has none; what is to
    stand in front of the import path.

    Blocks while they are installed, for `timeout_s` at most (-1: any), here or by another process
    of this host. Without a `session` one that is not there yet is NotHereYet. Raises
    RuntimeEnvSetupError with the resolver's words, the same for all that waited for it.
    """
    asked_s = time.clock_gettime(time.CLOCK_BOOTTIME)

    def make(folder: Path) -> None:
        packages.need(session, "what the requirements ask for")
        _told_again(folder, asked_s)
        try:
            _make(pip, folder, timeout_s)
        except exceptions.RuntimeEnvSetupError as error:
            _tell_others(folder, str(error))
            raise

    return _entered(
        packages.made_once(_name(pip["digest"]), make, f"the environment with {_names(pip)}")
    )


def _name(digest: str) -> str:
    """Return a name shared by equal requirements beside equal packages."""
    installed = sorted(
        name
        for folder in own_packages()
        for name in os.listdir(folder)
        if name.endswith((".dist-info", ".egg-info", ".egg-link"))
    )
    about = json.dumps([digest, sys.version, sys.prefix, installed])
    return f"pip-{hashlib.sha256(about.encode()).hexdigest()[:32]}"


def _names(pip: Mapping[str, Any]) -> str:
    """For people; a zygote, which makes nothing, knows the digest alone."""
    return requirements.names(pip) if "lines" in pip else "requirements"


def own_packages() -> list[str]:
    """Folders of what is installed beside this interpreter."""
    found = [
        *site.getsitepackages(),
        *([site.getusersitepackages()] if site.ENABLE_USER_SITE else []),
    ]
    return [folder for folder in dict.fromkeys(found) if os.path.isdir(folder)]


def _told_again(folder: Path, asked_s: float) -> None:
    """Raises what another process was told since this one asked: the index would say it again."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        failed = json.loads(packed.beside(folder, "failed").read_text(encoding="utf-8"))
        if failed["at_s"] >= asked_s and failed["boot"] == identity.kernel_boot_id():
            raise exceptions.RuntimeEnvSetupError(failed["text"])


def _tell_others(folder: Path, text: str) -> None:
    with contextlib.suppress(OSError):
        packed.beside(folder, "failed").write_text(
            json.dumps(
                {
                    "at_s": time.clock_gettime(time.CLOCK_BOOTTIME),
                    "boot": identity.kernel_boot_id(),
                    "text": text,
                }
            ),
            encoding="utf-8",
        )


def _sites(folder: Path) -> list[str]:
    places = {"base": str(folder), "platbase": str(folder)}
    return list(
        dict.fromkeys(sysconfig.get_path(name, "venv", places) for name in ("purelib", "platlib"))
    )


def _entered(folder: Path) -> list[str]:
    """This process has it from now on, and so has every program that it starts by `sys.executable`
    or by name."""
    before = list(sys.path)
    for each in _sites(folder):
        site.addsitedir(each)  # with what its .pth files name
    added = [entry for entry in sys.path if entry not in before]
    sys.path[:] = before
    importlib.invalidate_caches()
    scripts = str(folder / "bin")
    os.environ["VIRTUAL_ENV"] = str(folder)
    os.environ["PATH"] = os.pathsep.join([scripts, *filter(None, [os.environ.get("PATH")])])
    sys.executable = os.path.join(scripts, "python")
    spawn = sys.modules.get("multiprocessing.spawn")
    if spawn is not None:
        spawn.set_executable(sys.executable)
    return added


def _make(pip: Mapping[str, Any], folder: Path, timeout_s: float) -> None:
    import venv

    uv = found_uv(os.environ, pip_is_configured=_pip_is_configured())
    with_pip = uv is None and importlib.util.find_spec("pip") is None
    venv.EnvBuilder(symlinks=True, with_pip=with_pip).create(folder)
    for each in _sites(folder):
        Path(each).mkdir(parents=True, exist_ok=True)
    own = own_packages()
    python = str(folder / "bin" / "python")
    # Only for its own interpreter: a process that enters it has these already.
    lines = [
        f"import sys, site; sys.prefix == {str(folder)!r} and site.addsitedir({each!r})"
        for each in own
    ]
    (Path(_sites(folder)[0]) / "_interpreter.pth").write_text(
        "\n".join(lines) + "\n", encoding="utf-8"
    )
    wanted = packed.beside(folder, "txt")
    constraints = packed.beside(folder, "constraints.txt")
    try:
        limits = [line for line in pip["lines"] if line.startswith(requirements.CONSTRAINT)]
        _write_private(wanted, [line for line in pip["lines"] if line not in limits])
        _write_private(constraints, [line.removeprefix(requirements.CONSTRAINT) for line in limits])
        command = _command(uv, python, wanted, constraints)
        if uv is not None:
            _place_holders(own, Path(_sites(folder)[0]))
        _run(
            command, f"{'uv' if uv else 'pip'} install {requirements.names(pip)}", folder, timeout_s
        )
    finally:
        wanted.unlink(missing_ok=True)
        constraints.unlink(missing_ok=True)
    _remove_place_holders(Path(_sites(folder)[0]))
    if pip["check"]:
        _run(
            [uv, "pip", "check", "--python", python]
            if uv
            else [python, "-P", "-m", "pip", "check"],
            f"{'uv' if uv else 'pip'} check",
            folder,
            timeout_s,
        )


def _write_private(file: Path, lines: Sequence[str]) -> None:
    """Write lines to a file that only this user can read: credentials must not appear in a command
    line."""
    file.unlink(missing_ok=True)
    with open(
        os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600),
        "w",
        encoding="utf-8",
    ) as opened:
        opened.write("\n".join(lines) + "\n")


def _command(uv: str | None, python: str, wanted: Path, constraints: Path) -> list[str]:
    limits = ["-c", str(constraints)] if constraints.stat().st_size > 1 else []
    if uv is not None:
        return [
            uv,
            "pip",
            "install",
            "--python",
            python,
            "--no-progress",
            "--compile-bytecode",
            "--link-mode=copy",
            *limits,
            "-r",
            str(wanted),
        ]
    return [
        python,
        "-P",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
        "--no-warn-script-location",
        *limits,
        "-r",
        str(wanted),
    ]


def found_uv(environment: Mapping[str, str], *, pip_is_configured: bool) -> str | None:
    """uv, on the PATH or beside the interpreter; None where it is not, or where pip alone was told
    of an index, which uv does not read."""
    told = any(environment.get(f"UV_{name}") for name in _INDEXES)
    of_pip = pip_is_configured or any(environment.get(f"PIP_{name}") for name in _INDEXES)
    if of_pip and not told:
        return None
    beside = os.path.join(os.path.dirname(sys.executable), "uv")
    return shutil.which("uv", path=environment.get("PATH")) or (
        beside if os.access(beside, os.X_OK) else None
    )


def _pip_is_configured() -> bool:
    """Return True if a configuration file gives pip an index."""
    for name in (*_PIP_FILES, os.path.join(sys.prefix, "pip.conf")):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            text = Path(name).expanduser().read_text(encoding="utf-8")
            if any(word in text for word in ("index-url", "find-links", "no-index")):
                return True
    return False


def _run(command: Sequence[str], words: str, folder: Path, timeout_s: float) -> None:
    """Runs an installer to its end, which holds the lock of the folder for as long as any of its
    processes lives."""
    environment = {name: value for name, value in variables.now().items() if name not in _ELSEWHERE}
    started = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=packages.cache(),
        env=environment,
        start_new_session=True,
        pass_fds=packages.locks_of(folder),
    )
    try:
        said, _ = started.communicate(timeout=None if timeout_s == -1 else timeout_s)
    except subprocess.TimeoutExpired:
        raise exceptions.RuntimeEnvSetupError(
            f"{words} was not done within {timeout_s:g} s on {os.uname().nodename}\n"
            "  runtime_env['config'] = {'setup_timeout_seconds': ...} gives it longer"
        ) from None
    finally:
        if started.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
            started.wait()
    if started.returncode != 0:
        lines = requirements.shown(said).rstrip().splitlines()[-_OUTPUT_LINES:]
        shutil.rmtree(folder, ignore_errors=True)  # free space is looked at without it
        free = disk.free_in(said, packages.cache(), tempfile.gettempdir())
        raise exceptions.RuntimeEnvSetupError(
            f"{words} ended with {started.returncode} on {os.uname().nodename}\n"
            + "\n".join("    " + line for line in lines)
            + (f"\n  {free}\n  {packages.ROOM}" if free else "")
        )


def _place_holders(own: Sequence[str], folder: Path) -> None:
    """Descriptions of the interpreter's own packages: uv looks into the environment alone, and
    would install all of them again. One that is replaced takes nothing away but itself."""
    for base in own:
        for name in os.listdir(base):
            holder, about = folder / name, Path(base, name)
            if (
                not name.endswith(".dist-info")
                or holder.exists()
                or not (about / "METADATA").is_file()
            ):
                continue
            holder.mkdir()
            kept = ["INSTALLER", "RECORD"]
            for file in ("METADATA", "WHEEL", "entry_points.txt", "top_level.txt"):
                if (about / file).is_file():
                    shutil.copyfile(about / file, holder / file)
                    kept.append(file)
            (holder / "INSTALLER").write_text(_PLACEHOLDER + "\n", encoding="utf-8")
            (holder / "RECORD").write_text(
                "".join(f"{name}/{file},,\n" for file in kept), encoding="utf-8"
            )


def _remove_place_holders(folder: Path) -> None:
    for installer in folder.glob("*.dist-info/INSTALLER"):
        if installer.read_text(encoding="utf-8", errors="replace").strip() == _PLACEHOLDER:
            shutil.rmtree(installer.parent)
